package callback

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// DefaultMaxBody is the largest body that is read unless [Options] say otherwise: the 256 KiB of
// data that a run may have, and room for the rest.
const DefaultMaxBody = 512 << 10

// Parse reads a callback whose body has been read and, if it is signed, verified. The body alone
// decides; a header that says something else than the body is an error, because it was not the
// sidecar that wrote it. Fields that this version does not know are passed over.
//
// Errors are of type [*RequestError].
func Parse(header http.Header, body []byte) (*Run, error) {
	if err := checkContent(header); err != nil {
		return nil, err
	}
	run, err := parseBody(body)
	if err == nil {
		err = agree(header, run)
	}
	if err != nil {
		return nil, &RequestError{Status: http.StatusBadRequest, Err: err}
	}
	run.Source = header.Get("Ce-Source")
	run.TraceParent, run.TraceState = header.Get("Traceparent"), header.Get("Tracestate")
	return run, nil
}

// checkContent asks for JSON in UTF-8 as it is.
func checkContent(header http.Header) error {
	refuse := func(format string, args ...any) error {
		return &RequestError{Status: http.StatusUnsupportedMediaType, Err: fmt.Errorf(format, args...)}
	}
	if coding := header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return refuse("Content-Encoding %.40q: a callback is not compressed", coding)
	}
	types := header.Values("Content-Type")
	if len(types) != 1 {
		return refuse("want one Content-Type, application/json, got %d", len(types))
	}
	media, params, err := mime.ParseMediaType(types[0])
	if err != nil || media != "application/json" {
		return refuse("Content-Type %.80q: want application/json", types[0])
	}
	if charset := params["charset"]; charset != "" && !strings.EqualFold(charset, "utf-8") {
		return refuse("charset %.40q: want utf-8", charset)
	}
	return nil
}

