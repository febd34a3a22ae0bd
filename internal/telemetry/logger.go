package telemetry

import (
	"context"
	"io"
	"log/slog"
	"os"

	"k8s.io/klog/v2"

	"github.com/leasecron/leasecron/internal/logkey"
)

// The log formats.
const (
	FormatJSON = "json"
	FormatText = "text"
	FormatAuto = "" // text on a terminal, else JSON
)

// NewLogger returns a logger that writes lines of at least a level to w: JSON with time, level
// and msg first, or text. An unknown format is taken for [FormatAuto]; the settings refuse it
// long before.
func NewLogger(w io.Writer, level slog.Level, format string) *slog.Logger {
	opts := &slog.HandlerOptions{Level: level}
	if format == FormatText || (format != FormatJSON && isTerminal(w)) {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// RouteKlog sends what Kubernetes' client libraries log through logger. It changes a variable
// of the process, so that only the program's start calls it.
//
// They report each retry of a watch as a warning or an error, although a watch that ends is
// routine and the packages that own one say themselves when it matters. So their lines lose
// a level or two: errors become warnings, everything else is for debugging.
func RouteKlog(logger *slog.Logger) {
	klog.SetSlogLogger(slog.New(quietHandler{logger.With(slog.String(logkey.Component, "client-go")).Handler()}))
}

// quietHandler lowers the level of each record before it hands it on.
type quietHandler struct{ slog.Handler }

func quieter(level slog.Level) slog.Level {
	if level >= slog.LevelError {
		return slog.LevelWarn
	}
	return min(level, slog.LevelDebug)
}

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, quieter(level))
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = quieter(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}
