package electionbench_test

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// table gathers what is measured. Rows of one number make one line; lines go by their numbers.
type table struct {
	mu       sync.Mutex
	rows     []row
	exceeded []string // limits of time, for the end: the processes' logs would hide them
}

type row struct {
	number                      float64 // where it stands in the table
	what, ours, clientGo, limit string
}

func (t *table) add(r row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, r)
}

func (t *table) print(out io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	byNumber := make(map[float64]row)
	for _, r := range t.rows { // both electors' halves of a line may have come at different times
		have := byNumber[r.number]
		byNumber[r.number] = row{
			r.number, cmp.Or(have.what, r.what), cmp.Or(have.ours, r.ours), cmp.Or(have.clientGo, r.clientGo), cmp.Or(have.limit, r.limit),
		}
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\tleasecron\tclient-go\tlimit for leasecron")
	for _, number := range slices.Sorted(maps.Keys(byNumber)) {
		r := byNumber[number]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", r.what, cmp.Or(r.ours, "-"), cmp.Or(r.clientGo, "-"), cmp.Or(r.limit, "-"))
	}
	_ = w.Flush()
	if !*full {
		fmt.Fprintln(out, "a short run with short settings: limits of time do not count, and the figures say little")
	}
}

// limit notes that a limit of time was exceeded, where that counts.
func (t *table) limit(what string, got, most time.Duration) {
	if !*full || got <= most {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.exceeded = append(t.exceeded, fmt.Sprintf("%s: %s, want at most %s", what, ms(got), ms(most)))
}

// say tells how it goes.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stdout, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// durations are samples.
type durations []time.Duration

func (d durations) median() time.Duration {
	if len(d) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(d))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

func (d durations) max() time.Duration {
	if len(d) == 0 {
		return 0
	}
	return slices.Max(d)
}

func (d durations) min() time.Duration {
	if len(d) == 0 {
		return 0
	}
	return slices.Min(d)
}

func (d durations) medianAndMax() string { return ms(d.median()) + " / " + ms(d.max()) }

// ms prints milliseconds below ten seconds and seconds above.
func ms(d time.Duration) string {
	switch {
	case d.Abs() < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	case d.Abs() < 10*time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	default:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
}

// clientGo adds client-go's figure to a row of ours, which may come later.
func (t *table) clientGo(number float64, figure string) {
	t.add(row{number: number, clientGo: figure})
}
