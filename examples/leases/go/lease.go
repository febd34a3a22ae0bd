package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// errHeld says that somebody else holds the lease; errLost that it was ours and is not any more.
var (
	errHeld = errors.New("held by somebody else")
	errLost = errors.New("lease lost")
)

// lease is one named lease, asked of the sidecar at url.
type lease struct {
	url, name, holder string
	ttl               time.Duration // whole seconds
}

// grant is what the sidecar answers with.
type grant struct {
	Token       int64  `json:"token"`
	ValidMillis int64  `json:"validMillis"`
	Detail      string `json:"detail"` // of an error
}

// hold acquires the lease, runs work while renewing it, and releases it. Work's context ends when the
// lease is lost, whatever hangs; it must stop then. The token goes wherever work writes.
func (l lease) hold(ctx context.Context, work func(ctx context.Context, token int64) error) error {
	g, until, err := l.acquire(ctx)
	if err != nil {
		return err
	}
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	expiry := time.AfterFunc(time.Until(until), func() { stop(fmt.Errorf("%w: its time is over", errLost)) })
	defer expiry.Stop()
	renewing := make(chan struct{})
	go func() {
		defer close(renewing)
		stop(l.renew(working, g.Token, until, expiry))
	}()

	err = work(working, g.Token)
	if cause := context.Cause(working); errors.Is(cause, errLost) {
		err = cause
	}
	stop(nil)
	<-renewing
	return errors.Join(err, l.release(context.WithoutCancel(ctx), g.Token))
}

// acquire asks until there is a clear answer, each time with the same key, so that a lease whose
// answer was lost is not held by nobody.
func (l lease) acquire(ctx context.Context) (grant, time.Time, error) {
	key := rand.Text()
	for {
		before := time.Now()
		status, g, err := l.post(ctx, "acquire", key, map[string]any{"holder": l.holder, "ttlSeconds": int(l.ttl.Seconds())})
		switch {
		case status == http.StatusOK:
			return g, before.Add(time.Duration(g.ValidMillis) * time.Millisecond), nil
		case status == http.StatusConflict:
			return g, before, fmt.Errorf("%w: %s", errHeld, g.Detail)
		case status != 0 && status < http.StatusInternalServerError:
			return g, before, fmt.Errorf("acquire: %d %s", status, g.Detail)
		}
		if !pause(ctx, time.Second) {
			return g, before, fmt.Errorf("acquire: %w", errors.Join(err, ctx.Err()))
		}
	}
}

// renew extends the lease every third of its time until ctx ends, or until a renewal says that it
// is lost. What merely fails is tried again: the expiry ends ctx when it is too late for that.
func (l lease) renew(ctx context.Context, token int64, until time.Time, expiry *time.Timer) error {
	for wait := l.ttl / 3; pause(ctx, wait); {
		before := time.Now()
		try, cancel := context.WithDeadline(ctx, until)
		status, g, _ := l.post(try, "renew", "", map[string]any{"token": token})
		cancel()
		switch {
		case status == http.StatusOK:
			until = before.Add(time.Duration(g.ValidMillis) * time.Millisecond)
			expiry.Reset(time.Until(until))
			wait = l.ttl / 3
		case status == http.StatusConflict:
			return fmt.Errorf("%w: %s", errLost, g.Detail)
		default:
			wait = min(time.Second, l.ttl/10)
		}
	}
	return nil
}

// release gives the lease up, so that the next need not wait. If that fails, it expires.
func (l lease) release(ctx context.Context, token int64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, _, err := l.post(ctx, "release", "", map[string]any{"token": token})
	return err
}

// post asks the sidecar. Status 0 says that no answer came.
func (l lease) post(ctx context.Context, verb, key string, body map[string]any) (status int, g grant, err error) {
	content, err := json.Marshal(body)
	if err != nil {
		return 0, g, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/v1/leases/"+l.name+"/"+verb, bytes.NewReader(content))
	if err != nil {
		return 0, g, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, g, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err == nil && len(answer) > 0 {
		err = json.Unmarshal(answer, &g)
	}
	if err != nil {
		return 0, g, err
	}
	return resp.StatusCode, g, nil
}

// pause waits, and reports false if ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
