package invoker

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasecron/leasecron/engine/run"
)

// payload is the body as encoding/json would write it.
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

func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

// TestBodyIsWhatTheEncoderWrites: whatever the run holds, byte for byte.
func TestBodyIsWhatTheEncoderWrites(t *testing.T) {
	data := rapid.SampledFrom([]json.RawMessage{
		nil, json.RawMessage(`{}`), json.RawMessage("{ \"a\" : [1.50, 9007199254740993 ],\n\"<b>\":\"&\u2028\"}"), json.RawMessage(`{"firedAt":"x"}`),
		json.RawMessage(`null`),
	})
	at := rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.Bool().Draw(t, "zero") {
			return time.Time{}
		}
		return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).
			In(time.FixedZone("", 3600))
	})
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return rapid.String().Draw(t, name) }
		a := run.Attempt{
			Run: run.Run{
				ID: text("id"), Occurrence: text("occurrence"), Key: run.Key{Job: text("job"), Trigger: text("trigger")},
				Cause: run.Cause(text("cause")), ScheduledAt: at.Draw(t, "scheduledAt"), CoveredUntil: at.Draw(t, "coveredUntil"),
				Attempt: rapid.Int().Draw(t, "attempt"), RetryOf: text("retryOf"), OriginalOf: text("originalOf"),
				Version: rapid.Int().Draw(t, "version"),
			},
			FencingTerm: rapid.Int64().Draw(t, "term"), Data: data.Draw(t, "data"),
		}
		firedAt := time.Unix(1_700_000_000, rapid.Int64Range(0, 999_999_999).Draw(t, "fired"))
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		err := enc.Encode(payload{
			ID: a.Run.ID, Occurrence: a.Run.Occurrence, Job: a.Run.Key.Job, Trigger: orNull(a.Run.Key.Trigger), Cause: a.Run.Cause,
			ScheduledAt: orNull(stamp(a.Run.ScheduledAt)), CoveredUntil: orNull(stamp(a.Run.CoveredUntil)),
			FiredAt: firedAt.UTC().Format(firedLayout), Attempt: a.Run.Attempt, RetryOf: orNull(a.Run.RetryOf),
			OriginalOccurrence: orNull(a.Run.OriginalOf), Term: orNull(a.FencingTerm), Version: a.Run.Version, Data: a.Data,
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := encode(a, firedAt)
		if err != nil || string(got) != strings.TrimSuffix(want.String(), "\n") {
			t.Fatalf("encode() = %s, %v\nwant %s", got, err, want.String())
		}
		again := firedAt.Add(time.Hour)
		if refired, err := encode(a, again); err != nil || !bytes.Equal(refire(got, again), refired) {
			t.Fatalf("refire(%s) = %s, want %s", got, refire(got, again), refired)
		}
	})
	for _, bad := range []string{"{", "hello", `{"a":1}}`, `{"a":01}`, "\t"} {
		if got, err := encode(run.Attempt{Data: json.RawMessage(bad)}, time.Now()); err == nil || strings.Contains(err.Error(), bad) {
			t.Errorf("encode() of data %q = %s, %v, want an error that does not repeat it", bad, got, err)
		}
	}
}
