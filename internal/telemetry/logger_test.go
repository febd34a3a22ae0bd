package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/klog/v2"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/telemetry"
)

// lines returns level and message of each line of a JSON log.
func lines(t *testing.T, log string) []string {
	t.Helper()
	out := []string{}
	for line := range strings.Lines(log) {
		var l struct{ Level, Msg string }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("not JSON: %s", line)
		}
		out = append(out, l.Level+" "+l.Msg)
	}
	return out
}

func TestNewLogger(t *testing.T) {
	tests := map[string]struct{ format, want string }{
		"json begins with time, level and message": {telemetry.FormatJSON, `{"time":"`},
		"text is for people":                       {telemetry.FormatText, `time=`},
		"a file or a pipe gets JSON by itself":     {telemetry.FormatAuto, `{"time":"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log := telemetry.NewLogger(&out, slog.LevelInfo, tt.format)
			log.Debug("not seen")
			log.Info("seen")
			if !strings.HasPrefix(out.String(), tt.want) || strings.Contains(out.String(), "not seen") {
				t.Errorf("wrote %q, want a line that begins with %q", out.String(), tt.want)
			}
		})
	}
}

// It changes klog for the whole process, which no other test here uses.
func TestKlogIsQuieter(t *testing.T) {
	var out bytes.Buffer
	telemetry.RouteKlog(telemetry.NewLogger(&out, slog.LevelInfo, telemetry.FormatJSON))
	t.Cleanup(klog.ClearLogger)
	klog.Info("watch closed")
	klog.Warning("watch of *v1.ConfigMap ended with: too old resource version")
	klog.Error("Failed to watch")
	klog.Flush()
	if diff := cmp.Diff([]string{"WARN Failed to watch"}, lines(t, out.String())); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if !strings.Contains(out.String(), `"component":"client-go"`) {
		t.Errorf("the line does not say where it comes from: %s", out.String())
	}
}

func TestLogEvents(t *testing.T) {
	end := func(state run.State, final bool) engine.RunEnded {
		return engine.RunEnded{Run: run.Run{Key: run.Key{Job: "a"}, State: state, Data: json.RawMessage(`{"secret":1}`), Message: "secret"}, Final: final}
	}
	broken := engine.Committed{Err: errors.New("no answer")}
	tests := map[string]struct {
		events []engine.Event
		want   []string
	}{
		"a term won":                   {[]engine.Event{engine.TermBegan{Term: 1}}, []string{"DEBUG leadership won"}},
		"a term handed over":           {[]engine.Event{engine.TermEnded{Term: 1}}, []string{"DEBUG leadership ended"}},
		"a term ended by a signal":     {[]engine.Event{engine.TermEnded{Term: 1, Err: errors.New("terminated signal received")}}, []string{"DEBUG leadership ended"}},
		"a term given up":              {[]engine.Event{engine.TermEnded{Term: 1, Err: engine.ErrTermOver}}, []string{"WARN leadership given up"}},
		"other jobs":                   {[]engine.Event{engine.JobsChanged{Jobs: []config.Job{{Name: "a"}}}}, []string{"DEBUG job set changed"}},
		"a run that failed for good":   {[]engine.Event{end(run.StateFailed, true)}, []string{"WARN run failed"}},
		"a run that will be repeated":  {[]engine.Event{end(run.StateFailed, false), engine.RetryPlanned{After: end(run.StateFailed, false).Run}}, []string{"INFO attempt failed, will be retried"}},
		"a lost run that is repeated":  {[]engine.Event{end(run.StateLost, false), engine.RetryPlanned{After: end(run.StateLost, false).Run}}, []string{"WARN run lost", "DEBUG retry planned"}},
		"a lost run":                   {[]engine.Event{end(run.StateLost, false)}, []string{"WARN run lost"}},
		"a run that a person must see": {[]engine.Event{end(run.StateNeedsReview, false)}, []string{"WARN run needs review"}},
		"a range of missed instants is one line": {
			[]engine.Event{engine.Missed{Key: run.Key{Job: "a"}, Reason: run.ReasonMisfire, Count: 5000, ScheduledAt: noon, CoveredUntil: noon.Add(time.Hour)}},
			[]string{"WARN instants missed"},
		},
		"a skip that the overlap policy asked for": {[]engine.Event{engine.Missed{Reason: run.ReasonOverlap, Count: 1}}, []string{"INFO instants missed"}},
		"the end of a ledger's outage is one line": {
			[]engine.Event{broken, broken, engine.Committed{}, engine.Committed{}},
			[]string{"DEBUG ledger not written", "DEBUG ledger not written", "INFO ledger can be written again"},
		},
		"a swap with nothing to write is no outage": {[]engine.Event{engine.Committed{Err: engine.ErrNoChange}}, []string{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			observer := telemetry.LogEvents(telemetry.NewLogger(&out, slog.LevelDebug, telemetry.FormatJSON), nil)
			for _, e := range tt.events {
				observer.Observe(e)
			}
			if diff := cmp.Diff(tt.want, lines(t, out.String())); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if strings.Contains(out.String(), "secret") {
				t.Errorf("a body was logged: %s", out.String())
			}
		})
	}
}

func TestALineOfAFailureSaysWhyItFailed(t *testing.T) {
	failed := run.Run{
		ID: "r1", Key: run.Key{Job: "a", Trigger: "b"}, Attempt: 1, Cause: run.CauseSchedule, State: run.StateFailed,
		ScheduledAt: noon, FiredAt: noon, EndedAt: noon.Add(2*time.Second + 3*time.Microsecond), Code: run.CodeFailed,
	}
	with := func(status int, message string) run.Run {
		r := failed
		r.Status, r.Message = status, message
		return r
	}
	retry := run.Run{DueAt: noon.Add(time.Minute)}
	tests := map[string]struct {
		event engine.Event
		want  map[string]any // nil: the line has no such key
	}{
		"no answer has no status": {
			engine.RunEnded{Run: with(0, "connection refused"), Final: true},
			map[string]any{"msg": "run failed", "reason": "connection refused", "status": nil, "duration": "2s"},
		},
		"an answer has one": {
			engine.RunEnded{Run: with(500, "no disk"), Final: true},
			map[string]any{"msg": "run failed", "reason": "no disk", "status": 500.0, "due_at": nil},
		},
		"a long message is cut at a whole character": {
			engine.RunEnded{Run: with(500, "x"+strings.Repeat("é", 500)), Final: true},
			map[string]any{"reason": "x" + strings.Repeat("é", 127) + "…"},
		},
		"a failure that is repeated says when": {
			engine.RetryPlanned{Run: retry, After: with(503, "not this time")},
			map[string]any{"msg": "attempt failed, will be retried", "attempt": 1.0, "reason": "not this time", "due_at": "2026-11-30T12:01:00Z"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			telemetry.LogEvents(telemetry.NewLogger(&out, slog.LevelInfo, telemetry.FormatJSON), nil).Observe(tt.event)
			var line map[string]any
			if err := json.Unmarshal(out.Bytes(), &line); err != nil {
				t.Fatalf("log %q: %v", out.String(), err)
			}
			for key, want := range tt.want {
				if diff := cmp.Diff(want, line[key]); diff != "" {
					t.Errorf("%s (-want +got):\n%s", key, diff)
				}
			}
		})
	}
}

// R199: an hour of normal work leaves no warning, and changes of leadership are counted right.
func TestAnHourOfNormalWorkLogsNoWarning(t *testing.T) {
	var out bytes.Buffer
	w := newWorld(t)
	observers := []engine.Observer{w, telemetry.LogEvents(telemetry.NewLogger(&out, slog.LevelInfo, telemetry.FormatJSON), nil)}
	emit := func(e engine.Event) {
		for _, o := range observers {
			o.Observe(e)
		}
	}
	emit(engine.TermBegan{Term: 1})
	emit(jobs("a"))
	for range 3600 {
		emit(engine.Committed{Took: time.Millisecond})
		emit(engine.RunStarted{Run: run.Run{Key: run.Key{Job: "a"}}})
		emit(ended("a", run.StateSucceeded, time.Millisecond))
	}
	emit(engine.TermEnded{Term: 1})
	if diff := cmp.Diff([]string{}, lines(t, out.String())); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	w.want([]string{"leader_transitions_total{} 1", "leadership_lost_total{} 0"}, "leader_transitions_total", "leadership_lost_total")
}
