package app

import (
	"bytes"
	"net"
	"net/http"
	"strconv"
	"time"
)

// Behavior answers one request that was read to its end, or fails to.
type Behavior func(a *App, w http.ResponseWriter, r *http.Request)

// Status answers with a status and no body.
func Status(status int) Behavior { return Reply(status, "") }

// Reply answers with a status, a body, and headers given as name, value, name, value.
func Reply(status int, body string, header ...string) Behavior {
	return func(_ *App, w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// After works for d, whether or not the caller waits, then does what next says.
func After(d time.Duration, next Behavior) Behavior {
	return func(a *App, w http.ResponseWriter, r *http.Request) {
		if !a.pause(d) {
			panic(http.ErrAbortHandler)
		}
		next(a, w, r)
	}
}

// Never does not answer as long as the app is up.
func Never() Behavior {
	return func(a *App, _ http.ResponseWriter, _ *http.Request) {
		<-a.ending()
		panic(http.ErrAbortHandler) // or the server would answer 200
	}
}

// ReadThenClose closes the connection in good order, without an answer.
func ReadThenClose() Behavior {
	return hijacked(func(_ *App, c net.Conn) {})
}

// Reset breaks the connection with a TCP reset, without an answer.
func Reset() Behavior {
	return hijacked(func(_ *App, c net.Conn) {
		if t, ok := c.(*tapConn); ok {
			c = t.Conn
		}
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
	})
}

// Raw answers with exactly these bytes and closes the connection.
func Raw(answer string) Behavior {
	return hijacked(func(_ *App, c net.Conn) { _, _ = c.Write([]byte(answer)) })
}

// Trickle sends the header at once and then one byte of the body at each interval.
func Trickle(status int, body string, interval time.Duration) Behavior {
	return func(a *App, w http.ResponseWriter, r *http.Request) {
		flusher := http.NewResponseController(w)
		w.WriteHeader(status)
		for i := range len(body) {
			if flusher.Flush() != nil || r.Context().Err() != nil || !a.pause(interval) {
				return
			}
			_, _ = w.Write([]byte{body[i]})
		}
	}
}

// Huge sends a body of the given size, as fast as it is taken, and tells sent how much of it
// the socket took.
func Huge(status int, size int64, sent chan<- int64) Behavior {
	return func(_ *App, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		w.WriteHeader(status)
		chunk := bytes.Repeat([]byte("x"), 64<<10)
		var done int64
		for done < size {
			n, err := w.Write(chunk[:min(int64(len(chunk)), size-done)])
			done += int64(n)
			if err != nil {
				break
			}
		}
		sent <- done
	}
}

// pause waits for d; false if the app closes before.
func (a *App) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-a.ending():
		return false
	}
}

func hijacked(do func(*App, net.Conn)) Behavior {
	return func(a *App, w http.ResponseWriter, _ *http.Request) {
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		do(a, c)
		_ = c.Close()
	}
}
