package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/leasecron/leasecron/engine/run"
)

// maxViolations is how many violations a report spells out.
const maxViolations = 30

// report prints the result of a run: a line for each job, what happened, and what must not be.
func report(out io.Writer, o options, r result) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "job\tinstants\tfired\tcoalesced\tskipped\tleft\tlost\trecovered\tretried\tarrived\tduplicates\tdecided twice\tunaccounted\tearly\textra\tmissing\tgroundless\tunexplained\tlatest\tfired %\t")
	row := func(j jobAccount) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%d\t\n", j.Job, j.Instants, j.Fired, j.Coalesced, j.Skipped, j.Left,
			j.Lost, j.Recovered, j.Retried, j.Arrived, j.Duplicates, j.DecidedTwice, j.Unaccounted, j.Early, j.Extra, j.Missing, j.Groundless, j.Unexplained,
			j.WorstLate.Round(time.Millisecond), j.share())
	}
	total := jobAccount{Job: "total"}
	for _, j := range r.Jobs {
		row(j)
		total.add(j)
	}
	row(total)
	_ = w.Flush()

	set, hit := 0, 0
	fmt.Fprintf(out, "\nfaults that hit:")
	for i, k := range slices.Sorted(maps.Keys(r.Faults)) {
		if i > 0 {
			fmt.Fprint(out, ",")
		}
		fmt.Fprintf(out, " %s %d of %d", k, r.Faults[k].Hit, r.Faults[k].Set)
		set, hit = set+r.Faults[k].Set, hit+r.Faults[k].Hit
	}
	fmt.Fprintf(out, "; all %d of %d\ninstants without a run of their own, by reason:", hit, set)
	for _, reason := range run.Reasons() {
		fmt.Fprintf(out, " %s %d", reason, r.Reasons[reason])
	}
	fmt.Fprintf(out, "; apps that refused connections: %d times, attempts that never reached one: %d; in the quiet stretch at the end %d of %d instants fired", r.Refusals, r.Unreached, r.CalmFired, r.CalmInstants)
	fmt.Fprintf(out, "\nterms with callbacks: %d; processes: %d, of which %d ended without being told to; versions of the ledger seen: %d, the largest %d bytes\n",
		r.Leaders, r.Processes, r.Unordered, r.LedgerVersions, r.LedgerBytes)
	fmt.Fprintf(out, "callbacks started under a term after one of a later term was committed: %d; by a process frozen between its last check and the send: %d\n", r.LateSends, r.FrozenSends)
	fmt.Fprintf(out, "without a leader after the faults: %s; then %d losses were forced", r.Leaderless.Round(time.Millisecond), o.Losses)
	for _, how := range slices.Sorted(maps.Keys(r.Losses)) {
		fmt.Fprintf(out, ", %d times %s", r.Losses[how], how)
	}
	fmt.Fprintf(out, "; the sidecar whose turn it was led at most %s later\n", r.SlowestTurn.Round(time.Millisecond))
	for i, v := range r.Violations {
		if i == maxViolations {
			fmt.Fprintf(out, "... and %d more\n", len(r.Violations)-i)
			break
		}
		fmt.Fprintf(out, "VIOLATION: %s\n", v)
	}
	fmt.Fprintf(out, "violations: %d; duplicates: %d; instants unaccounted for: %d; replay with SEED=%d TIME=%s SIDECARS=%d\n",
		len(r.Violations), total.Duplicates, total.Unaccounted, o.Seed, o.Time, o.Sidecars)
}

func (j *jobAccount) add(other jobAccount) {
	j.Instants += other.Instants
	j.Fired += other.Fired
	j.Coalesced += other.Coalesced
	j.Skipped += other.Skipped
	j.Left += other.Left
	j.Lost += other.Lost
	j.Recovered += other.Recovered
	j.Retried += other.Retried
	j.Arrived += other.Arrived
	j.Duplicates += other.Duplicates
	j.DecidedTwice += other.DecidedTwice
	j.Unaccounted += other.Unaccounted
	j.Early += other.Early
	j.Extra += other.Extra
	j.Missing += other.Missing
	j.Groundless += other.Groundless
	j.Unexplained += other.Unexplained
	j.WorstLate = max(j.WorstLate, other.WorstLate)
}
