package callback

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// maxMessage is how much of an answer the sidecar keeps as the run's message, in bytes.
const maxMessage = 1 << 10

var (
	// ErrStaleToken says that the fencing token is lower than one that was seen: the sender was the
	// leader once, and another one is by now. Answered with 409, which is final.
	ErrStaleToken = errors.New("the fencing token is older than one that was seen: another leader has taken over")
	// ErrRunOver says that the sidecar takes no more reports for the run, because it has timed out, was
	// canceled, or has ended in another way. What is reported now counts for nothing.
	ErrRunOver = errors.New("the run is over")
	// ErrShutdown is the cause with which the context of an asynchronous run ends when the app
	// stops before the work is done.
	ErrShutdown = errors.New("the app is shutting down")
)

// RequestError says why a request is no callback that may be carried out.
type RequestError struct {
	Status int // what to answer: 400, 401, 405, 413 or 415
	Err    error
}

func (e *RequestError) Error() string { return e.Err.Error() }
func (e *RequestError) Unwrap() error { return e.Err }

// Permanent marks an error that another attempt would only meet again: the run fails at once,
// however many retries its job has. It is answered with 422. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &verdict{status: http.StatusUnprocessableEntity, err: err}
}

// RetryAfter marks an error that is worth another attempt, but none sooner than after wait: it is
// answered with 503 and a Retry-After of whole seconds, rounded up. RetryAfter(nil, …) is nil.
func RetryAfter(err error, wait time.Duration) error {
	if err == nil {
		return nil
	}
	return &verdict{status: http.StatusServiceUnavailable, wait: max(wait, 0), err: err}
}

// WithCode gives an error a code of the app's own, such as SOURCE_LOCKED, which the record of an
// asynchronous run then shows: 1 to 64 letters, digits, dots, dashes and underscores; another code
// is left out. WithCode(nil, …) is nil.
func WithCode(err error, code string) error {
	if err == nil {
		return nil
	}
	return &coded{code: code, err: err}
}

type coded struct {
	code string
	err  error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

// codeOf returns the code that an error was given, if it is a valid one.
func codeOf(err error) string {
	var c *coded
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	if !errors.As(err, &c) || len(c.code) > 64 || strings.Trim(c.code, allowed) != "" {
		return ""
	}
	return c.code
}

// verdict is an error with the answer that it asks for.
type verdict struct {
	status int
	wait   time.Duration
	err    error
}

func (v *verdict) Error() string { return v.err.Error() }
func (v *verdict) Unwrap() error { return v.err }

// statusOf chooses the answer to an error and whether a retry may follow it. The outermost mark
// counts.
func statusOf(err error) (status int, wait time.Duration) {
	var v *verdict
	var bad *RequestError
	switch {
	case errors.As(err, &v):
		return v.status, v.wait
	case errors.As(err, &bad):
		return bad.Status, 0
	case errors.Is(err, ErrStaleToken):
		return http.StatusConflict, 0
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, 0
	default:
		return http.StatusInternalServerError, 0
	}
}

// retryable reports whether the sidecar repeats an attempt that was answered with status.
func retryable(status int) bool { return status >= 500 }

// wholeSeconds rounds up, so that nobody comes too soon.
func wholeSeconds(wait time.Duration) int64 { return int64(math.Ceil(wait.Seconds())) }

// clip cuts a message to what the sidecar keeps.
func clip(text string) string { return clipTo(text, maxMessage) }

// clipTo cuts between two characters.
func clipTo(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

// errPanicked is all that the sidecar is told about a panic, whose value may hold anything.
var errPanicked = errors.New("the handler panicked: the app's log says where")
