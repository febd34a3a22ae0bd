// Package invoker delivers one attempt of a run to the app as one HTTP callback and says how
// it ended.
//
// It promises: at most one request per attempt reaches the app, whatever the connection does;
// [run.Attempt.MayStart] is the last question asked before the first byte is written; an
// attempt always ends by its timeout; nothing larger than a few KiB of an answer is read; and
// a request goes to loopback or to a listed host only, judged again after name resolution.
//
// What surely never reached the app (connection refused, no such host, an idle connection
// found closed) is tried again for a short while inside the attempt. Everything else is the
// planner's to repeat, as an attempt of its own: a reader who adds a retry here breaks the
// first promise.
//
// No message that leaves this package carries a token, a query string or the body of a request.
package invoker
