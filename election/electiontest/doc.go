// Package electiontest holds what every elector must do, as tests, and the candidates that they are
// made of. An elector on another store (etcd, Consul, a database) is written outside of this
// repository with what package election exports, and shown to be right by Run:
//
//	func TestElector(t *testing.T) {
//		electiontest.Run(t, func(t *testing.T) electiontest.Harness {
//			record := newRecord(t) // each test competes for one of its own
//			return electiontest.Harness{
//				Rivals: true, Remembers: true,
//				New: func(t testing.TB, opts election.Options) election.Elector { return mine.New(record, opts) },
//				Usurp: …, Isolate: …,
//			}
//		})
//	}
//
// variable_test.go beside this file is a whole one, on a shared variable.
//
// # Writing an elector
//
//   - Check and complete the options with [election.Options.WithDefaults].
//   - Take the record by a compare-and-swap on what was last seen of it. Judge that a holder's time is
//     over by this process's monotonic clock since it saw the record change, never by times of day that
//     others wrote, and with the holder's duration, not the own one.
//   - Note the time before a write is sent, not after its answer. Make an [election.Keeper] with it for
//     each term, for less time than the others wait; extend it with each renewal; end it when the record
//     names another, when Eligible says no, or when Run's context ends. Whatever hangs, it ends itself.
//   - An answer that was lost may have been stored. Look before taking it for a loss, and never begin or
//     prolong a term by a record whose write is not known to be this term's.
//   - Call lead in a goroutine of its own and give its result to Lease.Resign. After the term's end wait
//     for lead, for at most Options.HandBack, then release the record with a context of its own; do not
//     release what was taken away. Begin no other term before lead has returned.
//   - After a term that was given up pause, longer each time, so that another candidate has its chance.
//     After any other end campaign again at once, and for ever: Run returns only when its context ends.
//   - When Keeper.Told receives, write the fencing term into the record with the next renewal; the next
//     leader gets the greatest that the record ever had as AnnotatedTerm.
//   - Turn the loop every few seconds and say when in Status.LastTurn: liveness hangs on it.
//
// Safety does not rest on any of this: terms in the ledger fence a leader that believes too long in
// itself. What a mistake costs is time without a leader, or the planning of two at once that all but
// one see refused.
//
// What the suite cannot show is what its harness cannot break: lost answers, connections that hang
// half-way, a store that restarts. The tests of package election do that to the Kubernetes elector with
// test/faultproxy, and are worth reading first.
package electiontest
