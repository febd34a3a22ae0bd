package otlp_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	_ "google.golang.org/grpc/encoding/gzip" // the server takes compressed messages
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasecron/leasecron/internal/telemetry/otlp"
	"github.com/leasecron/leasecron/test/collector"
)

// env is an environment.
type env map[string]string

func (e env) get(name string) string { return e[name] }

// batch holds one span.
func batch() []*tracepb.ResourceSpans {
	return []*tracepb.ResourceSpans{{ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{{Name: "run a", TraceId: make([]byte, 16), SpanId: make([]byte, 8)}}}}}}
}

func upload(t *testing.T, e env) error {
	t.Helper()
	c, err := otlp.New(e.get, "leasecron/test")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Stop(context.Background()) }()
	return c.UploadTraces(t.Context(), batch())
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

func TestHTTP(t *testing.T) {
	tests := map[string]struct {
		env   env
		check func(http.Header) bool
	}{
		"an endpoint for all signals is a base": {env{"OTEL_EXPORTER_OTLP_ENDPOINT": "URL/"}, nil},
		"one for traces is used as it is":       {env{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "URL/v1/traces", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, nil},
		"headers": {
			env{"OTEL_EXPORTER_OTLP_ENDPOINT": "URL", "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Basic%20aHVudGVyMg==, x-team=data"},
			func(h http.Header) bool {
				return h.Get("Authorization") == "Basic aHVudGVyMg==" && h.Get("X-Team") == "data" && h.Get("User-Agent") == "leasecron/test"
			},
		},
		"compressed": {
			env{"OTEL_EXPORTER_OTLP_ENDPOINT": "URL", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"},
			func(h http.Header) bool { return h.Get("Content-Encoding") == "gzip" },
		},
		"the protocol by name": {env{"OTEL_EXPORTER_OTLP_ENDPOINT": "URL", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := startCollector(t)
			for name, value := range tt.env {
				tt.env[name] = strings.Replace(value, "URL", c.URL(), 1)
			}
			if err := upload(t, tt.env); err != nil {
				t.Fatal(err)
			}
			if spans := c.Spans(); len(spans) != 1 || spans[0].Name != "run a" {
				t.Errorf("spans %+v", spans)
			}
			if _, h := c.Batches(); tt.check != nil && !tt.check(h) {
				t.Errorf("header %v", h)
			}
		})
	}
}

func TestHTTPTriesAgainWhatMayPass(t *testing.T) {
	tests := map[string]struct {
		status  int
		body    string
		batches int
		want    string // of the error; empty: none
	}{
		"unavailable":       {status: 503, batches: 2},
		"too many requests": {status: 429, batches: 2},
		"not allowed":       {status: 401, batches: 1, want: "answered 401"},
		"not found":         {status: 404, batches: 1, want: "answered 404"},
		"a redirect":        {status: 307, batches: 1, want: "answered 307"},
		"some were refused": {status: 200, body: "\x0a\x09\x08\x02\x12\x05stale", batches: 1, want: "rejected 2 spans: stale"},
		"a warning alone":   {status: 200, body: "\x0a\x07\x12\x05stale", batches: 1},
		"nonsense":          {status: 200, body: "\xff\xff\xff", batches: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := startCollector(t)
			var once sync.Once
			c.Answer(func(w http.ResponseWriter, _ *http.Request) (answered bool) {
				once.Do(func() {
					answered = true
					w.Header().Set("Location", "/elsewhere")
					w.WriteHeader(tt.status)
					_, _ = w.Write([]byte(tt.body))
				})
				return answered
			})
			err := upload(t, env{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL()})
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("UploadTraces() = %v, want %q", err, tt.want)
			}
			if n, _ := c.Batches(); n != tt.batches {
				t.Errorf("%d requests, want %d", n, tt.batches)
			}
		})
	}
}

func TestTheTimeoutBoundsABatch(t *testing.T) {
	c := startCollector(t)
	c.Answer(func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true })
	start := time.Now()
	err := upload(t, env{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL() + "/?key=hunter2", "OTEL_EXPORTER_OTLP_TIMEOUT": "200"})
	if took := time.Since(start); err == nil || took > 2*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
	if err != nil && strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error repeats the query: %v", err)
	}
}

func TestStopEndsABatchUnderWay(t *testing.T) {
	col := startCollector(t)
	arrived := make(chan struct{})
	col.Answer(func(_ http.ResponseWriter, r *http.Request) bool { close(arrived); <-r.Context().Done(); return true })
	c, err := otlp.New(env{"OTEL_EXPORTER_OTLP_ENDPOINT": col.URL(), "OTEL_EXPORTER_OTLP_TIMEOUT": "60000"}.get, "x")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.UploadTraces(context.Background(), batch()) }()
	<-arrived
	_ = c.Stop(t.Context())
	select {
	case err := <-done:
		if err == nil {
			t.Error("the batch was taken")
		}
	case <-time.After(5 * time.Second):
		t.Error("the batch goes on")
	}
}

// traceService is a collector as grpc-go makes it.
type traceService struct {
	collectorpb.UnimplementedTraceServiceServer
	mu      sync.Mutex
	answers []error // the last one stays
	calls   int
	spans   []collector.Span
	header  metadata.MD
	partial *collectorpb.ExportTracePartialSuccess
}

func (s *traceService) Export(ctx context.Context, r *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.header, _ = metadata.FromIncomingContext(ctx)
	if len(s.answers) > 0 {
		if err := s.answers[min(s.calls, len(s.answers))-1]; err != nil {
			return nil, err
		}
	}
	s.spans = append(s.spans, collector.Read(&tracepb.TracesData{ResourceSpans: r.GetResourceSpans()})...)
	return &collectorpb.ExportTraceServiceResponse{PartialSuccess: s.partial}, nil
}

