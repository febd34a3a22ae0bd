package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasecron/leasecron/engine/schedule"
)

const (
	defaultNextCount = 5
	maxNextCount     = 10_000
	maxBatchLine     = 64 << 10 // bytes of one line of --batch
)

// newNextCommand previews a schedule with the code that the engine runs.
func newNextCommand() *cobra.Command {
	var (
		q      nextQuery
		after  string
		count  int
		output string
		batch  bool
	)
	cmd := &cobra.Command{
		Use:   "next EXPR",
		Short: "Print the next instants of a schedule",
		Long: `next prints when a schedule is due: a cron expression or any other text form, such as
"rate 60s" or "once 2026-11-01T00:00:00Z". Warnings, for example of clock changes in the coming
year, go to stderr. For a fixed delay it assumes runs that take no time.

With --batch it reads one JSON object a line from stdin,
  {"id":…,"expr":…,"tz":…,"after":…,"ambiguous":…,"gap":…,"key":…,"count":…}
of which all but expr may be left out, and answers each with a line, in the same order:
  {"id":…,"next":[…]} or {"id":…,"error":…}
Other members of a line are ignored, and so are the other flags. An empty line has no answer.

The exit code is 0 when it was answered, also with "no instant", with warnings, or with errors in
the lines of a batch; 2 when the expression or a flag is not valid, or its date exists in no year; 1 when
stdin or stdout fails.`,
		Example: `  sidecar next "0 9 * * MON-FRI" --tz Asia/Shanghai
  sidecar next "0 0 22 L * ?" --after 2026-01-01T00:00:00Z --count 12 -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if batch && len(args) > 0 {
				return usageError{errors.New("--batch reads its expressions from stdin and takes no argument")}
			}
			if !batch && len(args) != 1 {
				return usageError{fmt.Errorf("next takes one expression in quotes, as in sidecar next \"0 3 * * *\", but has %d arguments", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			if batch {
				return answerBatch(cmd.InOrStdin(), cmd.OutOrStdout(), now)
			}
			q.Expr, q.Count, q.After = args[0], &count, after
			a, err := q.answer(now)
			if errors.Is(err, schedule.ErrKeyNeeded) {
				err = fmt.Errorf("%w; give --key job/trigger", err)
			}
			if err != nil {
				return usageError{err}
			}
			switch output {
			case "", "text":
				return a.writeText(cmd.OutOrStdout(), cmd.ErrOrStderr())
			case "json":
				enc := json.NewEncoder(cmd.OutOrStdout())
				enc.SetEscapeHTML(false)
				enc.SetIndent("", "  ")
				return enc.Encode(a)
			default:
				return usageError{fmt.Errorf("--output: %q is not known, want text or json", output)}
			}
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&q.TZ, "tz", "", "time zone, an IANA name (default UTC)")
	flags.StringVar(&after, "after", "", "instant that the answers come after, as 2026-11-01T00:00:00Z (default now)")
	flags.IntVar(&count, "count", defaultNextCount, "how many instants")
	flags.StringVar(&q.Ambiguous, "ambiguous", "", "a wall time that occurs twice: auto, first or both (default auto)")
	flags.StringVar(&q.Gap, "gap", "", "a wall time that does not occur: skip or next (default skip)")
	flags.StringVar(&q.Key, "key", "", "job/trigger, from which H is computed")
	flags.StringVarP(&output, "output", "o", "", "text or json (default text)")
	flags.BoolVar(&batch, "batch", false, "answer JSON lines from stdin")
	return cmd
}

// nextQuery asks for the instants of one schedule. In a batch, other fields are ignored,
// so that lines may carry notes.
type nextQuery struct {
	ID        json.RawMessage `json:"id"`
	Expr      string          `json:"expr"`
	TZ        string          `json:"tz"`
	After     string          `json:"after"`
	Ambiguous string          `json:"ambiguous"`
	Gap       string          `json:"gap"`
	Key       string          `json:"key"`
	Count     *int            `json:"count"`
}

// nextAnswer is what -o json prints.
type nextAnswer struct {
	Schedule string             `json:"schedule"`
	English  string             `json:"english"`
	TimeZone string             `json:"timeZone"`
	Next     []string           `json:"next"` // UTC, RFC 3339
	Warnings []schedule.Warning `json:"warnings,omitempty"`

	instants []time.Time
	zone     *time.Location
}

func (q nextQuery) answer(now time.Time) (*nextAnswer, error) {
	line, after, err := q.compile(now)
	if err != nil {
		return nil, err
	}
	if err := line.Schedule().Validate(); err != nil { // a date that exists in no year, which validate refuses too
		return nil, err
	}
	instants, err := q.list(line, after)
	if err != nil {
		return nil, err
	}
	a := &nextAnswer{
		Schedule: line.Schedule().String(),
		English:  line.English(),
		TimeZone: zoneOf(line.Schedule()),
		Next:     formatInstants(instants),
		Warnings: line.Warnings(after),
		instants: instants,
		zone:     line.Location(),
	}
	return a, nil
}

// compile returns the timeline, and the instant that the answers come after.
func (q nextQuery) compile(now time.Time) (*schedule.Timeline, time.Time, error) {
	after := now
	if q.After != "" {
		var err error
		if after, err = time.Parse(time.RFC3339, q.After); err != nil {
			return nil, after, fmt.Errorf("after: %.40q is not a time like 2026-11-01T00:00:00Z", q.After)
		}
	}
	s, err := schedule.Parse(q.Expr)
	if err != nil {
		return nil, after, err
	}
	for _, option := range []struct {
		name  string
		value string
		field *string
	}{
		{"tz", q.TZ, &s.TimeZone},
		{"ambiguous", q.Ambiguous, &s.Ambiguous},
		{"gap", q.Gap, &s.Gap},
	} {
		switch {
		case option.value == "" || s.Kind == schedule.KindManual:
		case *option.field != "" && *option.field != option.value:
			return nil, after, fmt.Errorf("%s is %s in the expression and %.40q beside it: give it once", option.name, *option.field, option.value)
		default:
			*option.field = option.value
		}
	}
	line, err := s.Compile(schedule.Env{Key: q.Key, FirstSeen: after})
	return line, after, err
}

// list returns the instants after the given one.
func (q nextQuery) list(line *schedule.Timeline, after time.Time) ([]time.Time, error) {
	count := defaultNextCount
	if q.Count != nil {
		count = *q.Count
	}
	if count < 1 || count > maxNextCount {
		return nil, fmt.Errorf("count: %d is out of range 1-%d", count, maxNextCount)
	}
	s := line.Schedule()
	next := line.Next
	if s.Kind == schedule.KindEvery {
		if s.Count > 0 {
			count = min(count, s.Count)
		}
		// The first one is counted from the start.
		next = func(time.Time) (time.Time, bool) {
			next = line.Next
			return line.First()
		}
	}
	instants := []time.Time{}
	for range count {
		at, ok := next(after)
		if !ok {
			break
		}
		instants = append(instants, at)
		after = at
	}
	return instants, nil
}

func zoneOf(s schedule.Schedule) string {
	if s.TimeZone == "" {
		return "UTC"
	}
	return s.TimeZone
}

func formatInstants(instants []time.Time) []string {
	texts := make([]string, len(instants))
	for i, at := range instants {
		texts[i] = at.UTC().Format(time.RFC3339Nano)
	}
	return texts
}

// writeText prints each instant in UTC and on the zone's clock.
func (a *nextAnswer) writeText(out, warnings io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, a.English)
	for i, at := range a.instants {
		fmt.Fprintf(&b, "%s  %s\n", a.Next[i], at.In(a.zone).Format("Mon 2006-01-02 15:04:05 -07:00"))
	}
	if len(a.instants) == 0 {
		fmt.Fprintln(&b, "no instant")
	}
	if _, err := io.WriteString(out, b.String()); err != nil {
		return err
	}
	for _, w := range a.Warnings {
		if _, err := fmt.Fprintln(warnings, "warning: "+w.Text); err != nil {
			return err
		}
	}
	return nil
}

// batchAnswer is one line of --batch: either next or error.
type batchAnswer struct {
	ID    json.RawMessage `json:"id"`
	Next  []string        `json:"next,omitzero"`
	Error string          `json:"error,omitempty"`
}

// answerBatch answers each line of in with a line of out. A line that cannot be answered
// gets an error and stops nothing; the error returned is one of reading or writing.
func answerBatch(in io.Reader, out io.Writer, now time.Time) error {
	lines := bufio.NewReaderSize(in, maxBatchLine)
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for number := 1; ; number++ {
		text, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return w.Flush()
		}
		var a batchAnswer
		switch {
		case errors.Is(err, errLineTooLong):
			a.Error = fmt.Sprintf("line %d: %v", number, err)
		case err != nil:
			return errors.Join(fmt.Errorf("read line %d: %w", number, err), w.Flush())
		case len(bytes.TrimSpace(text)) == 0:
			continue
		default:
			a = answerLine(text, number, now)
		}
		if err := enc.Encode(a); err != nil {
			return err
		}
		// Whoever asks and waits for the answer before the next question must get it.
		if lines.Buffered() == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
}

func answerLine(text []byte, number int, now time.Time) batchAnswer {
	var q nextQuery
	if err := json.Unmarshal(text, &q); err != nil {
		return batchAnswer{ID: q.ID, Error: fmt.Sprintf("line %d: %v", number, err)}
	}
	a := batchAnswer{ID: q.ID}
	line, after, err := q.compile(now)
	if err != nil {
		a.Error = err.Error()
		return a
	}
	instants, err := q.list(line, after)
	if err != nil {
		a.Error = err.Error()
		return a
	}
	a.Next = formatInstants(instants)
	return a
}

var errLineTooLong = fmt.Errorf("longer than %d bytes", maxBatchLine)

// readLine returns the next line without its end, valid until the next call. Of a line that
// is too long, the rest is read and dropped.
func readLine(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		if errors.Is(err, io.EOF) && len(line) > 0 {
			err = nil // the last line has no end
		}
		return bytes.TrimRight(line, "\r\n"), err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return nil, errLineTooLong
}
