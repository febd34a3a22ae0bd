package main

// says is what the check prints that has to find a bug, as a regular expression: whatever else a mistake
// breaks on the way, a crash of the process too, does not count. Any check will do for one that is not listed.
var says = map[string]string{
	"no term check":                                  `gives run .*; the ledger is `,
	"callback before the swap":                       `which is not its own in the ledger|which no write of the ledger gave to it`,
	"a swap re-sends an old result after a conflict": `sets the (term|watermark) back`,
	"jitter is subtracted":                           `makes attempt 1 of .*, by schedule, due at`,
	"a clock that is behind moves what waits for a slot before its instant": `by schedule, from when it is due by`,
	"an attempt is sent before it is due":                                   `was allowed to send .* before it is due`,
	"an occurrence is recovered again after a retry":                        `recovers the occurrence of`,
	"there is one retry too many":                                           `repeats the occurrence of`,
	"a failure for good is repeated":                                        `repeats run .* for good`,
	"a success is recorded as a failure":                                    `is Failed .*, the app said Succeeded`,
	"a late success cancels the attempt that is in flight":                  `which nobody has asked for`,
	"skips are dropped before the history has them":                         `drops the record of a skip of`,
	"the history counts a range of skips as one":                            `has dropped \d+ instants of`,
	"the history keeps no message of a failure":                             `of which the history has another`,
	"a flush that is stored late takes a note away":                         `writes another end of run`,
	"the lease is not asked before a send":                                  `was allowed to send under term`,
	"serial jobs run beside themselves":                                     `in flight, which is serial`,
	"there is a slot too many":                                              `which has \d+ slots`,
	"what the history has stays in the ledger":                              `the ledger has \d+ bytes`,
	"nobody takes over whose Lease names an older term":                     `nobody leads`,
}
