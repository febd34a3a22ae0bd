package main

// bug is a mistake that somebody could make, and that the simulation has to find.
type bug struct {
	name  string
	edits []edit
}

// edit replaces the one place where a file says old.
type edit struct{ file, old, new string }

// bugs are the mistakes that earlier drafts of the design made, or that its rules are there to
// prevent.
var bugs = []bug{
	{"no term check", []edit{
		{"engine/turn.go", `if l.Term != t.number {`, `if false {`},
	}},
	{"callback before the swap", []edit{
		{
			"engine/turn.go", `	ledger, err := e.o.Ledger.Swap(ctx, change)
`, `	if t != nil {
		early := plan.Clone(v.ledger)
		if change(early) == nil {
			e.adopt(early)
			e.send(t, attempts)
		}
	}
	ledger, err := e.o.Ledger.Swap(ctx, change)
`,
		},
	}},
	{"a swap re-sends an old result after a conflict", []edit{
		{
			"engine/ledger/swap.go", `	value, err := s.decode(s.base)
	if err != nil {
		return write[T]{}, err
	}
	w := `, `	if s.last.body != nil && len(s.open) == 0 {
		old := s.last
		old.id = newWriteID()
		return old, nil
	}
	value, err := s.decode(s.base)
	if err != nil {
		return write[T]{}, err
	}
	w := `,
		},
	}},
	{"an unanswered swap is taken as failed", []edit{
		{"engine/ledger/swap.go", `		s.open, s.unanswered = append(s.open, w), true
		return false, nil`, `		return false, err`},
		{"engine/turn.go", `	e.release(out, reports)
`, `	for _, r := range out.plan.Claimed {
		planted.Store(e.o.Node+r.ID, true)
	}
	e.release(out, reports)
`},
		{"engine/held.go", `		if h == nil {
			h = &held{run: r, done: make(chan struct{})}
`, `		if _, known := planted.Load(e.o.Node + r.ID); h == nil && !known {
			continue
		}
		if h == nil {
			h = &held{run: r, done: make(chan struct{})}
`},
		{"engine/held.go", `// adopt takes up`, `var planted sync.Map

// adopt takes up`},
		{"engine/held.go", `	"slices"
`, `	"slices"
	"sync"
`},
	}},
	{"nothing is handed back", []edit{
		{"engine/held.go", `out.changed = plan.HandBack(l, r.id, e.o.Node) || out.changed`, `_ = plan.HandBack`},
		{"engine/held.go", `h.stage, unwanted = stageGivenUp, true`, `continue`},
	}},
	{"a takeover is retried without a valid Lease, and a holder does not release", []edit{
		{"engine/term.go", `cmp.Or(t.lease.Check(), e.o.ClockCheck())`, `cmp.Or(nil, e.o.ClockCheck())`},
		{"engine/turn.go", `		t.lease.Resign(reason)
`, ``},
	}},
	{"silence is counted over an API outage", []edit{
		{"engine/silence.go", `if now.Sub(s.last) <= timeout/2 {`, `if true {`},
	}},
	{"recovery with the old attempt number", []edit{
		{"engine/plan/settle.go", `Attempt: ended.Attempt + 1,`, `Attempt: ended.Attempt + map[run.Cause]int{run.CauseRetry: 1}[cause],`},
	}},
	{"a late result revives a Lost run", []edit{
		{"engine/plan/late.go", `	r.Message = Clip(note`, `	r.State = o.State
	r.Message = Clip(note`},
	}},
	{"retries are kept in memory", []edit{
		{"engine/plan/settle.go", `	if again.ID != "" {
		l.Runs = append(l.Runs, again)
		return
	}
`, `	if again.Cause == run.CauseRetry {
		planted = append(planted, again)
		return
	}
	if again.ID != "" {
		l.Runs = append(l.Runs, again)
		return
	}
`},
		{"engine/plan/settle.go", `// end moves a run`, `var planted []run.Run

// end moves a run`},
		{"engine/plan/plan.go", `	p := planner{in: in,`, `	l.Runs, planted = append(l.Runs, planted...), nil
	p := planner{in: in,`},
	}},
	{"an app is told that its result is recorded before it is", []edit{
		{"engine/tell.go", `	e.poke()
	select {
	case <-h.done:`, `	e.poke()
	if planted := h.run; true {
		planted.State = o.State
		return planted, true, nil
	}
	select {
	case <-h.done:`},
	}},
	{"a restarted sidecar does not know what its app has accepted", []edit{
		{"engine/open.go", `return r.Async && r.Node != e.o.Node`, `return false && r.Node != e.o.Node`},
	}},
	{"an app's word on a run that has ended counts again", []edit{
		{"engine/plan/async.go", `	case ended.State == o.State && !ended.Unknown:`, `	case true:`},
	}},
	// What the simulation has found in the real code.
	{"what a swap of the term that is stored late has decided raises no version", []edit{
		{"engine/turn.go", `	if t.catalog.Revision > l.CatalogRevision && len`, `	if false && len`},
	}},
	{"a change of others below an own write is not told", []edit{
		{"engine/ledger/watch.go", `others := o.untold > *covered`, `others := false`},
	}},
	{"a run names a version that its leader does not know", []edit{
		{"engine/plan/slots.go", `ok && v.Number < r.Version {`, `ok && false {`},
	}},
	{"the word of an app is judged by another version", []edit{
		{"engine/tell.go", `job.Async = job.Async || !kept`, `_ = kept`},
	}},
	{"an instant that was blocked ahead of time is forgotten", []edit{
		{"engine/plan/turns.go", `now.lags = due || c.ok && now.at.Before(p.l.Watermark)`, `now.lags = due`},
	}},
	{"the index forgets what caught up behind it", []edit{
		{"engine/plan/plan.go", `	for key := range in.Index.lags {
		keys = append(keys, key)
	}
`, ``},
	}},
	{"a fixed delay is decided twice after the clock was set back", []edit{
		{"engine/plan/track.go", `		at, ok = s.timeline.Next(s.from)
	}
`, `		return s.timeline.Next(s.from)
	}
`},
	}},
	{"a claim that is stored late is not looked for", []edit{
		{"engine/doubt.go", `if d.term == 0 || !e.draining`, `if d.term != -1 || !e.draining`},
	}},
	{"a run that was reported as running is not handed back", []edit{
		{"engine/plan/settle.go", `r.Node != node || !r.State.Claimed() {`, `r.Node != node || r.State != run.StatePending {`},
	}},
}
