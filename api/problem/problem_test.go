package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/api/problem"
	"github.com/leasecron/leasecron/engine/run"
)

func TestFrom(t *testing.T) {
	const hidden = "an unexpected error occurred; the log has it under the request ID"
	tests := map[string]struct {
		err    error
		status int
		code   run.Code
		detail string
	}{
		"an error with a code":            {run.Errorf(run.CodeJobNotFound, "there is no job %q", "a"), 404, run.CodeJobNotFound, `there is no job "a"`},
		"wrapped in others":               {fmt.Errorf("enqueue: %w", run.Errorf(run.CodeLedgerFull, "full")), 503, run.CodeLedgerFull, "full"},
		"its cause is not told":           {&run.Error{Code: run.CodeLedgerUnknown, Detail: "no answer", Err: errors.New("10.0.0.1")}, 503, run.CodeLedgerUnknown, "no answer"},
		"a problem is itself":             {problem.Status(413, "too large"), 413, "", "too large"},
		"any other error stays inside":    {errors.New("token=abc"), 500, "", hidden},
		"a code that nobody has heard of": {run.Errorf("SCHEDULING_NOVELTY_001", "new"), 500, "", "new"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := problem.From(tt.err)
			if p.Status != tt.status || p.Code != tt.code || p.Detail != tt.detail {
				t.Errorf("From(%v) = %d %q %q, want %d %q %q", tt.err, p.Status, p.Code, p.Detail, tt.status, tt.code, tt.detail)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	w := httptest.NewRecorder()
	p := problem.New(run.CodeAlreadyRunning, "run 0193 has not ended")
	p.RequestID = "request-1"
	p.Write(w)
	if w.Code != 409 || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("wrote %d %s", w.Code, w.Header().Get("Content-Type"))
	}
	var got map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type":   "https://github.com/leasecron/leasecron/blob/main/docs/errors.md#scheduling_conflict_001",
		"title":  "The job is already running",
		"status": 409.0, "detail": "run 0193 has not ended",
		"code": "SCHEDULING_CONFLICT_001", "requestId": "request-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}

// A problem's type is a link into this document, so the document has a heading for each code.
func TestDocumentationExplainsEveryCode(t *testing.T) {
	text, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^## (SCHEDULING_\S+)\n\n(\d{3})\. `).FindAllStringSubmatch(string(text), -1) {
		documented[m[1]], _ = strconv.Atoi(m[2])
	}
	want := map[string]int{}
	for _, code := range problem.Codes() {
		p := problem.New(code, "")
		want[string(code)] = p.Status
		if !strings.HasSuffix(p.Type, "#"+strings.ToLower(string(code))) || p.Title == "" {
			t.Errorf("%s: type %q, title %q", code, p.Type, p.Title)
		}
	}
	if diff := cmp.Diff(want, documented); diff != "" {
		t.Errorf("docs/errors.md (-catalog +document):\n%s", diff)
	}
}

// The codes are declared in package run; a new one must not be answered as unexpected.
func TestCatalogKnowsEveryDeclaredCode(t *testing.T) {
	source, err := os.ReadFile("../../engine/run/code.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`Code = "(SCHEDULING_\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(declared) == 0 {
		t.Fatal("no codes found")
	}
	for _, m := range declared {
		if p := problem.New(run.Code(m[1]), ""); string(p.Code) != m[1] {
			t.Errorf("%s is not in the catalog", m[1])
		}
	}
}
