package schedule_test

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/schedule"
)

// readLines decodes a file of JSON lines.
func readLines[T any](t *testing.T, path string) []T {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var all []T
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var one T
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, one)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestCronCases(t *testing.T) {
	type cronCase struct {
		ID     string      `json:"id"`
		Expr   string      `json:"expr"`
		TZ     string      `json:"tz"`
		After  time.Time   `json:"after"`
		Policy string      `json:"policy"`
		Next   []time.Time `json:"next"`
		Note   string      `json:"note"`
	}
	for _, c := range readLines[cronCase](t, "testdata/cron.jsonl") {
		t.Run(c.ID+" "+c.Note, func(t *testing.T) {
			s, err := schedule.Parse(c.Expr)
			if err != nil {
				t.Fatalf("Parse(%q) = %v", c.Expr, err)
			}
			s.TimeZone, s.Ambiguous = c.TZ, c.Policy
			line, err := s.Compile(schedule.Env{})
			if err != nil {
				t.Fatalf("Compile(%v) = %v", s, err)
			}
			got := []time.Time{}
			at := c.After
			for range max(len(c.Next), 1) {
				next, ok := line.Next(at)
				if !ok {
					break
				}
				got = append(got, next)
				at = next
			}
			if diff := cmp.Diff(c.Next, got); diff != "" {
				t.Errorf("%v after %v (-want +got):\n%s", s, c.After, diff)
			}
			// Back and counted, the same instants.
			for i := len(got) - 1; i > 0; i-- {
				if prev, ok := line.Prev(got[i]); !ok || !prev.Equal(got[i-1]) {
					t.Errorf("%v: Prev(%v) = %v, %v, want %v", s, got[i], prev, ok, got[i-1])
				}
				if n := line.Count(got[0], got[i]); n != i {
					t.Errorf("%v: Count(%v, %v) = %d, want %d", s, got[0], got[i], n, i)
				}
			}
		})
	}
}

func TestInvalidCronCases(t *testing.T) {
	type invalidCase struct {
		ID   string `json:"id"`
		Expr string `json:"expr"`
		Why  string `json:"why"`
	}
	for _, c := range readLines[invalidCase](t, "testdata/cron-invalid.jsonl") {
		t.Run(c.ID+" "+c.Why, func(t *testing.T) {
			s, err := schedule.Parse(c.Expr)
			if err == nil {
				t.Fatalf("Parse(%q) = %v, want an error: %s", c.Expr, s, c.Why)
			}
			t.Log(err)
		})
	}
}
