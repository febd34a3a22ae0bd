package telemetry

import (
	"context"
	"log/slog"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/leasecron/leasecron/internal/logkey"
)

// exportSilence is how long a collector that stays away is not spoken of again.
const exportSilence = 10 * time.Minute

// quietExporter keeps the failures of a collector from everyone but the log and a counter. It writes
// one line when exports begin to fail, one every ten minutes while they do, and one when they work again.
type quietExporter struct {
	next     sdktrace.SpanExporter
	stop     func(context.Context) error // ends what is under way
	log      *slog.Logger
	failed   func() // may be nil
	endpoint string

	mu    sync.Mutex
	down  bool
	said  time.Time
	spans int // not exported since something was said
}

// ExportSpans implements [sdktrace.SpanExporter].
func (q *quietExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := q.next.ExportSpans(ctx, spans)
	q.note(ctx, len(spans), err)
	return nil
}

// Shutdown implements [sdktrace.SpanExporter].
func (q *quietExporter) Shutdown(ctx context.Context) error { return q.stop(ctx) }

func (q *quietExporter) note(ctx context.Context, spans int, err error) {
	if err != nil && q.failed != nil {
		q.failed()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case err == nil && q.down:
		q.down = false
		q.log.LogAttrs(ctx, slog.LevelInfo, "traces are exported again", slog.String("endpoint", q.endpoint))
	case err != nil:
		q.spans += spans
		if q.down && time.Since(q.said) < exportSilence {
			return
		}
		q.log.LogAttrs(ctx, slog.LevelWarn, "traces not exported, their spans are dropped",
			slog.Int(logkey.Count, q.spans), logkey.Err(err))
		q.down, q.said, q.spans = true, time.Now(), 0
	}
}
