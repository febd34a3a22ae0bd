package telemetry

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
)

// The attributes of a run's span. Those without the prefix are OpenTelemetry's semantic conventions
// for HTTP clients; they know neither jobs nor schedulers, so that the rest are our own.
const (
	attrJob         = attribute.Key("leasecron.job.name")
	attrJobVersion  = attribute.Key("leasecron.job.version")
	attrTrigger     = attribute.Key("leasecron.trigger.name")
	attrRun         = attribute.Key("leasecron.run.id")
	attrOccurrence  = attribute.Key("leasecron.occurrence.id")
	attrAttempt     = attribute.Key("leasecron.run.attempt")
	attrCause       = attribute.Key("leasecron.run.cause")
	attrScheduledAt = attribute.Key("leasecron.run.scheduled_at")
	attrTerm        = attribute.Key("leasecron.term")
	attrOutcome     = attribute.Key("leasecron.run.outcome")
	attrCode        = attribute.Key("leasecron.run.code")
	attrNotSent     = attribute.Key("leasecron.run.not_sent")
	attrUnknown     = attribute.Key("leasecron.run.outcome_unknown")
	attrLink        = attribute.Key("leasecron.link") // of the link to the first attempt

	attrMethod    = attribute.Key("http.request.method")
	attrStatus    = attribute.Key("http.response.status_code")
	attrURL       = attribute.Key("url.full") // without the query
	attrServer    = attribute.Key("server.address")
	attrPort      = attribute.Key("server.port")
	attrErrorType = attribute.Key("error.type")
)

// eventSent is the moment at which the first byte of the request was written.
const eventSent = "request.started"

// resourceAttributes say whose spans these are.
func resourceAttributes(o TracingOptions) []attribute.KeyValue {
	name := "leasecron"
	if o.App != "" && o.App != name {
		name = o.App + "-leasecron"
	}
	attrs := []attribute.KeyValue{
		attribute.String("service.name", name), attribute.String("service.version", o.Version),
		attribute.String("service.instance.id", o.Node), attribute.String("service.namespace", o.Namespace),
	}
	if o.PodName != "" {
		attrs = append(attrs, attribute.String("k8s.pod.name", o.PodName), attribute.String("k8s.namespace.name", o.Namespace))
	}
	if o.PodUID != "" {
		attrs = append(attrs, attribute.String("k8s.pod.uid", o.PodUID))
	}
	return attrs
}

// Invoker returns an invoker that traces what next delivers.
func (t *Tracing) Invoker(next engine.Invoker) engine.Invoker {
	if t == nil {
		return next
	}
	return &tracedInvoker{t, next}
}

type tracedInvoker struct {
	*Tracing
	next engine.Invoker
}

// Invoke implements [engine.Invoker].
func (i *tracedInvoker) Invoke(ctx context.Context, a run.Attempt) run.Outcome {
	if i.provider == nil {
		i.tell(&a, i.contextOf(a))
		return i.next.Invoke(ctx, a)
	}
	// A trace of its own for each attempt: a retry may come hours after the trace of the first one
	// was closed and judged. The link leads back.
	_, span := i.tracer.Start(context.WithValue(context.Background(), spanOf{}, a.Run.ID), "run "+a.Run.Key.Job,
		trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attemptAttributes(a)...), trace.WithLinks(i.links(a.Run)...))
	i.tell(&a, span.SpanContext())
	started := a.Started
	a.Started = func(at time.Time) {
		span.AddEvent(eventSent, trace.WithTimestamp(at))
		if started != nil {
			started(at)
		}
	}
	out := i.next.Invoke(ctx, a)
	if out.Refused { // another node sends it, and its span has these identifiers
		return out
	}
	span.SetAttributes(outcomeAttributes(out)...)
	if out.State == run.StateFailed {
		span.SetStatus(codes.Error, clip(out.Message, maxReason))
	}
	span.End(trace.WithTimestamp(out.EndedAt))
	return out
}

