package callback_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/callback"
)

var full = callback.Run{
	ID: runID, Occurrence: occurrence, Job: "reports.nightly", Trigger: "workdays", Cause: callback.CauseSchedule,
	ScheduledAt: time.Date(2026, 10, 4, 22, 0, 0, 0, time.UTC), CoveredUntil: time.Date(2026, 10, 5, 22, 0, 0, 0, time.UTC),
	FiredAt: time.Date(2026, 10, 4, 22, 0, 0, 412000, time.UTC), Attempt: 1, Term: 12, Version: 3,
	Data: json.RawMessage(`{"format":"pdf"}`),
}

func TestParse(t *testing.T) {
	manual := full
	manual.Trigger, manual.Cause, manual.CoveredUntil, manual.Term, manual.Data = "", callback.CauseManual, time.Time{}, 0, nil
	retry := full
	retry.Attempt, retry.RetryOf, retry.OriginalOccurrence, retry.Cause = 2, otherRunID, strings.Repeat("0", 32), callback.CauseRetry
	tests := map[string]struct {
		body string
		want callback.Run
	}{
		"a scheduled run": {body, full},
		"a run by hand of scope instance": {strings.NewReplacer(`"workdays"`, "null", `"schedule"`, `"manual"`, `"2026-10-05T22:00:00Z"`, "null",
			`"term":12`, `"term":null`, `{"format":"pdf"}`, "null").Replace(body), manual},
		"a retry of a backfill": {strings.NewReplacer(`"attempt":1`, `"attempt":2`, `"retryOf":null`, `"retryOf":"`+otherRunID+`"`, `"schedule"`, `"retry"`,
			`"originalOccurrence":null`, `"originalOccurrence":"`+strings.Repeat("0", 32)+`"`).Replace(body), retry},
		"white space between":                       {"\n\t " + strings.ReplaceAll(body, `,"`, ` , "`) + "\r\n", full},
		"fields of a later version are passed over": {`{"dueIn":{"a":[1,{"id":2}]},` + body[1:], full},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := callback.Parse(jsonHeader(), []byte(tt.body))
			if err != nil {
				t.Fatalf("Parse(%s) = %v", tt.body, err)
			}
			if diff := cmp.Diff(tt.want, *got); diff != "" {
				t.Errorf("Parse(%s) (-want +got):\n%s", tt.body, diff)
			}
		})
	}
}

