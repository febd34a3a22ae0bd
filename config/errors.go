package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// FieldError says what is wrong with one field of a jobs document.
type FieldError struct {
	File   string // the name that Parse was given
	Line   int    // from 1
	Column int    // from 1, in characters
	Path   string // such as jobs[2].triggers[0].schedule; empty for the document as a whole
	Job    string // name of the job that the field belongs to, where it is known
	Err    error  // what is wrong, and what was expected
}

// Error returns one line: place, path, what is wrong.
func (e *FieldError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", e.File, e.Line, e.Column)
	if e.Path != "" {
		b.WriteString(e.Path)
		if e.Job != "" {
			fmt.Fprintf(&b, " (job %s)", e.Job)
		}
		b.WriteString(": ")
	}
	b.WriteString(e.Err.Error())
	return b.String()
}

// Unwrap returns what is wrong without its place.
func (e *FieldError) Unwrap() error { return e.Err }

// Warning is a remark about a document that is accepted all the same.
type Warning struct {
	File    string
	Line    int
	Column  int
	Path    string
	Job     string
	Message string
}

// String returns one line, in the form of [FieldError.Error].
func (w Warning) String() string {
	e := FieldError{File: w.File, Line: w.Line, Column: w.Column, Path: w.Path, Job: w.Job, Err: errors.New(w.Message)}
	return e.Error()
}

// mostErrors bounds what one document can make us say: past it, a reader has the wrong file.
const mostErrors = 100

// joinFieldErrors orders the problems by position and joins them.
func joinFieldErrors(problems []*FieldError) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b *FieldError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	errs := make([]error, 0, min(len(problems), mostErrors)+1)
	for i, p := range problems {
		if i == mostErrors {
			errs = append(errs, &FieldError{
				File: p.File, Line: p.Line, Column: p.Column,
				Err: fmt.Errorf("%d more problems from here on are not listed", len(problems)-mostErrors),
			})
			break
		}
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}
