package chaos

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"
)

// maxViolations is how many violations a report spells out.
const maxViolations = 30

// report prints the result of a run: a line for each job, what happened, and what must not be.
func report(out io.Writer, o options, r result) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "job\tinstants\tfired\tcoalesced\tskipped\tleft\tlost\trecovered\tretried\tarrived\tduplicates\tdecided twice\tunaccounted\tearly\tunexplained\tlatest\t")
	row := func(j jobAccount) {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t\n", j.Job, j.Instants, j.Fired, j.Coalesced, j.Skipped, j.Left,
			j.Lost, j.Recovered, j.Retried, j.Arrived, j.Duplicates, j.DecidedTwice, j.Unaccounted, j.Early, j.Unexplained, j.WorstLate.Round(time.Millisecond))
	}
	total := jobAccount{Job: "total"}
	for _, j := range r.Jobs {
		row(j)
		total.add(j)
	}
	row(total)
	_ = w.Flush()

	fmt.Fprintf(out, "\nfaults:")
	for i, k := range slices.Sorted(maps.Keys(r.Faults)) {
		if i > 0 {
			fmt.Fprint(out, ",")
		}
		fmt.Fprintf(out, " %s %d", k, r.Faults[k])
	}
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
	j.Unexplained += other.Unexplained
	j.WorstLate = max(j.WorstLate, other.WorstLate)
}
