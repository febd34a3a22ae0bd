package callback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

const (
	// bodyTime is how long the body of a callback may take to arrive.
	bodyTime = 30 * time.Second
	// answerTime is how long an answer may take to leave.
	answerTime = 10 * time.Second
	// storeTime bounds what has to be stored although the caller has gone.
	storeTime = 10 * time.Second
	// askAgain is the pause between two looks at a store that cannot tell when a claim ends.
	askAgain = time.Second
)

// Func does the work of a job. The context carries the run ([FromContext]) and ends when the
// sidecar no longer waits: stop then, the outcome counts for nothing. The message becomes the
// message of the run, up to 1 KiB; empty is fine.
//
// So does the text of an error: it appears in the sidecar's API, log and events, so let it hold
// no secret. A plain error lets the attempt fail in a way that the job's retry setting applies
// to; see [Permanent], [RetryAfter] and [ErrStaleToken] for others. A panic fails it like a plain
// error, and only the log says where.
type Func func(ctx context.Context, run *Run) (message string, err error)

// Options configure a [Receiver]. The zero value takes unsigned callbacks and remembers
// occurrences in memory.
type Options struct {
	// Verifier checks signatures. Default: none, for an app that only its sidecar can reach.
	Verifier *Verifier
	// Store remembers occurrences. Default: a [MemoryStore].
	Store Store
	// Fence refuses lower tokens. Default: none.
	Fence Fence
	// MaxBody bounds a body in bytes. Default: [DefaultMaxBody].
	MaxBody int64
	// Sidecar is told how asynchronous runs end. Default: the one at [DefaultSidecar].
	Sidecar *Sidecar
	// Logger gets panics, and failures to store or to report. Default: [slog.Default].
	Logger *slog.Logger
}

// Receiver makes HTTP handlers of functions that do the work of jobs. It is safe for concurrent
// use.
type Receiver struct {
	o   Options
	log *slog.Logger

	mu      sync.Mutex
	stopped bool
	tasks   map[*task]struct{} // asynchronous runs under way
	idle    chan struct{}      // closed when stopped and without tasks
}

// NewReceiver returns a receiver.
func NewReceiver(o Options) *Receiver {
	if o.Store == nil {
		o.Store = NewMemoryStore(MemoryOptions{})
	}
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.Sidecar == nil {
		o.Sidecar = defaultSidecar
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Receiver{o: o, log: o.Logger, tasks: make(map[*task]struct{}), idle: make(chan struct{})}
}

// Handler returns a handler that does the work while the sidecar waits:
//
//   - what is no callback, or not signed, is refused with 400, 401, 405, 413 or 415;
//   - a token that the fence refuses is answered with 409;
//   - an occurrence that was done before is answered with 200 and the message that it had then,
//     and the header Idempotency-Replayed;
//   - while another delivery works on it, this one waits: it answers with the other's success, or
//     does the work itself after the other's failure;
//   - otherwise do is called, and the occurrence is remembered if it succeeds.
func (rc *Receiver) Handler(do Func) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		run, ok := rc.admit(w, r)
		if !ok {
			return
		}
		claim, err := rc.claim(r.Context(), run)
		if err != nil || claim.State == Done {
			rc.answerDone(w, claim, err)
			return
		}
		message, err := rc.call(NewContext(r.Context(), run), do, run)
		rc.settle(r.Context(), run, message, err)
		rc.answer(w, message, err)
	})
}

// admit reads a run and checks its token. If it returns false it has answered.
func (rc *Receiver) admit(w http.ResponseWriter, r *http.Request) (*Run, bool) {
	run, err := rc.read(w, r)
	if err == nil && rc.o.Fence != nil {
		err = rc.o.Fence.Check(r.Context(), run)
	}
	if err != nil {
		rc.answer(w, "", err)
		return nil, false
	}
	return run, true
}

