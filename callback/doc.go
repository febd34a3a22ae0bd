// Package callback is the app's side of leasecron: it turns the callbacks of a sidecar into calls
// of Go functions. It needs the standard library alone.
//
//	r := callback.NewReceiver(callback.Options{})
//	mux.Handle("POST /jobs/report", r.Handler(report))       // done when it answers
//	mux.Handle("POST /jobs/import", r.AsyncHandler(imports)) // for jobs with async: true
//
// A handler verifies the signature ([Verifier]), parses the run ([Parse], [Run]), refuses the
// tokens of leaders that have been overtaken ([Fence]), does the work of an occurrence once
// however often it is delivered ([Store]), and answers with what the error of the work asks for
// ([Permanent], [RetryAfter]). An asynchronous one answers first, and then tells the sidecar how
// the work goes and ends ([ReportProgress], [Sidecar]).
//
// Each part works alone too: Verify and Parse for another router, a Sidecar for a worker process.
//
// # What is remembered where
//
// By default an occurrence is remembered in this process. That covers what happens most: a retry
// after a timeout or after an answer that was lost. But each sidecar calls the app beside it, so
// that a retry or recovery after a change of leader reaches another replica. Work that must not be
// done twice even then needs a [Store] that the replicas share, or, better, a statement that is
// idempotent by itself, such as an insert under the occurrence as unique key, in the transaction
// that does the work. The same holds for tokens: [Fence].
//
// Failures are forgotten, so that a retry passes. What the app did before it failed is not undone:
// make it whole or nothing, or repeatable.
//
// # Errors
//
// An error of the work becomes the answer, and its text the message of the run:
//
//	nil                     200   Succeeded
//	Permanent(err)          422   Failed, no retry
//	ErrStaleToken           409   Failed, no retry
//	RetryAfter(err, wait)   503   Failed; the retry comes no sooner
//	any other, or a panic   500   Failed; a retry as the job says
//
// What the sidecar does with each answer is in docs/callback.md.
package callback
