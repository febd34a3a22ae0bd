// Package problem renders errors as RFC 9457 problem documents, with the codes that the
// ledger, the metrics and the retry rules share (package engine/run).
//
// What a code means, and the HTTP status it is answered with, stands in one catalog; an error
// without a code is about HTTP itself (no such path, a body too large) and has none.
package problem

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/leasecron/leasecron/engine/run"
)

// ContentType is the media type of a problem document.
const ContentType = "application/problem+json"

// typeBase is where the codes are explained; a problem's type is this and the code.
const typeBase = "https://github.com/leasecron/leasecron/blob/main/docs/errors.md#"

// Problem is one problem document.
type Problem struct { //nolint:errname // RFC 9457 calls it a problem
	Type      string   `json:"type" doc:"Where this kind of error is explained; about:blank when the status says it all." example:"https://github.com/leasecron/leasecron/blob/main/docs/errors.md#scheduling_notfound_001"`
	Title     string   `json:"title" doc:"The kind of error, the same each time." example:"No such job"`
	Status    int      `json:"status" doc:"The HTTP status." example:"404"`
	Detail    string   `json:"detail,omitempty" doc:"What went wrong this time, and what to do."`
	Code      run.Code `json:"code,omitempty" doc:"The code of the error, for programs." example:"SCHEDULING_NOTFOUND_001"`
	RequestID string   `json:"requestId,omitempty" doc:"The request, as in the X-Request-Id header and in the log."`
	Errors    []Item   `json:"errors,omitempty" doc:"Every single thing that is wrong with the request."`
}

// Item is one of several things that are wrong with a request.
type Item struct {
	Location string `json:"location,omitempty" doc:"Where it is, as in body.data or query.limit."`
	Message  string `json:"message"`
}

// New returns the problem of a code.
func New(code run.Code, detail string) *Problem {
	e, ok := english[code]
	if !ok {
		return Status(http.StatusInternalServerError, detail)
	}
	return &Problem{
		Type:   typeBase + strings.ToLower(string(code)),
		Title:  e.title,
		Status: e.status,
		Detail: detail,
		Code:   code,
	}
}

// Status returns a problem that has no code, only an HTTP status.
func Status(status int, detail string) *Problem {
	return &Problem{
		Type: "about:blank", Title: cmp.Or(http.StatusText(status), "Error"), Status: status, Detail: detail,
	}
}

// From turns any error into a problem. The text of an error that is neither a [Problem] nor a
// [run.Error] stays inside, since it may name things that are nobody else's business: the
// caller logs it, the client gets the request ID to ask with.
func From(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*run.Error](err); ok {
		return New(e.Code, e.Detail)
	}
	return Status(http.StatusInternalServerError, "an unexpected error occurred; the log has it under the request ID")
}

// Error returns the detail, or the title where there is none.
func (p *Problem) Error() string { return cmp.Or(p.Detail, p.Title) }

// GetStatus returns the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is asked by the API's framework, which would otherwise call it plain JSON.
func (p *Problem) ContentType(string) string { return ContentType }

// Write answers a request with the problem.
func (p *Problem) Write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil { // strings and numbers: cannot happen
		http.Error(w, p.Title, p.Status)
		return
	}
	w.Header().Set("Content-Type", ContentType)
	w.WriteHeader(p.Status)
	_, _ = w.Write(append(body, '\n')) // the client may have gone; there is nobody left to tell
}
