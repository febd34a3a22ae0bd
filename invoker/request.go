package invoker

import (
	"bytes"
	"encoding/json"
	"errors"
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

// payload is the body of a callback. What does not apply is null, never left out.
type payload struct {
	ID                 string          `json:"id"`
	Occurrence         string          `json:"occurrence"`
	Job                string          `json:"job"`
	Trigger            *string         `json:"trigger"`
	Cause              run.Cause       `json:"cause"`
	ScheduledAt        *string         `json:"scheduledAt"`
	CoveredUntil       *string         `json:"coveredUntil"`
	FiredAt            string          `json:"firedAt"`
	Attempt            int             `json:"attempt"`
	RetryOf            *string         `json:"retryOf"`
	OriginalOccurrence *string         `json:"originalOccurrence"`
	Term               *int64          `json:"term"`
	Version            int             `json:"version"`
	Data               json.RawMessage `json:"data"`
}

// firedLayout has a fixed width, so that a body keeps its length when it is fired again.
const firedLayout = "2006-01-02T15:04:05.000000Z"

// encode writes the body of an attempt that is fired at the given time.
func encode(a run.Attempt, firedAt time.Time) ([]byte, error) {
	if len(a.Data) > MaxData {
		return nil, fmt.Errorf("data has %d bytes: at most %d are sent", len(a.Data), MaxData)
	}
	r := a.Run
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // the app gets its data as it was written
	err := enc.Encode(payload{
		ID:                 r.ID,
		Occurrence:         r.Occurrence,
		Job:                r.Key.Job,
		Trigger:            orNull(r.Key.Trigger),
		Cause:              r.Cause,
		ScheduledAt:        orNull(stamp(r.ScheduledAt)),
		CoveredUntil:       orNull(stamp(r.CoveredUntil)),
		FiredAt:            firedAt.UTC().Format(firedLayout),
		Attempt:            r.Attempt,
		RetryOf:            orNull(r.RetryOf),
		OriginalOccurrence: orNull(r.OriginalOf),
		Term:               orNull(a.FencingTerm),
		Version:            r.Version,
		Data:               a.Data,
	})
	if err != nil {
		return nil, errors.New("data is not valid JSON") // the encoder's text may quote it
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// refire returns a copy of a body with another time of firing. A copy, because the transport may
// still be reading the body of the try before.
func refire(body []byte, firedAt time.Time) []byte {
	const key = `"firedAt":"`
	// The first match is the field itself: it comes before data, and within a text the quotes
	// would be escaped.
	at := bytes.Index(body, []byte(key))
	body = bytes.Clone(body)
	if at >= 0 {
		copy(body[at+len(key):], firedAt.UTC().Format(firedLayout))
	}
	return body
}

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

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