// contextOf is the context of an attempt that nothing is recorded of. The sampler decides about the
// flag all the same: it tells the app what to do, and a flag that says no makes it drop its own
// spans, which whoever traces only the app would miss.
func (t *Tracing) contextOf(a run.Attempt) trace.SpanContext {
	tid, sid := identify(a.Run.ID)
	var flags trace.TraceFlags
	verdict := t.sampler.ShouldSample(sdktrace.SamplingParameters{
		ParentContext: context.Background(), TraceID: tid, Name: "run " + a.Run.Key.Job, Kind: trace.SpanKindClient,
	})
	if verdict.Decision == sdktrace.RecordAndSample {
		flags = trace.FlagsSampled
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: tid, SpanID: sid, TraceFlags: flags, TraceState: verdict.Tracestate})
}

// tell gives the app the context that its spans join.
func (t *Tracing) tell(a *run.Attempt, sc trace.SpanContext) {
	if !t.propagate {
		return
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), sc), carrier)
	a.TraceParent, a.TraceState = carrier["traceparent"], carrier["tracestate"]
}

// links lead from a retry or a recovery to the first attempt of the occurrence.
func (t *Tracing) links(r run.Run) []trace.Link {
	if r.RetryOf == "" || r.RetryOf == r.ID {
		return nil
	}
	tid, sid := identify(r.RetryOf)
	return []trace.Link{{
		SpanContext: trace.NewSpanContext(trace.SpanContextConfig{TraceID: tid, SpanID: sid, Remote: true}),
		Attributes:  []attribute.KeyValue{attrLink.String("first-attempt"), attrRun.String(r.RetryOf)},
	}}
}

func attemptAttributes(a run.Attempt) []attribute.KeyValue {
	r := a.Run
	attrs := []attribute.KeyValue{
		attrJob.String(r.Key.Job), attrJobVersion.Int(r.Version), attrRun.String(r.ID), attrOccurrence.String(r.Occurrence),
		attrAttempt.Int(r.Attempt), attrCause.String(string(r.Cause)),
		attrScheduledAt.String(r.ScheduledAt.UTC().Format(time.RFC3339Nano)), attrMethod.String(cmp.Or(a.Method, "POST")),
	}
	if r.Key.Trigger != "" {
		attrs = append(attrs, attrTrigger.String(r.Key.Trigger))
	}
	if a.FencingTerm != 0 {
		attrs = append(attrs, attrTerm.Int64(a.FencingTerm))
	}
	u, err := url.Parse(a.URL)
	if err != nil || u.Host == "" {
		return attrs
	}
	attrs = append(attrs, attrServer.String(u.Hostname()))
	if port, err := strconv.Atoi(u.Port()); err == nil {
		attrs = append(attrs, attrPort.Int(port))
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return append(attrs, attrURL.String(u.String()))
}

func outcomeAttributes(o run.Outcome) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attrOutcome.String(outcomeLabel(o.State))}
	if o.Status != 0 {
		attrs = append(attrs, attrStatus.Int(o.Status))
	}
	if o.NotSent {
		attrs = append(attrs, attrNotSent.Bool(true))
	}
	if o.Unknown {
		attrs = append(attrs, attrUnknown.Bool(true))
	}
	if o.Code == "" {
		return attrs
	}
	kind := string(o.Code)
	if o.Status != 0 { // the conventions want the status where there is one
		kind = strconv.Itoa(o.Status)
	}
	return append(attrs, attrCode.String(string(o.Code)), attrErrorType.String(kind))
}

// spanOf is the key of the context value that holds the run whose span is started.
type spanOf struct{}

// spanIDs derives the identifiers of spans.
type spanIDs struct{}

// NewIDs implements [sdktrace.IDGenerator].
func (spanIDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	runID, _ := ctx.Value(spanOf{}).(string)
	return identify(runID)
}

// NewSpanID implements [sdktrace.IDGenerator]. No span is started beneath another one.
func (spanIDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	runID, _ := ctx.Value(spanOf{}).(string)
	_, id := identify(runID)
	return id
}
