package main

// attemptBugs are mistakes in when, how often and with what end an occurrence is tried, in what is kept
// of it, and in what every leader has to heed.
var attemptBugs = []bug{
	{"jitter is subtracted", []edit{
		{"engine/plan/plan.go", `DueAt: at.Add(s.timeline.Jitter(id))`, `DueAt: at.Add(-s.timeline.Jitter(id))`},
	}},
	{"a clock that is behind moves what waits for a slot before its instant", []edit{
		{"engine/plan/slots.go", `ahead > 0 && r.Cause != run.CauseSchedule && r.State`, `ahead > 0 && r.State`},
	}},
	{"an attempt is sent before it is due", []edit{
		{"engine/attempts.go", `e.waitUntil(ctx, h.run.DueAt)`, `e.waitUntil(ctx, h.run.DueAt.Add(-time.Millisecond))`},
		{"engine/held.go", `e.wall().Before(h.run.DueAt)`, `false`},
	}},
	{"an occurrence is recovered again after a retry", []edit{
		{"engine/plan/settle.go", `Retries: ended.Retries, Recovered: ended.Recovered,`, `Retries: ended.Retries,`},
	}},
	{"there is one retry too many", []edit{
		{"engine/plan/settle.go", `ended.Retries >= job.Retry.MaxRetries`, `ended.Retries > job.Retry.MaxRetries`},
	}},
	{"a failure for good is repeated", []edit{
		{"engine/plan/settle.go", `	return o.Retryable
`, `	return true
`},
	}},
	{"a success is recorded as a failure", []edit{
		{"engine/plan/settle.go", `	r.State, r.EndedAt = o.State, o.EndedAt
`, `	r.State, r.EndedAt = o.State, o.EndedAt
	if o.State == run.StateSucceeded && r.Attempt > 1 {
		r.State = run.StateFailed
	}
`},
	}},
	{"a late success cancels the attempt that is in flight", []edit{
		{"engine/plan/late.go", `&& further && again.State == run.StateQueued {`, `&& further {`},
	}},
	{"skips are dropped before the history has them", []edit{
		{"engine/flush.go", `l.Skipped = slices.DeleteFunc(l.Skipped, f.hasSkip)`, `l.Skipped = nil`},
	}},
	{"the history counts a range of skips as one", []edit{
		{"engine/state/skips.go", `older.Count+newer.Count`, `older.Count`},
	}},
	{"the history keeps no message of a failure", []edit{
		{"engine/state/history.go", `		r.Data = nil // the request body is not history's to keep
`, `		r.Data = nil // the request body is not history's to keep
		if r.State == run.StateFailed {
			r.Message = ""
		}
`},
	}},
	{"a flush that is stored late takes a note away", []edit{
		{"engine/state/history.go", `!have.Noted() || r.Noted()`, `true`},
	}},
	{"the lease is not asked before a send", []edit{
		{"engine/held.go", `	if err := h.lease.Check(); err != nil {
		return err
	}
	h.stage`, `	h.stage`},
		{"engine/term.go", `	e.giveUp() // in memory first, for good
`, ``},
		{"engine/turn.go", `		e.giveUp()
`, ``},
	}},
	{"serial jobs run beside themselves", []edit{
		{"engine/plan/slots.go", `if inFlight == 0 && (r.Attempt > 1 || !begun) {`, `if inFlight < 2 {`},
	}},
	{"there is a slot too many", []edit{
		{"engine/plan/slots.go", `free := p.in.MaxRuns - p.l.Claimed`, `free := 1 + p.in.MaxRuns - p.l.Claimed`},
	}},
	{"what the history has stays in the ledger", []edit{
		{"engine/flush.go", `l.Finished = slices.DeleteFunc(l.Finished, f.has)`, `_ = f.has`},
	}},
	{"nobody takes over whose Lease names an older term", []edit{
		{"engine/term.go", `	e.greatest.note(t.lease.AnnotatedTerm())
`, `	e.greatest.note(t.lease.AnnotatedTerm())
	if l, err := e.o.Ledger.Read(ctx); err == nil && l.Term > t.lease.AnnotatedTerm() {
		return ErrTermOver
	}
`},
	}},
}
