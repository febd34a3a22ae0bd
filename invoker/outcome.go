package invoker

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/leasecron/leasecron/engine/run"
)

const (
	// maxRetryAfter caps what an app may ask for.
	maxRetryAfter = 30 * 24 * time.Hour
	// maxBody is how much of an answer's body is read.
	maxBody = maxMessage
)

// answer turns a response into an outcome. The status line is the verdict; the body is only its
// message, and one that is cut off, too long or too slow does not change the verdict.
func answer(resp *http.Response, g *gate, a run.Attempt, target address, token string, signed bool) run.Outcome {
	// Reading ends with the body, at the limit, or with the attempt's context. The byte beyond
	// the limit tells a body that ends there, whose connection can be used again.
	var body []byte
	var err error
	if resp.ContentLength != 0 {
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	}
	_ = resp.Body.Close()
	if err == nil && len(body) <= maxBody {
		g.answered()
	}
	text := message(body, token)

	out := run.Outcome{Status: resp.StatusCode, Message: text}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		out.State = run.StateSucceeded
		return out
	}
	out.State = run.StateFailed
	out.Code = run.CodeFailed
	out.Retryable = retryableStatus(resp.StatusCode)
	out.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	if hint := statusHint(resp.StatusCode, a, target, signed, text); hint != "" {
		out.Message = clip(strings.TrimSuffix(hint+": "+text, ": "))
	}
	if out.Message == "" {
		out.Message = statusLine(resp.StatusCode)
	}
	return out
}

// retryableStatus reports whether an answer of this status may be repeated by default.
func retryableStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented:
		return false
	default:
		return status >= 500 && status < 600
	}
}

// statusHint says what to do about a status that comes from configuration rather than work. said is what
// the app has to say of it.
func statusHint(status int, a run.Attempt, target address, signed bool, said string) string {
	line := statusLine(status)
	switch {
	case status == http.StatusNotFound || status == http.StatusMethodNotAllowed:
		return fmt.Sprintf("%s for %s %s: does the app serve it there? check the job's target, path and method",
			line, a.Method, clip(target.url.EscapedPath()))
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return line + ": " + credentialsHint(a.BearerFile != "", signed, strings.Contains(strings.ToLower(said), "signature"))
	case status >= 300 && status < 400:
		return line + ": redirects are not followed, name the final address in the job"
	default:
		return ""
	}
}

// credentialsHint asks about what the app checks: the signature first, where there is one, and alone where the
// app has named it.
func credentialsHint(bearer, signed, named bool) string {
	hint := "does the job need a bearerFile?"
	if bearer {
		hint = "does the app accept the token in the job's bearerFile?"
	}
	if !signed {
		return hint
	}
	secret := "do sidecar and app have the same signing secret (LEASECRON_SIGNING_SECRET_FILES)?"
	if named {
		return secret
	}
	return secret + " " + hint
}

func statusLine(status int) string {
	return strings.TrimSpace("the app answered " + strconv.Itoa(status) + " " + http.StatusText(status))
}

