package telemetry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/logkey"
	"github.com/leasecron/leasecron/internal/telemetry/otlp"
)

// flushTime bounds what the last spans may cost the end of the process.
const flushTime = 2 * time.Second

// tellTime is what is left of it to give up what hangs and to say so.
const tellTime = 250 * time.Millisecond

// TracingOptions say who traces. Everything else comes from the variables OTEL_….
type TracingOptions struct {
	App, Namespace, Node, Version string
	PodName, PodUID               string // empty outside of a pod
	// Failed is told each batch of spans that was not exported; it must not block.
	Failed func()
	Log    *slog.Logger // nil: nothing is logged
}

// Tracing makes one span of each attempt of a run and tells the app its context. Its methods may be
// called concurrently. A nil one does nothing.
//
// The identifiers of a run's span are derived from the run's: whoever knows the run, on any replica
// and at any time, knows its trace, so that logs and links need no record of it.
type Tracing struct {
	propagate bool
	sampler   sdktrace.Sampler
	provider  *sdktrace.TracerProvider // nil: nothing is exported
	tracer    trace.Tracer
	exporter  *quietExporter
}

// NewTracing reads the environment. Spans are exported where it names a collector or the exporter
// "otlp"; without that, the app is told a context all the same. OTEL_SDK_DISABLED=true: neither, and
// the result is nil. An error names the variable to correct. It connects to nothing.
func NewTracing(o TracingOptions) (*Tracing, error) {
	env, err := readTraceEnv(os.Getenv)
	if err != nil {
		return nil, err
	}
	if env.disabled {
		return nil, nil //nolint:nilnil // a nil one does nothing
	}
	t := &Tracing{propagate: env.propagate, sampler: env.sampler}
	if !env.export {
		return t, nil
	}
	client, err := otlp.New(os.Getenv, "leasecron/"+cmp.Or(o.Version, "dev"))
	if err != nil {
		return nil, err
	}
	batches, limits, err := readExportEnv(os.Getenv)
	if err != nil {
		return nil, err
	}
	// What the environment says of the resource wins.
	res, err := resource.New(context.Background(),
		resource.WithTelemetrySDK(), resource.WithAttributes(resourceAttributes(o)...), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) && !errors.Is(err, resource.ErrSchemaURLConflict) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler)).With(slog.String(logkey.Component, "tracing"))
	t.exporter = &quietExporter{
		next: otlptrace.NewUnstarted(client), stop: client.Stop, log: log, failed: o.Failed, endpoint: client.Endpoint(),
		ended: make(chan struct{}),
	}
	t.provider = sdktrace.NewTracerProvider(
		sdktrace.WithResource(res), sdktrace.WithSampler(env.sampler), sdktrace.WithIDGenerator(spanIDs{}),
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithBatcher(t.exporter, batches...), // drops spans rather than wait
	)
	t.tracer = t.provider.Tracer("github.com/leasecron/leasecron", trace.WithInstrumentationVersion(o.Version))
	log.Info("traces are exported", slog.String("endpoint", client.Endpoint()))
	return t, nil
}

// Close exports what is left, for at most two seconds, ends what is under way, and logs what was lost.
func (t *Tracing) Close() {
	if t == nil || t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	flush, stop := context.WithTimeout(ctx, flushTime-tellTime)
	defer stop()
	t.exporter.closing()
	_ = t.provider.Shutdown(flush) // failures are told by the exporter
	t.exporter.end(ctx)
}

// IDs are the identifiers of a run's span, empty where there is none.
func (t *Tracing) IDs(r run.Run) (traceID, spanID string) {
	if t == nil || r.ID == "" {
		return "", ""
	}
	tid, sid := identify(r.ID)
	return tid.String(), sid.String()
}

// identify derives a trace and a span from the identifier of a run. The run's own digits would not
// do: samplers take a trace's for random, and a UUIDv7 has a time and fixed bits in it.
func identify(runID string) (trace.TraceID, trace.SpanID) {
	sum := sha256.Sum256([]byte("leasecron trace v1\x00" + runID))
	return trace.TraceID(sum[:16]), trace.SpanID(sum[16:24])
}

// RouteOTel makes what OpenTelemetry has to say on its own a line of the program's log.
func RouteOTel(log *slog.Logger) {
	log = log.With(slog.String(logkey.Component, "tracing"))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.LogAttrs(context.Background(), slog.LevelDebug, "opentelemetry", logkey.Err(err))
	}))
}
