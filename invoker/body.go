package invoker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leasecron/leasecron/engine/run"
)

// firedLayout has a fixed width, so that a body keeps its length when it is fired again.
const firedLayout = "2006-01-02T15:04:05.000000Z"

// encode writes the body of an attempt that is fired at the given time. What does not apply is
// null, never left out. It writes key by key: the encoder's reflection takes as long as the rest
// of a callback's preparation.
func encode(a run.Attempt, firedAt time.Time) ([]byte, error) {
	if len(a.Data) > MaxData {
		return nil, fmt.Errorf("data has %d bytes: at most %d are sent", len(a.Data), MaxData)
	}
	r := a.Run
	b := make([]byte, 0, 512+len(a.Data))
	b = appendText(append(b, `{"id":`...), r.ID)
	b = appendText(append(b, `,"occurrence":`...), r.Occurrence)
	b = appendText(append(b, `,"job":`...), r.Key.Job)
	b = appendOrNull(append(b, `,"trigger":`...), r.Key.Trigger)
	b = appendText(append(b, `,"cause":`...), string(r.Cause))
	b = appendTime(append(b, `,"scheduledAt":`...), r.ScheduledAt)
	b = appendTime(append(b, `,"coveredUntil":`...), r.CoveredUntil)
	b = append(firedAt.UTC().AppendFormat(append(b, `,"firedAt":"`...), firedLayout), '"')
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(r.Attempt), 10)
	b = appendOrNull(append(b, `,"retryOf":`...), r.RetryOf)
	b = appendOrNull(append(b, `,"originalOccurrence":`...), r.OriginalOf)
	b = append(b, `,"term":`...)
	if a.FencingTerm == 0 {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendInt(b, a.FencingTerm, 10)
	}
	b = strconv.AppendInt(append(b, `,"version":`...), int64(r.Version), 10)
	b = append(b, `,"data":`...)
	if len(a.Data) == 0 {
		return append(b, "null}"...), nil
	}
	buf := bytes.NewBuffer(b)
	if err := json.Compact(buf, a.Data); err != nil {
		return nil, errors.New("data is not valid JSON") // the compactor's text may quote it
	}
	return append(buf.Bytes(), '}'), nil
}

// appendText writes a JSON string. Names and identifiers are plain ASCII; anything else is left to
// the encoder.
func appendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return appendEncoded(b, s)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendEncoded(b []byte, s string) []byte {
	buf := bytes.NewBuffer(b)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // of a string cannot fail
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

func appendOrNull(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendText(b, s)
}

func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	return append(t.UTC().Truncate(time.Microsecond).AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
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
