package run

import "fmt"

// Error is a request that was refused or has failed, with the code that tells why: what the
// API answers, the metrics count and a caller compares by.
type Error struct {
	Code   Code
	Detail string // a sentence for people; names the job, the run or the limit
	Err    error  // what lies beneath; may be nil
}

// Errorf returns an [Error] with a formatted detail.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Error returns the detail and the cause.
func (e *Error) Error() string {
	if e.Err == nil {
		return e.Detail
	}
	return e.Detail + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
