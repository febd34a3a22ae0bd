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

const notExported = "traces not exported, their spans are dropped"

// quietExporter keeps the failures of a collector from everyone but the log and a counter. It writes
// one line when exports begin to fail, one every ten minutes while they do, and one when they work again.
type quietExporter struct {
	next     sdktrace.SpanExporter
	stop     func(context.Context) error // ends what is under way
	log      *slog.Logger
	failed   func() // may be nil
	endpoint string

	ended   chan struct{} // closed when the SDK has handed over its last batch
	endOnce sync.Once

	mu    sync.Mutex
	down  bool
	said  time.Time
	spans int   // not exported since something was said
	last  bool  // the process ends: what fails is told together, by end
	err   error // why
}

// ExportSpans implements [sdktrace.SpanExporter].
func (q *quietExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := q.next.ExportSpans(ctx, spans)
	q.note(ctx, len(spans), err)
	return nil
}

// Shutdown implements [sdktrace.SpanExporter]. The SDK calls it after the last batch.
func (q *quietExporter) Shutdown(ctx context.Context) error {
	q.endOnce.Do(func() { close(q.ended) })
	return q.stop(ctx)
}

// end ends the batch under way and those behind it, waits until all of them were noted, or for ctx, and
// says what was lost, unless the log knows already that the collector is away.
func (q *quietExporter) end(ctx context.Context) {
	_ = q.stop(ctx)
	select {
	case <-q.ended:
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.spans > 0 && !q.down {
		q.log.LogAttrs(ctx, slog.LevelWarn, notExported, slog.Int(logkey.Count, q.spans), logkey.Err(q.err))
		q.down, q.spans = true, 0
	}
}

// closing makes failures wait for end.
func (q *quietExporter) closing() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.last, q.err = true, nil
}

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
		if q.spans += spans; q.err == nil || !q.last {
			q.err = err // at the end the first says most: the others were not even tried
		}
		if q.last || q.down && time.Since(q.said) < exportSilence {
			return
		}
		q.log.LogAttrs(ctx, slog.LevelWarn, notExported,
			slog.Int(logkey.Count, q.spans), logkey.Err(err))
		q.down, q.said, q.spans = true, time.Now(), 0
	}
}
