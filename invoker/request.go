package invoker

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leasecron/leasecron/engine/run"
)

const (
	// MaxData is the most that a callback's data may take, in bytes.
	MaxData = 256 << 10
	// maxBearer bounds a token file; a service account token has 1 to 2 KiB.
	maxBearer = 16 << 10

	eventType = "scheduling.run.due"
)

// checkMethod returns the method of a callback, POST unless the job says otherwise.
func checkMethod(method string) (string, error) {
	switch method {
	case "":
		return http.MethodPost, nil
	case http.MethodPost, http.MethodPut, http.MethodPatch:
		return method, nil
	default:
		return "", fmt.Errorf("method %q is not POST, PUT or PATCH", method)
	}
}

// header makes the header of a callback: the job's own first, the protocol's over them.
func header(a run.Attempt, userAgent, token string) (http.Header, error) {
	h := make(http.Header, len(a.Headers)+16)
	for name, value := range a.Headers {
		if reservedHeader(name) {
			continue
		}
		if err := checkHeader(name, value); err != nil {
			return nil, err
		}
		h.Set(name, value)
	}
	r := a.Run
	own := [...][2]string{
		{"Content-Type", "application/json"},
		{"User-Agent", userAgent},
		{"Authorization", bearer(token)},
		{"Ce-Specversion", "1.0"},
		{"Ce-Id", r.Occurrence},
		{"Ce-Source", "/leasecron/" + url.PathEscape(a.Namespace) + "/" + url.PathEscape(a.App) + "/scheduling"},
		{"Ce-Type", eventType},
		{"Ce-Subject", r.Key.Job},
		{"Ce-Time", stamp(r.ScheduledAt)},
		{"Leasecron-Trigger", r.Key.Trigger},
		{"Leasecron-Run-Id", r.ID},
		{"Leasecron-Attempt", strconv.Itoa(r.Attempt)},
		{"Leasecron-Cause", string(r.Cause)},
		{"Leasecron-Fencing-Token", fencing(a.FencingTerm)},
		// A structured-field string, as the draft of this header asks for: hence the quotes.
		{"Idempotency-Key", `"` + r.Occurrence + `"`},
		{"Traceparent", a.TraceParent},
		{"Tracestate", a.TraceState},
	}
	values := make([]string, len(own)) // one array for all: a fifth of what an attempt allocates
	for i, header := range own {
		if header[1] != "" {
			values[i] = header[1]
			h[header[0]] = values[i : i+1 : i+1]
		}
	}
	return h, nil
}

func bearer(token string) string {
	if token == "" {
		return ""
	}
	return "Bearer " + token
}

func fencing(term int64) string {
	if term == 0 {
		return ""
	}
	return strconv.FormatInt(term, 10)
}

// checkHeader refuses what could not be sent, or would be read as more than one header.
func checkHeader(name, value string) error {
	if name == "" || strings.ContainsFunc(name, notToken) {
		return fmt.Errorf("header name %q is not valid", name)
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return fmt.Errorf("the value of header %s holds control characters", name)
	}
	return nil
}

// notToken reports whether r may not occur in a header name (RFC 9110, token).
func notToken(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// reserved are the headers that belong to the protocol or to HTTP itself, in canonical form.
var reserved = map[string]bool{
	"Connection": true, "Content-Encoding": true, "Content-Length": true, "Content-Type": true,
	"Expect": true, "Host": true, "Idempotency-Key": true, "Keep-Alive": true, "Te": true,
	"Traceparent": true, "Tracestate": true, "Trailer": true, "Transfer-Encoding": true,
	"Upgrade": true, "User-Agent": true, "Proxy-Connection": true,
}

// reservedHeader reports whether a job may not set a header of this name. A jobs document that
// does is refused when it is loaded; here such a header is only left out.
func reservedHeader(name string) bool {
	name = http.CanonicalHeaderKey(strings.TrimSpace(name))
	if reserved[name] {
		return true
	}
	for _, prefix := range []string{"Ce-", "Leasecron-", "Webhook-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// readBearer reads the token that a job sends, anew each time: mounted tokens are rotated.
func readBearer(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	raw, err := readSmall(bearerFile, path, maxBearer)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(raw))
	switch {
	case token == "":
		return "", fmt.Errorf("bearerFile %s is empty", path)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("bearerFile %s holds characters that no token has", path)
	}
	return token, nil
}

// stamp writes a time as RFC 3339 in UTC with at most microseconds; "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
}
