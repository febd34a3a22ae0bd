package telemetry_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/telemetry"
)

// Spans that wait when the process ends, and that nobody takes, are told of before it has ended.
func TestSpansLostAtTheEndAreTold(t *testing.T) {
	tests := map[string]struct {
		hangs  bool
		reason string
	}{
		"a collector that is away": {reason: "connection refused"},
		"a collector that hangs":   {hangs: true, reason: "no answer before the process ended"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := startCollector(t)
			environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL()})
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "60000") // all of them wait for the end
			if tt.hangs {
				c.Answer(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
			} else {
				c.Close()
			}
			var log lockedBuffer
			tracing := newTracing(t, telemetry.TracingOptions{Log: slog.New(slog.NewJSONHandler(&log, nil))})
			r := &recorder{outs: []run.Outcome{{State: run.StateSucceeded, Status: 200}}}
			const spans = 1100 // two batches and a part
			for range spans {
				tracing.Invoker(r).Invoke(t.Context(), tracedAttempt(run.NewID()))
			}
			tracing.Close()
			if n := strings.Count(log.String(), "traces not exported"); n != 1 {
				t.Fatalf("it was said %d times:\n%s", n, log.String())
			}
			for text := range strings.Lines(log.String()) {
				if !strings.Contains(text, "traces not exported") {
					continue
				}
				var told struct {
					Count int    `json:"count"`
					Error string `json:"error"`
				}
				if err := json.Unmarshal([]byte(text), &told); err != nil || told.Count != spans {
					t.Errorf("%d spans are told (%v), want %d: %s", told.Count, err, spans, text)
				}
				if !strings.Contains(told.Error, tt.reason) {
					t.Errorf("the reason is %q, want %q", told.Error, tt.reason)
				}
			}
		})
	}
}
