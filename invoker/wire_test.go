package invoker_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

// R195, R196: the app is told the planned time of this very run.
func TestBodyIsTheContract(t *testing.T) {
	tests := map[string]struct {
		change func(*run.Attempt)
		want   string // <id>, <occurrence> and <firedAt> stand for what varies
	}{
		"scheduled, coalesced": {
			change: func(a *run.Attempt) { a.Run.CoveredUntil = sixAM.Add(24 * time.Hour) },
			want: `{"id":"<id>","occurrence":"<occurrence>","job":"reports.nightly","trigger":"workdays","cause":"schedule",` +
				`"scheduledAt":"2026-10-04T22:00:00Z","coveredUntil":"2026-10-05T22:00:00Z","firedAt":"<firedAt>","attempt":1,` +
				`"retryOf":null,"originalOccurrence":null,"term":12,"version":3,"data":{"format":"pdf"}}`,
		},
		"what does not apply is null": {
			change: func(a *run.Attempt) {
				a.Run.Key.Trigger, a.Run.Cause, a.FencingTerm, a.Data = "", run.CauseManual, 0, nil
			},
			want: `{"id":"<id>","occurrence":"<occurrence>","job":"reports.nightly","trigger":null,"cause":"manual",` +
				`"scheduledAt":"2026-10-04T22:00:00Z","coveredUntil":null,"firedAt":"<firedAt>","attempt":1,` +
				`"retryOf":null,"originalOccurrence":null,"term":null,"version":3,"data":null}`,
		},
		"a retry of a rerun names both origins": {
			change: func(a *run.Attempt) {
				a.Run.Cause, a.Run.Attempt = run.CauseRetry, 2
				a.Run.RetryOf, a.Run.OriginalOf = strings.Repeat("a", 32), strings.Repeat("b", 32)
			},
			want: `{"id":"<id>","occurrence":"<occurrence>","job":"reports.nightly","trigger":"workdays","cause":"retry",` +
				`"scheduledAt":"2026-10-04T22:00:00Z","coveredUntil":null,"firedAt":"<firedAt>","attempt":2,` +
				`"retryOf":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","originalOccurrence":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","term":12,"version":3,"data":{"format":"pdf"}}`,
		},
		"times are UTC with at most microseconds, whatever zone and precision they come in": {
			change: func(a *run.Attempt) {
				a.Run.ScheduledAt = time.Date(2026, 10, 5, 6, 0, 0, 123456789, time.FixedZone("CST", 8*3600))
				a.Data = nil
			},
			want: `{"id":"<id>","occurrence":"<occurrence>","job":"reports.nightly","trigger":"workdays","cause":"schedule",` +
				`"scheduledAt":"2026-10-04T22:00:00.123456Z","coveredUntil":null,"firedAt":"<firedAt>","attempt":1,` +
				`"retryOf":null,"originalOccurrence":null,"term":12,"version":3,"data":null}`,
		},
		"numbers and texts of data arrive as they were written": {
			change: func(a *run.Attempt) {
				a.Data = json.RawMessage(`{"big":9007199254740993,"fine":0.1000000000000000055,"e":1E400,"z":-0.0,"t":"<b>&é\u00e9"}`)
			},
			want: `{"id":"<id>","occurrence":"<occurrence>","job":"reports.nightly","trigger":"workdays","cause":"schedule",` +
				`"scheduledAt":"2026-10-04T22:00:00Z","coveredUntil":null,"firedAt":"<firedAt>","attempt":1,` +
				`"retryOf":null,"originalOccurrence":null,"term":12,"version":3,` +
				`"data":{"big":9007199254740993,"fine":0.1000000000000000055,"e":1E400,"z":-0.0,"t":"<b>&é\u00e9"}}`,
		},
	}
	firedAt := regexp.MustCompile(`"firedAt":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)"`)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			target := startApp(t, app.Options{})
			a := attempt(target.URL() + "/jobs/report")
			tt.change(&a)
			before := time.Now().Truncate(time.Microsecond)
			checkOutcome(t, invoke(newClient(t, invoker.Options{}), a), succeeded, "")

			calls := target.Calls()
			if len(calls) != 1 {
				t.Fatalf("%d calls arrived, want 1", len(calls))
			}
			text := calls[0].Text
			m := firedAt.FindStringSubmatch(text)
			if m == nil {
				t.Fatalf("no firedAt in %s", text)
			}
			if at, err := time.Parse(time.RFC3339, m[1]); err != nil || at.Before(before) || at.After(calls[0].At) {
				t.Errorf("firedAt = %s, want between %s and %s (%v)", m[1], before, calls[0].At, err)
			}
			text = strings.NewReplacer(a.Run.ID, "<id>", a.Run.Occurrence, "<occurrence>", m[1], "<firedAt>").Replace(text)
			if diff := cmp.Diff(tt.want, text); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// Attempts that begin one after the other say so, whatever their goroutines do then.
func TestFiredAtIsWhenTheAttemptBegan(t *testing.T) {
	target := startApp(t, app.Options{})
	a := attempt(target.URL() + "/jobs/report")
	a.Run.FiredAt = time.Now().Add(-time.Second).UTC().Truncate(time.Microsecond)
	checkOutcome(t, invoke(newClient(t, invoker.Options{}), a), succeeded, "")
	if call := target.Calls()[0]; call.Body.FiredAt == nil || !call.Body.FiredAt.Equal(a.Run.FiredAt) {
		t.Errorf("firedAt = %v, want %s", call.Body.FiredAt, a.Run.FiredAt)
	}
}

func TestHeadersAreTheContract(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("  s3cret.token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const occurrence = "0123456789abcdef0123456789abcdef"
	base := map[string]string{
		"Content-Type":            "application/json",
		"User-Agent":              "leasecron/1.2.3",
		"Ce-Specversion":          "1.0",
		"Ce-Id":                   occurrence,
		"Ce-Source":               "/leasecron/team-a/shop/scheduling",
		"Ce-Type":                 "scheduling.run.due",
		"Ce-Subject":              "reports.nightly",
		"Ce-Time":                 "2026-10-04T22:00:00Z",
		"Leasecron-Trigger":       "workdays",
		"Leasecron-Run-Id":        "run-1",
		"Leasecron-Attempt":       "1",
		"Leasecron-Cause":         "schedule",
		"Leasecron-Fencing-Token": "12",
		"Idempotency-Key":         `"` + occurrence + `"`,
	}
	tests := map[string]struct {
		change  func(*run.Attempt)
		with    map[string]string
		without []string
	}{
		"of an ordinary run": {change: func(*run.Attempt) {}},
		"of a run without trigger and fencing token": {
			change:  func(a *run.Attempt) { a.Run.Key.Trigger, a.FencingTerm = "", 0 },
			without: []string{"Leasecron-Trigger", "Leasecron-Fencing-Token"},
		},
		"the job's own, with its token": {
			change: func(a *run.Attempt) { a.Headers, a.BearerFile = map[string]string{"X-Team": "data"}, token },
			with:   map[string]string{"X-Team": "data", "Authorization": "Bearer s3cret.token"},
		},
		"a job cannot speak for the protocol": {
			change: func(a *run.Attempt) {
				a.BearerFile = token
				a.Headers = map[string]string{
					"ce-id": "x", "CE-TYPE": "x", "Leasecron-Run-Id": "x", "idempotency-key": "x", "user-agent": "x",
					"Content-Type": "text/plain", "content-length": "3", "Host": "evil.example", "Transfer-Encoding": "gzip",
					"Connection": "close", "authorization": "Basic x", "Webhook-Id": "x", "Proxy-Connection": "x",
					"traceparent": "x", "Expect": "100-continue", "ce-mine": "x",
				}
			},
			with: map[string]string{"Authorization": "Bearer s3cret.token"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			target := startApp(t, app.Options{})
			a := attempt(target.URL() + "/jobs/report")
			a.Run.ID, a.Run.Occurrence = "run-1", occurrence
			tt.change(&a)
			checkOutcome(t, invoke(newClient(t, invoker.Options{Version: "1.2.3"}), a), succeeded, "")

			want := maps.Clone(base)
			maps.Copy(want, tt.with)
			for _, name := range tt.without {
				delete(want, name)
			}
			got := map[string]string{}
			for name, values := range target.Calls()[0].Header {
				if name != "Content-Length" {
					got[name] = strings.Join(values, " | ")
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
		})
	}
}