// read reads, verifies and parses a request.
func (rc *Receiver) read(w http.ResponseWriter, r *http.Request) (*Run, error) {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		w.Header().Set("Allow", "POST, PUT, PATCH")
		return nil, &RequestError{Status: http.StatusMethodNotAllowed, Err: errors.New("a callback is a POST, PUT or PATCH")}
	}
	// The deadline is for the body alone: the server's own ReadTimeout would end the context of
	// work that takes longer than it. Not every ResponseWriter has deadlines.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime))
	body, err := readBody(w, r, rc.o.MaxBody)
	if err != nil {
		return nil, err
	}
	_ = control.SetReadDeadline(time.Time{})
	if rc.o.Verifier != nil {
		if err := rc.o.Verifier.Verify(r.Header, body); err != nil {
			return nil, &RequestError{Status: http.StatusUnauthorized, Err: err}
		}
	}
	return Parse(r.Header, body)
}

func readBody(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	tooLarge := &RequestError{Status: http.StatusRequestEntityTooLarge, Err: fmt.Errorf("the body has more than %d bytes", most)}
	if r.ContentLength > most {
		return nil, tooLarge
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &limit):
		return nil, tooLarge
	case err != nil:
		return nil, &RequestError{Status: http.StatusBadRequest, Err: errors.New("the body did not arrive whole")}
	}
	return body, nil
}

// claim takes the occurrence, and waits as long as somebody else has it and ctx lasts.
func (rc *Receiver) claim(ctx context.Context, run *Run) (Claim, error) {
	for {
		claim, err := rc.claimNow(ctx, run)
		if err != nil || claim.State != InProgress {
			return claim, err
		}
		again := time.NewTimer(askAgain)
		tick := again.C
		if claim.Released != nil {
			tick = nil
		}
		select {
		case <-claim.Released:
		case <-tick:
		case <-ctx.Done():
			again.Stop()
			return claim, fmt.Errorf("another delivery works on this occurrence: %w", context.Cause(ctx))
		}
		again.Stop()
	}
}

// claimNow does not wait.
func (rc *Receiver) claimNow(ctx context.Context, run *Run) (Claim, error) {
	claim, err := rc.o.Store.Claim(ctx, run)
	if err != nil {
		return claim, RetryAfter(fmt.Errorf("claim the occurrence: %w", err), 0)
	}
	return claim, nil
}

// call calls do and turns a panic into an error.
func (rc *Receiver) call(ctx context.Context, do Func, run *Run) (message string, err error) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		if value != http.ErrAbortHandler { //nolint:errorlint // a panic's value, compared as net/http does
			rc.log.LogAttrs(ctx, slog.LevelError, "callback handler panicked", slog.String("job", run.Job),
				slog.String("run_id", run.ID), slog.Any("panic", value), slog.String("stack", string(debug.Stack())))
		}
		message, err = "", errPanicked
	}()
	return do(ctx, run)
}

// settle stores how the work ended, also if nobody waits for it any more.
func (rc *Receiver) settle(ctx context.Context, run *Run, message string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTime)
	defer cancel()
	var failed error
	if err != nil {
		failed = rc.o.Store.Forget(ctx, run)
	} else {
		failed = rc.o.Store.Finish(ctx, run, clip(message))
	}
	if failed != nil {
		// The work is as done or undone as before: the sidecar is told that, not this.
		rc.log.LogAttrs(ctx, slog.LevelError, "callback outcome not stored", slog.String("job", run.Job),
			slog.String("run_id", run.ID), slog.String("occurrence", run.Occurrence), slog.String("error", failed.Error()))
	}
}

// answerDone answers without doing any work: it was done before, or the occurrence was not to be
// had.
func (rc *Receiver) answerDone(w http.ResponseWriter, claim Claim, err error) {
	if err == nil {
		w.Header().Set("Idempotency-Replayed", "true")
	}
	rc.answer(w, claim.Message, err)
}

// answer writes the outcome.
func (rc *Receiver) answer(w http.ResponseWriter, message string, err error) {
	status := http.StatusOK
	if err != nil {
		var wait time.Duration
		if status, wait = statusOf(err); wait > 0 {
			w.Header().Set("Retry-After", strconv.FormatInt(wholeSeconds(wait), 10))
		}
		message = err.Error()
	}
	write(w, status, message)
}

func write(w http.ResponseWriter, status int, message string) {
	// A server's WriteTimeout counts from the request on: work may have taken longer.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime))
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, clip(message)) //nolint:gosec // plain text, and marked as such
}
