package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/telemetry"
	"github.com/leasecron/leasecron/test/collector"
)

// recorder is an invoker that remembers what it was told to deliver.
type recorder struct {
	mu   sync.Mutex
	got  []run.Attempt
	outs []run.Outcome // the last one stays
}

func (r *recorder) Invoke(_ context.Context, a run.Attempt) run.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, a)
	out := r.outs[min(len(r.got), len(r.outs))-1]
	if !out.NotSent {
		a.Started(time.Now())
	}
	out.EndedAt = time.Now()
	return out
}

func (r *recorder) last() run.Attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got[len(r.got)-1]
}

// lockedBuffer is a log that the exporter may still write to.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// environment sets the variables of OpenTelemetry, and clears those that the machine may have.
func environment(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "OTEL_PROPAGATORS",
		"OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TIMEOUT",
		"OTEL_BSP_EXPORT_TIMEOUT", "OTEL_BSP_MAX_QUEUE_SIZE", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
		"OTEL_ATTRIBUTE_COUNT_LIMIT", "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT",
	} {
		t.Setenv(name, vars[name])
	}
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "50") // milliseconds
}

func startCollector(t *testing.T) *collector.Collector {
	t.Helper()
	c, err := collector.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newTracing(t *testing.T, o telemetry.TracingOptions) *telemetry.Tracing {
	t.Helper()
	tracing, err := telemetry.NewTracing(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tracing.Close)
	return tracing
}

func tracedAttempt(id string) run.Attempt {
	return run.Attempt{
		Namespace: "team-a", App: "shop", FencingTerm: 12, Method: "POST", URL: "http://127.0.0.1:8080/jobs/report?token=hunter2",
		Run: run.Run{
			ID: id, Occurrence: "5f0e3f8d7c6b5a493827161504f3e2d1", Key: run.Key{Job: "reports", Trigger: "workdays"},
			Version: 3, Attempt: 1, Cause: run.CauseSchedule, ScheduledAt: noon, FiredAt: noon,
		},
	}
}

var traceParent = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-0([01])$`)

func TestASpanForEachAttempt(t *testing.T) {
	c := startCollector(t)
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL(), "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=test,k8s.pod.name=by-hand"})
	tracing := newTracing(t, telemetry.TracingOptions{App: "shop", Namespace: "team-a", Node: "shop-0-x", PodName: "shop-0", Version: "v1"})
	r := &recorder{outs: []run.Outcome{
		{State: run.StateFailed, Code: run.CodeFailed, Status: 503, Retryable: true, Message: "busy"},
		{State: run.StateSucceeded, Status: 200},
		{State: run.StateCanceled, Code: run.CodeCanceled, NotSent: true, Refused: true},
	}}
	first, again, handedBack := tracedAttempt("a1"), tracedAttempt("a2"), tracedAttempt("a3")
	again.Run.RetryOf, again.Run.Attempt, again.Run.Cause = "a1", 2, run.CauseRetry
	invoker := tracing.Invoker(r)
	var parents []string
	for _, a := range []run.Attempt{first, again, handedBack} {
		started := 0
		a.Started = func(time.Time) { started++ }
		out := invoker.Invoke(t.Context(), a)
		if want := map[bool]int{true: 0, false: 1}[out.NotSent]; started != want {
			t.Errorf("Started was told %d times, want %d", started, want)
		}
		parents = append(parents, r.last().TraceParent)
	}
	_, err := c.WaitFor(2, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	tracing.Close()
	spans := c.Spans()
	if len(spans) != 2 {
		t.Fatalf("%d spans, want 2: one that was handed back is another node's to tell", len(spans))
	}
	for i, s := range spans {
		if want := "00-" + s.TraceID + "-" + s.SpanID + "-01"; parents[i] != want {
			t.Errorf("the app was told %s, the span is %s", parents[i], want)
		}
		a := []run.Attempt{first, again}[i]
		if traceID, spanID := tracing.IDs(a.Run); traceID != s.TraceID || spanID != s.SpanID {
			t.Errorf("IDs(%s) = %s, %s, the span is %s, %s", a.Run.ID, traceID, spanID, s.TraceID, s.SpanID)
		}
		if s.ParentID != "" || s.Name != "run reports" || s.Kind != "SPAN_KIND_CLIENT" || s.Failed != (i == 0) || s.End.Before(s.Start) {
			t.Errorf("span %+v", s)
		}
		if diff := cmp.Diff([]string{"request.started"}, s.Events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	if spans[0].TraceID == spans[1].TraceID {
		t.Error("both attempts are in one trace")
	}
	want := map[string]string{
		"leasecron.job.name": "reports", "leasecron.job.version": "3", "leasecron.trigger.name": "workdays", "leasecron.run.id": "a1",
		"leasecron.occurrence.id": "5f0e3f8d7c6b5a493827161504f3e2d1", "leasecron.run.attempt": "1", "leasecron.run.cause": "schedule",
		"leasecron.run.scheduled_at": noon.UTC().Format(time.RFC3339Nano), "leasecron.term": "12", "leasecron.run.outcome": "failed",
		"leasecron.run.code": "SCHEDULING_UNEXPECTED_001", "error.type": "503", "http.request.method": "POST",
		"http.response.status_code": "503", "url.full": "http://127.0.0.1:8080/jobs/report", "server.address": "127.0.0.1", "server.port": "8080",
	}
	if diff := cmp.Diff(want, spans[0].Attributes); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	link := []collector.Link{{
		TraceID: spans[0].TraceID, SpanID: spans[0].SpanID,
		Attributes: map[string]string{"leasecron.link": "first-attempt", "leasecron.run.id": "a1"},
	}}
	if diff := cmp.Diff(link, spans[1].Links); diff != "" || spans[0].Links != nil {
		t.Errorf("links of the retry (-want +got):\n%s\nof the first: %v", diff, spans[0].Links)
	}
	for name, want := range map[string]string{
		"service.name": "shop-leasecron", "service.version": "v1", "service.instance.id": "shop-0-x", "k8s.namespace.name": "team-a",
		"k8s.pod.name": "by-hand", "deployment.environment.name": "test",
	} {
		if got := spans[0].Resource[name]; got != want {
			t.Errorf("resource %s = %q, want %q", name, got, want)
		}
	}
}

func TestWhatTheAppIsTold(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		want string // the flag; empty: no context
	}{
		"nothing is configured: the app decides for itself": {nil, "1"},
		"switched off":                      {map[string]string{"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "nonsense"}, ""},
		"no export":                         {map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, "1"},
		"never sampled":                     {map[string]string{"OTEL_TRACES_SAMPLER": "always_off"}, "0"},
		"none of a ratio":                   {map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, "0"},
		"never sampled, with a collector":   {map[string]string{"OTEL_TRACES_SAMPLER": "always_off", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, "0"},
		"another propagator":                {map[string]string{"OTEL_PROPAGATORS": "b3"}, ""},
		"among others":                      {map[string]string{"OTEL_PROPAGATORS": "baggage, tracecontext"}, "1"},
		"a service name makes no collector": {map[string]string{"OTEL_SERVICE_NAME": "x"}, "1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			environment(t, tt.env)
			tracing := newTracing(t, telemetry.TracingOptions{})
			r := &recorder{outs: []run.Outcome{{State: run.StateSucceeded, NotSent: true}}}
			tracing.Invoker(r).Invoke(t.Context(), tracedAttempt("a1"))
			got := r.last()
			m := traceParent.FindStringSubmatch(got.TraceParent)
			if tt.want == "" && got.TraceParent == "" {
				return
			}
			if m == nil || m[3] != tt.want {
				t.Fatalf("traceparent = %q, want the flag %q", got.TraceParent, tt.want)
			}
			if traceID, spanID := tracing.IDs(got.Run); traceID != m[1] || spanID != m[2] {
				t.Errorf("IDs() = %s, %s, the app was told %s", traceID, spanID, got.TraceParent)
			}
		})
	}
}

// A sampler takes the identifiers of traces for random: half of them is half of the runs, although a
// run's identifier begins with its time.
func TestSamplingByRatio(t *testing.T) {
	environment(t, map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"})
	tracing := newTracing(t, telemetry.TracingOptions{})
	r := &recorder{outs: []run.Outcome{{State: run.StateSucceeded, NotSent: true}}}
	invoker, sampled := tracing.Invoker(r), 0
	const runs = 2000
	for range runs {
		invoker.Invoke(t.Context(), tracedAttempt(run.NewID()))
		if strings.HasSuffix(r.last().TraceParent, "-01") {
			sampled++
		}
	}
	if sampled < runs*2/5 || sampled > runs*3/5 {
		t.Errorf("%d of %d runs are sampled, want about half", sampled, runs)
	}
}

func TestVariablesThatAreWrong(t *testing.T) {
	tests := map[string]struct {
		env  map[string]string
		want string
	}{
		"protocol": {
			map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
			`OTEL_EXPORTER_OTLP_PROTOCOL="http/json" is not supported: want http/protobuf or grpc`,
		},
		"exporter": {map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, `OTEL_TRACES_EXPORTER="zipkin" is not supported: want otlp or none`},
		"sampler":  {map[string]string{"OTEL_TRACES_SAMPLER": "xray"}, `OTEL_TRACES_SAMPLER="xray" is not supported`},
		"ratio":    {map[string]string{"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "NaN"}, `OTEL_TRACES_SAMPLER_ARG="NaN": want a number from 0 to 1`},
		"endpoint": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, `OTEL_EXPORTER_OTLP_ENDPOINT: want a URL`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			environment(t, tt.env)
			if _, err := telemetry.NewTracing(telemetry.TracingOptions{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("NewTracing() = %v, want %q", err, tt.want)
			}
		})
	}
}

// A collector that is away, fails or hangs delays no run, and the end of the process by two seconds at
// most; it is spoken of once.
func TestACollectorInTrouble(t *testing.T) {
	hang := make(chan struct{})
	tests := map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		gone   bool
		said   bool // before Close gives up on it
	}{
		"away": {gone: true, said: true},
		"it refuses": {said: true, answer: func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusForbidden)
			return true
		}},
		"it hangs": {answer: func(_ http.ResponseWriter, r *http.Request) bool {
			select {
			case <-hang:
			case <-r.Context().Done():
			}
			return true
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := startCollector(t)
			c.Answer(tt.answer)
			if tt.gone {
				c.Close()
			}
			environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL(), "OTEL_EXPORTER_OTLP_TIMEOUT": "100"})
			if name == "it hangs" {
				t.Setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "60000")
			}
			var log lockedBuffer
			var mu sync.Mutex
			failed := 0
			tracing := newTracing(t, telemetry.TracingOptions{
				Log:    slog.New(slog.NewJSONHandler(&log, nil)),
				Failed: func() { mu.Lock(); failed++; mu.Unlock() },
			})
			r := &recorder{outs: []run.Outcome{{State: run.StateSucceeded, Status: 200}}}
			invoker := tracing.Invoker(r)
			start := time.Now()
			for range 3000 { // more than the queue holds
				invoker.Invoke(t.Context(), tracedAttempt(run.NewID()))
			}
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("3000 attempts took %s", took)
			}
			if tt.said {
				deadline := time.Now().Add(5 * time.Second)
				for n := 0; n < 2 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
					mu.Lock()
					n = failed
					mu.Unlock()
				}
			}
			start = time.Now()
			tracing.Close()
			if took := time.Since(start); took > 2500*time.Millisecond {
				t.Errorf("Close took %s", took)
			}
			if n := strings.Count(log.String(), "traces not exported"); n != 1 {
				t.Errorf("it was said %d times:\n%s", n, log.String())
			}
		})
	}
	close(hang)
}

func TestExportsThatWorkAgain(t *testing.T) {
	c := startCollector(t)
	c.Answer(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(http.StatusForbidden); return true })
	environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL()})
	var log lockedBuffer
	failures := make(chan struct{}, 10)
	tracing := newTracing(t, telemetry.TracingOptions{Log: slog.New(slog.NewJSONHandler(&log, nil)), Failed: func() { failures <- struct{}{} }})
	r := &recorder{outs: []run.Outcome{{State: run.StateSucceeded, Status: 200}}}
	tracing.Invoker(r).Invoke(t.Context(), tracedAttempt("a1"))
	<-failures
	c.Answer(nil)
	tracing.Invoker(r).Invoke(t.Context(), tracedAttempt("a2"))
	if _, err := c.WaitFor(1, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	tracing.Close()
	if text := log.String(); strings.Count(text, "traces not exported") != 1 || strings.Count(text, "exported again") != 1 {
		t.Errorf("log:\n%s", text)
	}
}

func TestLogsOfARunCarryItsTrace(t *testing.T) {
	environment(t, nil)
	tracing := newTracing(t, telemetry.TracingOptions{})
	var out bytes.Buffer
	log := telemetry.LogEvents(telemetry.NewLogger(&out, slog.LevelInfo, telemetry.FormatJSON), tracing)
	a := tracedAttempt("a1")
	a.Run.State, a.Run.Code, a.Run.EndedAt = run.StateFailed, run.CodeFailed, noon
	log.Observe(engine.RunEnded{Run: a.Run, Final: true})
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(errors.Join(err, errors.New(out.String())))
	}
	if traceID, spanID := tracing.IDs(a.Run); line["trace_id"] != traceID || line["span_id"] != spanID || traceID == "" {
		t.Errorf("line %v, want trace %s and span %s", line, traceID, spanID)
	}
	out.Reset()
	a.Run.FiredAt = time.Time{} // the app was never told
	log.Observe(engine.RunEnded{Run: a.Run, Final: true})
	if strings.Contains(out.String(), "trace_id") {
		t.Errorf("a run that was not fired has a trace: %s", out.String())
	}
}
