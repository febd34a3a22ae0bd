package telemetry_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/telemetry"
)

// What the SDK would take as it is, mumble about or end the process on is refused: one line with the
// variable, its value and what is allowed.
func TestNumbersAndListsThatAreWrong(t *testing.T) {
	const (
		milliseconds = "want milliseconds, "
		pairs        = "want key=value pairs separated by commas, with percent-encoded values"
	)
	tests := []struct{ name, value, want string }{
		{"OTEL_BSP_MAX_QUEUE_SIZE", "-1", "want 1 to 65536"},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "0", "want 1 to 65536"},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "99999999999999", "want 1 to 65536"},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "-1", "want no more than OTEL_BSP_MAX_QUEUE_SIZE, 1 to 2048"},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2049", "want no more than OTEL_BSP_MAX_QUEUE_SIZE, 1 to 2048"},
		{"OTEL_BSP_SCHEDULE_DELAY", "0", milliseconds + "10 to 600000"},
		{"OTEL_BSP_SCHEDULE_DELAY", "-5", milliseconds + "10 to 600000"},
		{"OTEL_BSP_SCHEDULE_DELAY", "abc", milliseconds + "10 to 600000"},
		{"OTEL_BSP_SCHEDULE_DELAY", "5s", milliseconds + "10 to 600000"},
		{"OTEL_BSP_EXPORT_TIMEOUT", "-1", milliseconds + "1 to 600000"},
		{"OTEL_SDK_DISABLED", "maybe", "want true or false"},
		{"OTEL_PROPAGATORS", "tracecontext,w3c", "want a list of tracecontext, baggage, "},
		{"OTEL_RESOURCE_ATTRIBUTES", "broken", pairs},
		{"OTEL_RESOURCE_ATTRIBUTES", "a=b,=c", pairs},
		{"OTEL_RESOURCE_ATTRIBUTES", "a=%zz", pairs},
		{"OTEL_RESOURCE_ATTRIBUTES", "a=%ff", pairs},
		{"OTEL_SERVICE_NAME", "a\xff", "want at most 255 bytes of UTF-8"},
		{"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "many", "want a number or -1 for no limit, -1 to 1000000"},
		{"OTEL_ATTRIBUTE_COUNT_LIMIT", "-2", "want a number or -1 for no limit, -1 to 1000000"},
	}
	for _, tt := range tests {
		t.Run(tt.name+"="+tt.value, func(t *testing.T) {
			environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
			t.Setenv(tt.name, tt.value)
			tracing, err := telemetry.NewTracing(telemetry.TracingOptions{})
			if err == nil {
				tracing.Close()
				t.Fatal("it is accepted")
			}
			if text := err.Error(); !strings.HasPrefix(text, tt.name+"=") || !strings.Contains(text, tt.want) || strings.Contains(text, "\n") {
				t.Errorf("NewTracing() = %q, want one line: %s, the value, %q", text, tt.name, tt.want)
			}
		})
	}
}

// Where nothing is exported, nothing reads how: the app beside the sidecar may.
func TestHowToExportIsNotReadWithoutACollector(t *testing.T) {
	environment(t, map[string]string{"OTEL_BSP_MAX_QUEUE_SIZE": "-1", "OTEL_RESOURCE_ATTRIBUTES": "broken"})
	newTracing(t, telemetry.TracingOptions{})
}

// The extremes that are allowed work, and a queue smaller than a batch makes the batch smaller.
func TestNumbersThatAreAllowed(t *testing.T) {
	for name, vars := range map[string]map[string]string{
		"a queue of one":  {"OTEL_BSP_MAX_QUEUE_SIZE": "1"},
		"a long queue":    {"OTEL_BSP_MAX_QUEUE_SIZE": "65536", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "65536"},
		"spaces":          {"OTEL_BSP_EXPORT_TIMEOUT": " 5000 "},
		"no limit":        {"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "-1", "OTEL_PROPAGATORS": "b3, none", "OTEL_SDK_DISABLED": "FALSE"},
		"encoded strings": {"OTEL_RESOURCE_ATTRIBUTES": "team=a%2Cb, x = ", "OTEL_SERVICE_NAME": "größe"},
	} {
		t.Run(name, func(t *testing.T) {
			c := startCollector(t)
			vars["OTEL_EXPORTER_OTLP_ENDPOINT"] = c.URL()
			environment(t, vars)
			tracing := newTracing(t, telemetry.TracingOptions{})
			r := &recorder{outs: []run.Outcome{{State: run.StateSucceeded, Status: 200}}}
			tracing.Invoker(r).Invoke(t.Context(), tracedAttempt("a1"))
			if _, err := c.WaitFor(1, 5*time.Second); err != nil {
				t.Error(err)
			}
		})
	}
}