// retryAfter reads a Retry-After header, seconds or a date; 0 for one that says neither.
func retryAfter(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter // digits that overflow still ask for long
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// failure turns the lack of a response into an outcome. What came first decides: the refusal,
// the end of the context, or the connection's own fault.
func failure(ctx context.Context, g *gate, err error) run.Outcome {
	g.close() // or the request might still be begun after the verdict
	sent, _, refusal := g.state()
	if refusal != nil && !sent {
		return run.Outcome{
			State: run.StateCanceled, Code: run.CodeCanceled, NotSent: true, Refused: true,
			Message: message([]byte("not started: "+refusal.Error()), ""),
		}
	}
	if cause := context.Cause(ctx); cause != nil &&
		(errors.Is(err, cause) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
		return ended(cause, sent)
	}
	if sent {
		return run.Outcome{
			State: run.StateFailed, Code: run.CodeFailed, Unknown: true, Retryable: true,
			Message: "connection lost before a valid answer arrived (" + reason(err) + "): the app may have done the work" + protocolHint(err),
		}
	}
	if bad, ok := errors.AsType[*requestError](err); ok {
		return notSent(bad.Error(), false)
	}
	return notSent(unreachedMessage(err), !errors.Is(err, errForbidden))
}

// ended is the outcome of an attempt whose context has ended for the given cause.
func ended(cause error, sent bool) run.Outcome {
	out := run.Outcome{NotSent: !sent, Unknown: sent}
	if errors.Is(cause, errTimeout) || errors.Is(cause, context.DeadlineExceeded) {
		out.State, out.Code, out.Retryable = run.StateFailed, run.CodeTimeout, true
		out.Message = "no answer within the timeout"
		if !sent {
			out.Message = "the request was not sent within the timeout: the app could not be reached, or the sidecar was too slow"
		}
		return out
	}
	out.State, out.Code = run.StateCanceled, run.CodeCanceled
	out.Message = message([]byte(cause.Error()), "")
	return out
}

func notSent(why string, retryable bool) run.Outcome {
	return run.Outcome{
		State: run.StateFailed, Code: run.CodeFailed, NotSent: true, Retryable: retryable,
		Message: message([]byte(why), ""),
	}
}

// unreachedMessage says why no connection came about, and what to do.
func unreachedMessage(err error) string {
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		if dns.IsNotFound {
			return fmt.Sprintf("no such host %s: check the job's target", dns.Name)
		}
		return fmt.Sprintf("host %s could not be resolved: %s", dns.Name, dns.Err)
	case errors.As(err, &op) && op.Net == "unix" && op.Addr != nil:
		return socketMessage(op)
	case errors.Is(err, syscall.ECONNREFUSED) && errors.As(err, &op) && op.Addr != nil:
		return fmt.Sprintf("connection refused by %s: is the app listening? check the job's target and the app's port", op.Addr)
	default:
		return cmp.Or(tlsMessage(err), "the app could not be reached: "+reason(err)+protocolHint(err))
	}
}

// tlsMessage says why no TLS connection came about; "" if that was not the reason.
func tlsMessage(err error) string {
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the app does not speak TLS: is https in the job's target right?"
	}
	bad, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok {
		return ""
	}
	why := reason(bad.Err)
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		why += ": mount the certificate of its authority and name the file in SSL_CERT_FILE"
	}
	return "the app's certificate is not accepted: " + why
}

// socketMessage says why a Unix socket could not be connected to.
func socketMessage(op *net.OpError) string {
	switch {
	case errors.Is(op.Err, syscall.ENOENT):
		return fmt.Sprintf("no socket at %s: is the app up, and its folder mounted into both containers?", op.Addr)
	case errors.Is(op.Err, syscall.ECONNREFUSED):
		if info, err := os.Stat(op.Addr.String()); err == nil && info.Mode().Type() != fs.ModeSocket {
			return fmt.Sprintf("%s is a %s, not a socket: check the path in the job's target", op.Addr, kindOf(info))
		}
		return fmt.Sprintf("connection refused by the socket %s: is the app listening?", op.Addr)
	case errors.Is(op.Err, syscall.EACCES):
		return fmt.Sprintf("no permission to connect to the socket %s: its mode has to let the sidecar's user write", op.Addr)
	default:
		return fmt.Sprintf("the socket %s could not be connected to: %s", op.Addr, reason(op.Err))
	}
}

// protocolHint is for an answer in HTTP/1 to a request in HTTP/2. If that was written, what the app made of it stays
// unknown.
func protocolHint(err error) string {
	if _, ok := errors.AsType[*http1Error](err); !ok {
		return ""
	}
	return "; it seems not to speak HTTP/2: is h2c in the job's target right?"
}

// kindOf names what lies where a socket is looked for. A folder is what a mount makes of a path that was not there.
func kindOf(info fs.FileInfo) string {
	if info.IsDir() {
		return "folder"
	}
	return "file"
}

// reason is the text of an error without the URL that net/http puts around it.
func reason(err error) string {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return message([]byte(err.Error()), "")
}
