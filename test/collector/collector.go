// Package collector is an OpenTelemetry collector for tests: it takes spans over OTLP/HTTP on a real
// loopback socket and keeps them.
package collector

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is one span as it arrived.
type Span struct {
	TraceID, SpanID, ParentID string // hex; no parent: empty
	Name                      string
	Kind                      string // as the protocol names it, such as SPAN_KIND_CLIENT
	Failed                    bool
	Start, End                time.Time
	Attributes                map[string]string
	Resource                  map[string]string
	Links                     []Link
	Events                    []string // their names
}

// Link leads from a span to another one.
type Link struct {
	TraceID, SpanID string
	Attributes      map[string]string
}

// Collector is a running collector. Its methods may be called concurrently.
type Collector struct {
	listener net.Listener
	server   *http.Server
	served   chan struct{}

	mu      sync.Mutex
	spans   []Span
	changed chan struct{} // closed and replaced with each batch
	answer  func(http.ResponseWriter, *http.Request) bool
	batches int
	headers http.Header // of the last batch
}

// Start starts a collector on a free port of 127.0.0.1.
func Start() (*Collector, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &Collector{listener: l, served: make(chan struct{}), changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", c.take)
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(c.served)
		_ = c.server.Serve(l)
	}()
	return c, nil
}

// Close ends it.
func (c *Collector) Close() {
	_ = c.server.Close()
	<-c.served
}

// URL is what OTEL_EXPORTER_OTLP_ENDPOINT has to be.
func (c *Collector) URL() string { return "http://" + c.listener.Addr().String() }

// Answer makes f answer from now on; where it returns false, or is nil, batches are taken.
func (c *Collector) Answer(f func(http.ResponseWriter, *http.Request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

// Batches says how many requests came, whatever became of them, and with which header the last one.
func (c *Collector) Batches() (n int, last http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.batches, c.headers
}

// Spans returns what was taken so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// WaitFor waits until at least n spans were taken and returns all of them.
func (c *Collector) WaitFor(n int, timeout time.Duration) ([]Span, error) {
	deadline := time.NewTimer(timeout)
	defer deadline.Stop()
	for {
		c.mu.Lock()
		spans, changed := append([]Span(nil), c.spans...), c.changed
		c.mu.Unlock()
		if len(spans) >= n {
			return spans, nil
		}
		select {
		case <-changed:
		case <-deadline.C:
			return spans, fmt.Errorf("%d spans arrived within %s, want %d", len(spans), timeout, n)
		}
	}
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.batches++
	c.headers = r.Header.Clone()
	answer := c.answer
	c.mu.Unlock()
	body, err := read(r)
	if answer != nil && answer(w, r) {
		return
	}
	var batch tracepb.TracesData
	if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, &batch) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = append(c.spans, Read(&batch)...)
	close(c.changed)
	c.changed = make(chan struct{})
}

func read(r *http.Request) ([]byte, error) {
	body := io.LimitReader(r.Body, 16<<20)
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = io.LimitReader(z, 16<<20)
	}
	return io.ReadAll(body)
}

// Read returns the spans of a batch.
func Read(batch *tracepb.TracesData) []Span {
	var spans []Span
	for _, of := range batch.GetResourceSpans() {
		resource := attributes(of.GetResource().GetAttributes())
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				span := Span{
					TraceID: hex.EncodeToString(s.GetTraceId()), SpanID: hex.EncodeToString(s.GetSpanId()),
					ParentID: hex.EncodeToString(s.GetParentSpanId()), Name: s.GetName(), Kind: s.GetKind().String(),
					Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
					Start:  nanoseconds(s.GetStartTimeUnixNano()), End: nanoseconds(s.GetEndTimeUnixNano()),
					Attributes: attributes(s.GetAttributes()), Resource: resource,
				}
				for _, l := range s.GetLinks() {
					span.Links = append(span.Links, Link{
						TraceID: hex.EncodeToString(l.GetTraceId()), SpanID: hex.EncodeToString(l.GetSpanId()),
						Attributes: attributes(l.GetAttributes()),
					})
				}
				for _, e := range s.GetEvents() {
					span.Events = append(span.Events, e.GetName())
				}
				spans = append(spans, span)
			}
		}
	}
	return spans
}

func attributes(list []*commonpb.KeyValue) map[string]string {
	m := make(map[string]string, len(list))
	for _, kv := range list {
		switch v := kv.GetValue().GetValue().(type) {
		case *commonpb.AnyValue_StringValue:
			m[kv.GetKey()] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			m[kv.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		case *commonpb.AnyValue_BoolValue:
			m[kv.GetKey()] = strconv.FormatBool(v.BoolValue)
		default:
			m[kv.GetKey()] = kv.GetValue().String()
		}
	}
	return m
}

func nanoseconds(n uint64) time.Time { return time.Unix(0, int64(n)) }
