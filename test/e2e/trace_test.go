package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/leasecron/leasecron/internal/telemetry/otlp"
	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/collector"
)

// TestATraceGoesOnInTheApp: the sidecar's process and an app that is instrumented in the ordinary way
// send their spans to one collector, where the app's hang beneath the sidecar's. Issue 6, must show 4.
func TestATraceGoesOnInTheApp(t *testing.T) {
	t.Parallel()
	c, err := collector.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()

	// The app: OpenTelemetry's SDK with its default, parent-based sampler.
	client, err := otlp.New(func(name string) string {
		return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL()}[name]
	}, "shop")
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSyncer(otlptrace.NewUnstarted(client)),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "shop"))),
	)
	handle := func(call app.Call) {
		ctx := propagation.TraceContext{}.Extract(t.Context(), propagation.HeaderCarrier(call.Header))
		_, span := provider.Tracer("shop").Start(ctx, "report")
		span.End()
	}
	a, err := app.Start(app.Options{OnCall: handle})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.Script("/report", app.Status(503), app.Status(200))

	jobs := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(jobs, []byte("jobs:\n- {name: report, path: /report, schedule: manual, retry: {maxRetries: 1, delay: 100ms}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := cluster.Start(t, a, cluster.Settings{
		"ELECTION": "standalone", "JOBS_FILE": jobs, "TARGET": a.URL(), "APP": "shop", "LOG_LEVEL": "debug",
		"!OTEL_EXPORTER_OTLP_ENDPOINT": c.URL(), "!OTEL_BSP_SCHEDULE_DELAY": "60000", // the end of the process sends them
	})
	cluster.Eventually(t, 10*time.Second, "the job can be run", func() bool {
		_, err := s.Enqueue("report")
		return err == nil
	})
	calls := waitCalls(t, a, 2)
	cluster.Eventually(t, 10*time.Second, "both attempts to have ended", func() bool {
		return strings.Contains(s.Log(), "attempt failed, will be retried") && strings.Contains(s.Log(), "run ended")
	})
	s.Stop(t, 10*time.Second)
	spans, err := c.WaitFor(4, 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]map[string]collector.Span{"shop": {}, "shop-leasecron": {}}
	for _, span := range spans {
		of[span.Resource["service.name"]][span.TraceID] = span
	}
	if len(spans) != 4 || len(of["shop"]) != 2 || len(of["shop-leasecron"]) != 2 {
		t.Fatalf("spans %+v, want one of each in two traces", spans)
	}
	for traceID, outer := range of["shop-leasecron"] {
		inner := of["shop"][traceID]
		if inner.Name != "report" || inner.ParentID != outer.SpanID || outer.ParentID != "" {
			t.Errorf("the app's span %+v is no child of the sidecar's %+v", inner, outer)
		}
		if inner.Start.Before(outer.Start) || inner.End.After(outer.End) {
			t.Errorf("the app's span lasts from %s to %s, the sidecar's from %s to %s", inner.Start, inner.End, outer.Start, outer.End)
		}
		if !strings.Contains(s.Log(), `"trace_id":"`+traceID+`"`) {
			t.Errorf("trace %s is in no line of the log", traceID)
		}
		if outer.Attributes["leasecron.run.attempt"] == "2" {
			first := calls[0].Header.Get("Traceparent")
			if len(outer.Links) != 1 || !strings.Contains(first, outer.Links[0].TraceID+"-"+outer.Links[0].SpanID) {
				t.Errorf("links of the retry %+v, want one to %s", outer.Links, first)
			}
		}
	}
}

func TestAProtocolThatIsNotSupportedStopsTheSidecar(t *testing.T) {
	t.Parallel()
	jobs := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(jobs, []byte("jobs: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := cluster.Launch(nil, cluster.Settings{
		"ELECTION": "standalone", "JOBS_FILE": jobs,
		"!OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318", "!OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
	})
	if err != nil {
		t.Fatal(err)
	}
	if code := s.Wait(t, 10*time.Second); code != 2 || !strings.Contains(s.Log(), "want http/protobuf or grpc") {
		t.Errorf("exit code %d:\n%s", code, s.Log())
	}
}
