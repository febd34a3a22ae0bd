package main

// decisionBugs are mistakes in what is decided about an instant, and when.
var decisionBugs = []bug{
	{name: "an instant counts as missed within its grace", edits: []edit{
		{"engine/plan/plan.go", `late := p.in.Now.Sub(at) > misfire.Grace`, `late := p.in.Now.Sub(at) > misfire.Grace/2`},
	}},
	{name: "an instant within the window is passed over", edits: []edit{
		{"engine/plan/plan.go", `p.in.Now.Sub(at) > misfire.Window {`, `p.in.Now.Sub(at) > misfire.Window/2 {`},
	}},
	{name: "a range that coalesces ends too soon", edits: []edit{
		{"engine/plan/plan.go", `			return p.fire(key, s, at, end, remembered), false
`, `			return p.fire(key, s, at, s.cut(p.in.Now.Add(-misfire.Grace/2)), remembered), false
`},
	}},
	{name: "an overlap is seen where nothing runs", edits: []edit{
		{"engine/plan/overlap.go", `	if unfinished == 0 {
`, `	if unfinished == 0 && (s.rules.overlap != config.OverlapSkip || at.After(p.in.Now)) {
`},
	}},
	{name: "what is paused is decided", edits: []edit{
		{"engine/plan/plan.go", `p.in.Definitions.Paused(key, p.in.Now); paused {`, `p.in.Definitions.Paused(key, p.in.Now); paused && p.in.Now.Sub(at) > 20*time.Second {`},
	}},
	{name: "a resume waives what comes after it", edits: []edit{
		{"engine/plan/plan.go", `at.Before(waived) {`, `at.Before(waived.Add(20*time.Second)) && !waived.IsZero() {`},
		{"engine/plan/plan.go", `earlier(waived, p.in.Now.Add(tick))`, `earlier(waived.Add(20*time.Second), p.in.Now.Add(tick))`},
	}},
	{name: "an edit has a rate start anew", edits: []edit{
		{"engine/definitions.go", `out[t.Name] = base
`, `_ = base
`},
	}},
	{name: "an edit has a limited trigger count anew", edits: []edit{
		{"engine/plan/definitions.go", `s.rules = rulesOf(&c, t)`, `s.rules = rulesOf(&c, t)
			s.rules.counted += string(rune('a' + v.Number))`},
	}},
	{name: "a fixed delay is a second too short", edits: []edit{
		{"engine/plan/track.go", `at, ok = s.timeline.Next(remembered.LastEnd)
`, `at, ok = s.timeline.Next(remembered.LastEnd.Add(-time.Second))
`},
	}},
	{name: "a retry does not know when the first attempt started", edits: []edit{
		{"engine/attempts.go", `	if !r.FirstStartedAt.IsZero() {
		timeout`, `	if false {
		timeout`},
	}},
	{name: "a deadline ends an occurrence too soon", edits: []edit{
		{"engine/plan/settle.go", `due.After(ended.FirstStartedAt.Add(job.Deadline))`, `due.After(ended.FirstStartedAt.Add(job.Deadline / 3))`},
	}},
	{name: "a retry comes sooner than it is due", edits: []edit{
		{"engine/plan/retry.go", `delay = min(delay, MaxRetryDelay)
	if`, `delay = min(delay*3/4, MaxRetryDelay)
	if`},
	}},
	{name: "what waits for a person does not count as open", edits: []edit{
		{"engine/plan/slots.go", `case r.State.Claimed(), r.State == run.StateNeedsReview:`, `case r.State.Claimed():`},
	}},
	{name: "what waits for a retry does not count as open", edits: []edit{
		{"engine/plan/slots.go", `if inFlight == 0 && (r.Attempt > 1 || !begun) {`, `if inFlight == 0 {`},
	}},
	{name: "a leader whose clock is off goes on deciding", edits: []edit{
		{"engine/turn.go", `t.lease.Check() != nil || e.o.ClockCheck() != nil {`, `t.lease.Check() != nil {`},
	}},
	{name: "a leader whose clock is off defines jobs", edits: []edit{
		{"engine/definitions.go", `cmp.Or(t.lease.Check(), e.o.ClockCheck())`, `cmp.Or(t.lease.Check(), nil)`},
	}},
	{name: "a candidate waits for the lease twice", edits: []edit{
		{"test/sim/candidate.go", `at += record.Duration
`, `at += 2*record.Duration + 10*time.Second
`},
	}},
	{name: "a leader looks a second after the instant", edits: []edit{
		{"engine/turn.go", `instant.Add(-e.ahead())`, `instant.Add(time.Second)`},
	}},
	{name: "a callback leaves a second after its instant", edits: []edit{
		{"engine/attempts.go", `e.waitUntil(ctx, h.run.DueAt)`, `e.waitUntil(ctx, h.run.DueAt.Add(time.Second))`},
	}},
	{name: "a fixed delay counts from a run of before an edit", edits: []edit{
		{"engine/plan/settle.go", `r.Occurrence == ended.Occurrence || r.Key == ended.Key && r.ScheduledAt.After(ended.ScheduledAt)`, `r.Occurrence == ended.Occurrence`},
	}},
	{name: "a back-off does not grow", edits: []edit{
		{"engine/plan/retry.go", `for i := 1; i < n && delay < limit; i++ {`, `for i := 1; i < n-1 && delay < limit; i++ {`},
	}},
}