func startGRPC(t *testing.T, s *traceService, o ...grpc.ServerOption) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(o...)
	collectorpb.RegisterTraceServiceServer(server, s)
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); <-done })
	return l.Addr().String()
}

func TestGRPC(t *testing.T) {
	tests := map[string]struct {
		env     env
		answers []error
		partial *collectorpb.ExportTracePartialSuccess
		calls   int
		want    string
	}{
		"by URL":                        {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://ADDRESS"}, calls: 1},
		"by URL, whose path is ignored": {env: env{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://ADDRESS/v1/traces"}, calls: 1},
		"by address":                    {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": "ADDRESS", "OTEL_EXPORTER_OTLP_INSECURE": "true"}, calls: 1},
		"compressed":                    {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://ADDRESS", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}, calls: 1},
		"unavailable at first":          {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://ADDRESS"}, answers: []error{status.Error(codes.Unavailable, "later"), nil}, calls: 2},
		"denied":                        {env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://ADDRESS"}, answers: []error{status.Error(codes.PermissionDenied, "no\nway")}, calls: 1, want: "gRPC status 7 no way"},
		"some were refused": {
			env: env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://ADDRESS"}, calls: 1, want: "rejected 1 spans: stale",
			partial: &collectorpb.ExportTracePartialSuccess{RejectedSpans: 1, ErrorMessage: "stale"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &traceService{answers: tt.answers, partial: tt.partial}
			address := startGRPC(t, s)
			tt.env["OTEL_EXPORTER_OTLP_PROTOCOL"] = "grpc"
			tt.env["OTEL_EXPORTER_OTLP_HEADERS"] = "x-team=data"
			for name, value := range tt.env {
				tt.env[name] = strings.Replace(value, "ADDRESS", address, 1)
			}
			err := upload(t, tt.env)
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("UploadTraces() = %v, want %q", err, tt.want)
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.calls != tt.calls {
				t.Errorf("%d calls, want %d", s.calls, tt.calls)
			}
			if tt.want == "" && (len(s.spans) != 1 || s.spans[0].Name != "run a" || s.header.Get("x-team")[0] != "data") {
				t.Errorf("spans %+v, header %v", s.spans, s.header)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := upload(t, env{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_EXPORTER_OTLP_TIMEOUT": "300"}); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("without its CA: %v", err)
	}
	if err := upload(t, env{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL, "OTEL_EXPORTER_OTLP_CERTIFICATE": ca}); err != nil {
		t.Errorf("with its CA: %v", err)
	}
	s := &traceService{}
	address := startGRPC(t, s, grpc.Creds(credentials.NewTLS(server.TLS)))
	if err := upload(t, env{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://" + address, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_CERTIFICATE": ca}); err != nil {
		t.Errorf("gRPC with its CA: %v", err)
	}
}

func TestVariablesThatAreWrong(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		env  env
		want string
	}{
		"a protocol that is not there": {env{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/json"}, `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="http/json" is not supported: want http/protobuf or grpc`},
		"an endpoint without a scheme": {env{"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4318"}, "OTEL_EXPORTER_OTLP_ENDPOINT: want a URL such as http://collector:4318"},
		"another scheme":               {env{"OTEL_EXPORTER_OTLP_ENDPOINT": "ftp://user:hunter2@collector"}, "want a URL"},
		"headers":                      {env{"OTEL_EXPORTER_OTLP_HEADERS": "hunter2"}, "OTEL_EXPORTER_OTLP_HEADERS: want name=value pairs"},
		"a header in two lines":        {env{"OTEL_EXPORTER_OTLP_HEADERS": "x=hunter2%0d%0ay"}, "want name=value pairs"},
		"a header with a bell":         {env{"OTEL_EXPORTER_OTLP_HEADERS": "x=hunter2%07"}, "want name=value pairs"},
		"a header's name":              {env{"OTEL_EXPORTER_OTLP_HEADERS": "a(b)=hunter2"}, "want name=value pairs"},
		"insecure":                     {env{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317", "OTEL_EXPORTER_OTLP_INSECURE": "yes"}, `OTEL_EXPORTER_OTLP_INSECURE="yes": want true or false`},
		"a timeout with a unit":        {env{"OTEL_EXPORTER_OTLP_TIMEOUT": "10s"}, `OTEL_EXPORTER_OTLP_TIMEOUT="10s": want milliseconds`},
		"a compression":                {env{"OTEL_EXPORTER_OTLP_COMPRESSION": "zstd"}, "want gzip or none"},
		"a CA that is not there":       {env{"OTEL_EXPORTER_OTLP_CERTIFICATE": empty + "x"}, "OTEL_EXPORTER_OTLP_CERTIFICATE: stat"},
		"a CA without a certificate":   {env{"OTEL_EXPORTER_OTLP_CERTIFICATE": empty}, "holds no certificate"},
		"half a key pair":              {env{"OTEL_EXPORTER_OTLP_CLIENT_KEY": empty}, "need each other"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := otlp.New(tt.env.get, "x")
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("New() = %v, want %q and no secret", err, tt.want)
			}
		})
	}
}

func TestACollectorThatIsNotThere(t *testing.T) {
	err := upload(t, env{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_TIMEOUT": "100"})
	if err == nil || !strings.Contains(err.Error(), "collector http://127.0.0.1:1") || errors.Is(err, context.Canceled) {
		t.Errorf("UploadTraces() = %v", err)
	}
}
