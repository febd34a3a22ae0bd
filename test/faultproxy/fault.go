package faultproxy

import (
	"net/http"
	"strconv"
	"time"
)

// Fault is something that happens to a request. The zero value does nothing.
type Fault struct {
	before, after action
	rewrite       func(http.Header) // of the answer
	times         int               // 0: always
}

// Times limits the fault to the first n requests that match.
func (f Fault) Times(n int) Fault {
	f.times = n
	return f
}

// Delay holds each request for d and forwards it then.
func Delay(d time.Duration) Fault {
	return Fault{before: func(e *exchange) bool { return e.pause(d) }}
}

// DelayAnswer forwards each request at once and holds its answer for d.
func DelayAnswer(d time.Duration) Fault {
	return Fault{after: func(e *exchange) bool { return e.pause(d) }}
}

// Hang takes each request and neither forwards nor answers it. When the fault ends, the
// requests that wait fail.
func Hang() Fault {
	return Fault{before: (*exchange).hang}
}

// HangAnswer forwards each request and never answers it. When the fault ends, so do the
// connections that wait.
func HangAnswer() Fault {
	return Fault{after: (*exchange).hang}
}

// Reset breaks the connection before the request is forwarded: it has no effect, but the
// client cannot know that.
func Reset() Fault {
	return Fault{before: func(*exchange) bool { return false }}
}

// DropAnswer forwards each request, waits for the answer and breaks the connection then: it
// had its effect, but the client cannot know that.
func DropAnswer() Fault {
	return Fault{after: func(*exchange) bool { return false }}
}

// Status answers with an HTTP status, such as 503 or 429, instead of forwarding; retryAfter,
// in whole seconds, is sent as Retry-After unless it is 0.
func Status(code int, retryAfter time.Duration) Fault {
	return Fault{before: func(e *exchange) bool {
		if retryAfter > 0 {
			e.w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
		}
		http.Error(e.w, "injected by faultproxy", code)
		e.answered = true
		return true
	}}
}

// ShiftDate has each answer say that it is d later than it is: to the client its own clock looks as if
// it were behind by d, or ahead where d is negative.
func ShiftDate(d time.Duration) Fault {
	return Fault{rewrite: func(h http.Header) { h.Set("Date", time.Now().Add(d).UTC().Format(http.TimeFormat)) }}
}

// An action returns false when the connection is to break.
type action func(*exchange) bool

// exchange is one request on its way through the proxy.
type exchange struct {
	w        http.ResponseWriter
	r        *http.Request
	seen     *Request
	fault    *injected // nil: none
	answered bool
}

// pause waits for d. It reports false when the client has gone meanwhile.
func (e *exchange) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.r.Context().Done():
		return false
	}
}

// hang waits until the fault is removed or the client gives up, and ends the request without
// an answer. With HTTP/2 the connection lives on: others use it, and Heal must not harm them.
func (e *exchange) hang() bool {
	select {
	case <-e.fault.removed:
	case <-e.r.Context().Done():
	}
	panic(http.ErrAbortHandler)
}