// parseBody reads the object key by key: json.Unmarshal would take keys of another case and the
// last of several equal ones, which two readers of one body may understand differently.
func parseBody(body []byte) (*Run, error) {
	if !utf8.Valid(body) {
		return nil, errors.New("the body is not UTF-8")
	}
	run := new(Run)
	fields := run.fields()
	seen := make(map[string]bool, len(fields))

	d := json.NewDecoder(bytes.NewReader(body))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the body is not a JSON object")
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, syntax(err)
		}
		key, _ := t.(string) // a decoder lets nothing else stand here
		if seen[key] {
			return nil, fmt.Errorf("the body has the key %.40q twice", key)
		}
		seen[key] = true
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, syntax(err)
		}
		if read, ok := fields[key]; ok {
			if err := read(value); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
	}
	if _, err := d.Token(); err != nil {
		return nil, syntax(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	for _, key := range [...]string{"id", "occurrence", "job", "cause", "attempt"} {
		if !seen[key] {
			return nil, fmt.Errorf("%s is missing: is this a callback of leasecron?", key)
		}
	}
	return run, nil
}

func syntax(err error) error { return fmt.Errorf("the body is not valid JSON: %w", err) }

// fields are the readers of the body's keys.
func (r *Run) fields() map[string]func(json.RawMessage) error {
	return map[string]func(json.RawMessage) error{
		"id":                 func(v json.RawMessage) error { return readText(v, &r.ID, false, identifier) },
		"occurrence":         func(v json.RawMessage) error { return readText(v, &r.Occurrence, false, identifier) },
		"job":                func(v json.RawMessage) error { return readText(v, &r.Job, false, name) },
		"trigger":            func(v json.RawMessage) error { return readText(v, &r.Trigger, true, name) },
		"cause":              func(v json.RawMessage) error { return readText(v, (*string)(&r.Cause), false, name) },
		"scheduledAt":        func(v json.RawMessage) error { return readTime(v, &r.ScheduledAt) },
		"coveredUntil":       func(v json.RawMessage) error { return readTime(v, &r.CoveredUntil) },
		"firedAt":            func(v json.RawMessage) error { return readTime(v, &r.FiredAt) },
		"attempt":            func(v json.RawMessage) error { return readInt(v, &r.Attempt, 1) },
		"retryOf":            func(v json.RawMessage) error { return readText(v, &r.RetryOf, true, identifier) },
		"originalOccurrence": func(v json.RawMessage) error { return readText(v, &r.OriginalOccurrence, true, identifier) },
		"term":               func(v json.RawMessage) error { return readTerm(v, &r.Term) },
		"version":            func(v json.RawMessage) error { return readInt(v, &r.Version, 0) },
		"data":               func(v json.RawMessage) error { return readData(v, &r.Data) },
	}
}

func isNull(v json.RawMessage) bool { return string(v) == "null" }

func readText(v json.RawMessage, to *string, nullable bool, check func(string) error) error {
	if nullable && isNull(v) {
		return nil
	}
	if len(v) == 0 || v[0] != '"' {
		return errors.New("want a text")
	}
	if err := json.Unmarshal(v, to); err != nil {
		return errors.New("want a text")
	}
	return check(*to)
}

// identifier checks 32 lower-case hex digits.
func identifier(s string) error {
	if len(s) != 32 || strings.Trim(s, "0123456789abcdef") != "" {
		return fmt.Errorf("%.40q: want 32 lower-case hex digits", s)
	}
	return nil
}

// name checks the rule for names of jobs and triggers: ^[a-z0-9][a-z0-9._-]{0,127}$.
func name(s string) error {
	const first = "abcdefghijklmnopqrstuvwxyz0123456789"
	if s == "" || len(s) > 128 || !strings.Contains(first, s[:1]) || strings.Trim(s, first+"._-") != "" {
		return fmt.Errorf("%.40q: want at most 128 lower-case letters, digits, dots, dashes and underscores", s)
	}
	return nil
}

func readTime(v json.RawMessage, to *time.Time) error {
	if isNull(v) {
		return nil
	}
	var text string
	if err := readText(v, &text, false, func(string) error { return nil }); err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return fmt.Errorf("%.40q: want a time as RFC 3339 writes it", text)
	}
	*to = at.UTC()
	return nil
}

func readInt(v json.RawMessage, to *int, least int) error {
	n, err := strconv.ParseInt(string(v), 10, 32)
	if err != nil || int(n) < least {
		return fmt.Errorf("%.40s: want a whole number from %d on", v, least)
	}
	*to = int(n)
	return nil
}

func readTerm(v json.RawMessage, to *int64) error {
	if isNull(v) {
		return nil
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < 1 {
		return fmt.Errorf("%.40s: want a whole number from 1 on, or null", v)
	}
	*to = n
	return nil
}

func readData(v json.RawMessage, to *json.RawMessage) error {
	if isNull(v) {
		return nil
	}
	if v[0] != '{' {
		return errors.New("want a JSON object or null")
	}
	*to = v
	return nil
}

// agree compares the headers that repeat the body.
func agree(header http.Header, r *Run) error {
	for _, h := range [...]struct{ name, body string }{
		{"Webhook-Id", r.ID},
		{"Leasecron-Run-Id", r.ID},
		{"Ce-Id", r.Occurrence},
		{"Idempotency-Key", strconv.Quote(r.Occurrence)},
		{"Ce-Subject", r.Job},
		{"Leasecron-Trigger", r.Trigger},
		{"Leasecron-Cause", string(r.Cause)},
		{"Leasecron-Attempt", strconv.Itoa(r.Attempt)},
		{"Leasecron-Fencing-Token", term(r.Term)},
	} {
		// A proxy may take a header away, not change or repeat it.
		if got := header.Values(h.name); len(got) > 1 || len(got) == 1 && got[0] != h.body {
			return fmt.Errorf("the header %s is %.80q and the body says %.80q", h.name, got, h.body)
		}
	}
	return nil
}

func term(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}
