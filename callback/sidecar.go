package callback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// DefaultSidecar is where the sidecar beside an app has its API unless LEASECRON_API_LISTEN says
// otherwise.
const DefaultSidecar = "http://127.0.0.1:9471"

const (
	callTime      = 15 * time.Second // of one request: the API answers within 10 s
	beatTime      = 5 * time.Second  // of a heartbeat, which waits for nothing
	firstPause    = 100 * time.Millisecond
	longestPause  = 5 * time.Second
	maxRetryAfter = 30 * 24 * time.Hour // that the API takes
	maxReply      = 64 << 10
	maxBeatText   = 256 // bytes that are shown of what a heartbeat says
	codeRunOver   = "SCHEDULING_CONFLICT_006"
	codeNoRun     = "SCHEDULING_NOTFOUND_004"
)

// Sidecar tells the sidecar beside the app how asynchronous runs go and end. It is safe for
// concurrent use. [Receiver.AsyncHandler] does all this by itself; a Sidecar of one's own is for
// work that another process ends.
type Sidecar struct {
	base string
	http *http.Client
}

var defaultSidecar = &Sidecar{base: DefaultSidecar, http: loopbackClient()}

// NewSidecar returns a client of the API at base, such as [DefaultSidecar], which an empty base
// stands for. A nil client stands for one that uses no proxy and follows no redirect.
func NewSidecar(base string, client *http.Client) (*Sidecar, error) {
	if base == "" {
		base = DefaultSidecar
	}
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("address of the sidecar's API %q: want something like %s", base, DefaultSidecar)
	}
	if client == nil {
		client = loopbackClient()
	}
	return &Sidecar{base: strings.TrimSuffix(base, "/"), http: client}, nil
}

func loopbackClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 nil, // the environment's is meant for the way out
			IdleConnTimeout:       10 * time.Second,
			ResponseHeaderTimeout: callTime,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// APIError is an answer of the API that another try would not change.
type APIError struct {
	Status int
	Code   string // SCHEDULING_…; empty where something else than the API answered
	Detail string
}

func (e *APIError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("the sidecar answered %d %s: %s", e.Status, e.Code, e.Detail), ": ")
}

// Is makes an answer that the run is over, or unknown, an [ErrRunOver].
func (e *APIError) Is(target error) bool {
	return target == ErrRunOver && (e.Code == codeRunOver || e.Code == codeNoRun)
}

// Complete says that the work of a run succeeded. It repeats a request that failed or got no
// answer, which is safe, until ctx ends or the sidecar has answered: nil means that the success is
// recorded, an error that wraps [ErrRunOver] that the run had ended in another way before.
func (s *Sidecar) Complete(ctx context.Context, runID, message string) error {
	return s.insist(ctx, runID, "complete", struct {
		Message string `json:"message,omitempty"`
	}{clip(message)})
}

// Fail says that the work of a run failed, like Complete. The text of cause becomes the run's
// message; whether and when another attempt may follow is what [Permanent], [RetryAfter] and
// [ErrStaleToken] say for a synchronous run.
func (s *Sidecar) Fail(ctx context.Context, runID string, cause error) error {
	status, wait := statusOf(cause)
	return s.insist(ctx, runID, "fail", struct {
		Message    string `json:"message,omitempty"`
		Code       string `json:"code,omitempty"`
		Retryable  bool   `json:"retryable"`
		RetryAfter int64  `json:"retryAfter,omitempty"`
	}{clip(cause.Error()), codeOf(cause), retryable(status), wholeSeconds(min(wait, maxRetryAfter))})
}

// Progress is what a heartbeat may say about the work.
type Progress struct {
	Percent int    // 0 to 100
	Message string // what it is doing, up to 256 bytes
}

// Beat is the answer to a heartbeat: go on.
type Beat struct {
	TimeoutAt  time.Time // when the job's timeout ends the run
	NextBefore time.Time // when silence does; zero for a job without heartbeatTimeout
}

// Heartbeat says that the work goes on, and how far it is; progress may be nil. It asks once: an
// error that wraps [ErrRunOver] means that the work should stop, any other one that the next
// heartbeat may fare better.
func (s *Sidecar) Heartbeat(ctx context.Context, runID string, progress *Progress) (Beat, error) {
	body := struct {
		Progress *int   `json:"progress,omitempty"`
		Message  string `json:"message,omitempty"`
	}{}
	if progress != nil {
		percent := min(max(progress.Percent, 0), 100)
		body.Progress, body.Message = &percent, clipTo(progress.Message, maxBeatText)
	}
	ctx, cancel := context.WithTimeout(ctx, beatTime)
	defer cancel()
	reply, _, err := s.post(ctx, runID, "heartbeat", body)
	if err != nil {
		return Beat{}, err
	}
	var beat struct{ TimeoutAt, NextBefore time.Time }
	if err := json.Unmarshal(reply, &beat); err != nil {
		return Beat{}, fmt.Errorf("heartbeat: the answer of the sidecar: %w", err)
	}
	return Beat(beat), nil
}

// insist repeats a request until its answer is final or ctx ends.
func (s *Sidecar) insist(ctx context.Context, runID, what string, body any) error {
	pause := firstPause
	var last error // of a try that ctx did not cut short
	for {
		_, wait, err := s.post(ctx, runID, what, body)
		var final *APIError
		if err == nil || errors.As(err, &final) {
			return err
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		// Half of it by chance: many runs may wait for one sidecar to come back.
		wait = max(wait, pause/2+rand.N(pause/2)) //nolint:gosec // no secret
		pause = min(2*pause, longestPause)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s %s: %w: %w", what, runID, context.Cause(ctx), last)
		}
	}
}

// post sends one request. An error that is no [*APIError] is worth another try, after wait.
func (s *Sidecar) post(ctx context.Context, runID, what string, body any) (reply []byte, wait time.Duration, err error) {
	if err := identifier(runID); err != nil {
		return nil, 0, &APIError{Detail: "not asked: the run's ID is " + err.Error()}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, 0, &APIError{Detail: "not asked: " + err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.base+"/v1/runs/"+runID+"/"+what, bytes.NewReader(text)) //nolint:gosec // the address is the app's own, the ID was checked
	if err != nil {
		return nil, 0, &APIError{Detail: "not asked: " + err.Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.http.Do(req) //nolint:gosec // as above
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	reply, err = io.ReadAll(io.LimitReader(resp.Body, maxReply))
	switch {
	case resp.StatusCode >= 200 && resp.StatusCode < 300:
		return reply, 0, nil // the status is the answer, however the body went on
	case err != nil:
		return nil, 0, fmt.Errorf("read the sidecar's answer: %w", err)
	}
	return nil, pauseOf(resp.Header), refusal(resp.StatusCode, reply)
}

// refusal reads a problem document. Only an [*APIError] is final.
func refusal(status int, reply []byte) error {
	var problem struct{ Code, Detail, Title string }
	_ = json.Unmarshal(reply, &problem) // of something else than the API it stays empty
	if problem.Detail == "" {
		problem.Detail = problem.Title
	}
	answer := &APIError{Status: status, Code: clipTo(problem.Code, 64), Detail: clip(problem.Detail)}
	switch {
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status == http.StatusTooEarly:
		return errors.New(answer.Error())
	}
	return answer
}

// pauseOf reads a Retry-After of seconds, as the API sends it.
func pauseOf(header http.Header) time.Duration {
	n, err := strconv.Atoi(header.Get("Retry-After"))
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, 30)) * time.Second
}