func TestParseKeepsWhatOnlyHeadersSay(t *testing.T) {
	h := jsonHeader()
	h.Set("Content-Type", "application/json; charset=UTF-8")
	h.Set("Ce-Source", "/leasecron/team-a/shop/scheduling")
	h.Set("Traceparent", "00-1-2-01")
	h.Set("Tracestate", "a=b")
	for name, value := range map[string]string{
		"Leasecron-Run-Id": runID, "Ce-Id": occurrence, "Idempotency-Key": `"` + occurrence + `"`, "Ce-Subject": "reports.nightly",
		"Leasecron-Trigger": "workdays", "Leasecron-Cause": "schedule", "Leasecron-Attempt": "1", "Leasecron-Fencing-Token": "12",
	} {
		h.Set(name, value)
	}
	run, err := callback.Parse(h, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if run.Source != "/leasecron/team-a/shop/scheduling" || run.TraceParent != "00-1-2-01" || run.TraceState != "a=b" {
		t.Errorf("source %q, trace %q %q", run.Source, run.TraceParent, run.TraceState)
	}
}

// TestParseRefuses: one clear error, which names the place.
func TestParseRefuses(t *testing.T) {
	replaced := func(old, with string) string {
		s := strings.Replace(body, old, with, 1)
		if s == body {
			panic("nothing replaced: " + old)
		}
		return s
	}
	header := func(name string, values ...string) http.Header {
		h := jsonHeader()
		h[name] = values
		return h
	}
	tests := map[string]struct {
		header http.Header
		body   string
		status int
		want   string
	}{
		"no content type":                {http.Header{}, body, 415, "Content-Type"},
		"two content types":              {header("Content-Type", "application/json", "text/plain"), body, 415, "got 2"},
		"another content type":           {header("Content-Type", "text/plain"), body, 415, "text/plain"},
		"a content type that is none":    {header("Content-Type", "application/json; ="), body, 415, "want application/json"},
		"another charset":                {header("Content-Type", "application/json; charset=latin1"), body, 415, "latin1"},
		"compressed":                     {header("Content-Encoding", "gzip"), body, 415, "gzip"},
		"empty":                          {nil, "", 400, "not a JSON object"},
		"a list":                         {nil, "[" + body + "]", 400, "not a JSON object"},
		"a text":                         {nil, `"x"`, 400, "not a JSON object"},
		"cut off":                        {nil, body[:len(body)-1], 400, "not valid JSON"},
		"cut off within a value":         {nil, body[:40], 400, "not valid JSON"},
		"two objects":                    {nil, body + body, 400, "follows"},
		"not UTF-8":                      {nil, replaced("pdf", "\xff"), 400, "UTF-8"},
		"another object":                 {nil, `{"hello":"world"}`, 400, "id is missing"},
		"a key twice":                    {nil, `{"id":"` + otherRunID + `",` + body[1:], 400, `"id" twice`},
		"an unknown key twice":           {nil, `{"x":1,"x":2,` + body[1:], 400, `"x" twice`},
		"a key of another case is none":  {nil, replaced(`"id"`, `"ID"`), 400, "id is missing"},
		"no job":                         {nil, replaced(`"job":"reports.nightly",`, ""), 400, "job is missing"},
		"an upper-case ID":               {nil, replaced(runID, strings.ToUpper(runID)), 400, "id:"},
		"a short occurrence":             {nil, replaced(occurrence, "5f0e"), 400, "occurrence:"},
		"an ID that is null":             {nil, replaced(`"`+runID+`"`, "null"), 400, "id: want a text"},
		"an ID that is a number":         {nil, replaced(`"`+runID+`"`, "7"), 400, "id: want a text"},
		"a job that is a path":           {nil, replaced("reports.nightly", "../etc"), 400, "job:"},
		"a job that begins with a dash":  {nil, replaced("reports.nightly", "-a"), 400, "job:"},
		"a long job":                     {nil, replaced("reports.nightly", strings.Repeat("a", 129)), 400, "128"},
		"an empty job":                   {nil, replaced("reports.nightly", ""), 400, "job:"},
		"a trigger with a line break":    {nil, replaced("workdays", `a\nb`), 400, "trigger:"},
		"attempt 0":                      {nil, replaced(`"attempt":1`, `"attempt":0`), 400, "attempt: 0"},
		"half an attempt":                {nil, replaced(`"attempt":1`, `"attempt":1.5`), 400, "attempt: 1.5"},
		"an attempt that is a text":      {nil, replaced(`"attempt":1`, `"attempt":"1"`), 400, "attempt:"},
		"an attempt that overflows":      {nil, replaced(`"attempt":1`, `"attempt":99999999999999999999`), 400, "attempt:"},
		"a negative version":             {nil, replaced(`"version":3`, `"version":-1`), 400, "version:"},
		"token 0":                        {nil, replaced(`"term":12`, `"term":0`), 400, "term: 0"},
		"a token with an exponent":       {nil, replaced(`"term":12`, `"term":12e0`), 400, "term:"},
		"a local time":                   {nil, replaced("2026-10-04T22:00:00Z", "2026-10-04 22:00:00"), 400, "scheduledAt:"},
		"a time that is a number":        {nil, replaced(`"2026-10-04T22:00:00Z"`, "1790000000"), 400, "scheduledAt:"},
		"data that is a list":            {nil, replaced(`{"format":"pdf"}`, "[1]"), 400, "data:"},
		"data that is a text":            {nil, replaced(`{"format":"pdf"}`, `"x"`), 400, "data:"},
		"another run ID in the header":   {header("Leasecron-Run-Id", otherRunID), body, 400, "Leasecron-Run-Id"},
		"the run ID twice in the header": {header("Leasecron-Run-Id", runID, runID), body, 400, "Leasecron-Run-Id"},
		"signed for another run":         {header("Webhook-Id", otherRunID), body, 400, "Webhook-Id"},
		"another event ID":               {header("Ce-Id", runID), body, 400, "Ce-Id"},
		"another job in the header":      {header("Ce-Subject", "cleanup"), body, 400, "Ce-Subject"},
		"another key":                    {header("Idempotency-Key", occurrence), body, 400, "Idempotency-Key"},
		"a higher token in the header":   {header("Leasecron-Fencing-Token", "13"), body, 400, "Leasecron-Fencing-Token"},
		"a token in the header alone":    {header("Leasecron-Fencing-Token", "12"), replaced(`"term":12`, `"term":null`), 400, "Leasecron-Fencing-Token"},
		"another attempt in the header":  {header("Leasecron-Attempt", "2"), body, 400, "Leasecron-Attempt"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := tt.header
			if h == nil {
				h = jsonHeader()
			}
			_, err := callback.Parse(h, []byte(tt.body))
			var bad *callback.RequestError
			if !errors.As(err, &bad) || bad.Status != tt.status || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Parse(%s) = %v, want status %d and a text with %q", tt.body, err, tt.status, tt.want)
			}
			if err != nil && len(err.Error()) > 400 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestDecodeKeepsEveryDigit(t *testing.T) {
	const data = `{"big":9007199254740993,"small":0.1000000000000000055,"any":{"n":12345678901234567890},"raw":1.50}`
	run, err := callback.Parse(jsonHeader(), []byte(strings.Replace(body, `{"format":"pdf"}`, data, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if string(run.Data) != data {
		t.Errorf("data %s, want %s", run.Data, data)
	}
	var got struct {
		Big   int64
		Small json.Number
		Any   map[string]any
		Raw   json.RawMessage
	}
	if err := run.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Big != 9007199254740993 || got.Small != "0.1000000000000000055" || got.Any["n"] != json.Number("12345678901234567890") || string(got.Raw) != "1.50" {
		t.Errorf("decoded %+v", got)
	}
}

func TestDecode(t *testing.T) {
	run := &callback.Run{Job: "reports", Data: json.RawMessage(`{"format":"pdf","pages":3}`)}
	v := struct{ Format string }{}
	if err := run.Decode(&v); err != nil || v.Format != "pdf" {
		t.Errorf("Decode() = %v, %+v", err, v)
	}
	if err := run.DecodeStrict(&v); err == nil || !strings.Contains(err.Error(), "pages") {
		t.Errorf("DecodeStrict() = %v, want an error that names pages", err)
	}
	var number struct{ Format int }
	if err := run.Decode(&number); err == nil || !strings.Contains(err.Error(), "data of job reports") {
		t.Errorf("Decode() = %v, want an error that names the job", err)
	}
	v.Format = "as before"
	if err := (&callback.Run{}).DecodeStrict(&v); err != nil || v.Format != "as before" {
		t.Errorf("Decode() without data = %v, %+v, want nothing changed", err, v)
	}
	if err := (&callback.Run{Data: json.RawMessage(`{} {}`)}).Decode(&v); err == nil {
		t.Error("Decode() of two values = nil, want an error")
	}
}

// FuzzParse: whatever arrives, Parse ends, and what it accepts is a run.
func FuzzParse(f *testing.F) {
	f.Add("application/json", body)
	f.Add("application/json; charset=utf-8", strings.Replace(body, `"term":12`, `"term":null,"x":[{}]`, 1))
	f.Add("text/plain", body)
	f.Add("application/json", `{"id":null}`)
	f.Add("application/json", strings.Repeat("[", 20_000))
	f.Add("application/json", `{"data":`+strings.Repeat(`{"a":`, 11_000))
	f.Fuzz(func(t *testing.T, contentType, text string) {
		run, err := callback.Parse(http.Header{"Content-Type": {contentType}}, []byte(text))
		if err != nil {
			var bad *callback.RequestError
			if run != nil || !errors.As(err, &bad) || bad.Status < 400 || bad.Status > 499 {
				t.Fatalf("Parse() = %v, %v", run, err)
			}
			return
		}
		if len(run.ID) != 32 || len(run.Occurrence) != 32 || run.Job == "" || run.Attempt < 1 || run.Term < 0 {
			t.Fatalf("Parse() accepted %+v", run)
		}
		if !strings.Contains(text, string(run.Data)) {
			t.Fatalf("data %q is not as it arrived", run.Data)
		}
		var v map[string]any
		if err := run.Decode(&v); err != nil {
			t.Fatalf("accepted data cannot be decoded: %v", err)
		}
	})
}
