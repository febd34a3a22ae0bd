package plan

import (
	"cmp"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// MaxOpenRuns bounds the runs that are open at once, so that a moment in which thousands of
// triggers are due cannot outgrow what the ledger may hold. What finds no room stays due, and is
// decided as soon as there is some.
const MaxOpenRuns = 1_000

// MaxWaitingData bounds the data that the runs of all jobs carry in the ledger together, in bytes.
const MaxWaitingData = 512 << 10

// DefaultMaxBytes is how large a ledger may be where nothing else is said.
const DefaultMaxBytes = 900 << 10

// What may fill the ledger up to where, so that each kind leaves room for those that matter more: what
// people ask for stops at three quarters, of runs and of bytes, what triggers ask for at seven eighths of
// the bytes. The rest is for claims, beats, reports and takeovers, by which a full ledger empties.
const (
	askedShare   = 0.75
	decidedShare = 0.875
)

// room is what a ledger holds and what part each job has in it.
//
// A job may open one more run as long as what it has open itself is less than what is still free for all.
// So one job alone gets at most half of the ledger, two get a third each, and so on: some is always left
// for a job that has nothing open, and only those that fill their share wait. (It is what switches with a
// shared buffer call a dynamic threshold.) A further attempt takes the place of the one before it and
// does not ask.
type room struct {
	all  load
	jobs map[string]load
}

// load is an amount of open runs, with what they weigh. Of all together the bytes are the whole ledger's.
type load struct{ runs, bytes, data int }

func (l *load) add(r *run.Run) {
	l.runs++
	l.bytes += weight(r)
	l.data += len(r.Data)
}

func roomOf(l *state.Ledger) *room {
	m := &room{jobs: make(map[string]load)}
	for i := range l.Runs {
		m.add(&l.Runs[i])
	}
	for i := range l.Finished {
		m.all.bytes += weight(&l.Finished[i])
	}
	for key := range l.Triggers {
		m.all.bytes += triggerWeight + len(key.Job) + len(key.Trigger)
	}
	for i := range l.Skipped {
		m.all.bytes += skipWeight + len(l.Skipped[i].Key.Job) + len(l.Skipped[i].Key.Trigger)
	}
	for _, raw := range l.Unreadable {
		m.all.bytes += len(raw)
	}
	return m
}

func (m *room) add(r *run.Run) {
	m.all.add(r)
	own := m.jobs[r.Key.Job]
	own.add(r)
	m.jobs[r.Key.Job] = own
}

// want is what becomes of the wish to open a run.
type want int

const (
	wantGranted   want = iota
	wantOverShare      // the job fills its share
	wantFull           // there is no room for anybody
)

// decide answers a trigger of a job, in a ledger of at most that many bytes.
func (m *room) decide(job string, maxBytes int) want {
	bytes := part(maxBytes, decidedShare)
	own := m.jobs[job]
	switch {
	case m.all.runs >= MaxOpenRuns, m.all.bytes >= bytes:
		return wantFull
	case own.runs >= MaxOpenRuns-m.all.runs, own.bytes >= bytes-m.all.bytes:
		return wantOverShare
	}
	return wantGranted
}

func part(maxBytes int, share float64) int {
	return int(float64(cmp.Or(maxBytes, DefaultMaxBytes)) * share)
}

// Admit says whether a ledger of at most maxBytes (0: [DefaultMaxBytes]) takes a run that somebody asks
// for: nil, or a [run.CodeLedgerFull] that says what to wait for.
func Admit(l *state.Ledger, r run.Run, maxBytes int) error {
	const runs = int(MaxOpenRuns * askedShare)
	m := roomOf(l)
	own, bytes := m.jobs[r.Key.Job], part(maxBytes, askedShare)
	free := load{MaxOpenRuns - m.all.runs, bytes - m.all.bytes - weight(&r), MaxWaitingData - m.all.data}
	switch {
	case m.all.runs >= runs:
		return run.Errorf(run.CodeLedgerFull, "%d runs are open, more are not taken by hand (%d): try again when some have ended", m.all.runs, runs)
	case own.runs >= free.runs:
		return run.Errorf(run.CodeLedgerFull, "%d runs of job %q are open, its share of the ledger: try again when some have ended", own.runs, r.Key.Job)
	case len(r.Data) > free.data:
		return run.Errorf(run.CodeLedgerFull, "the data of all runs that wait would be %d bytes, more than the ledger takes (%d): try again when some have run", m.all.data+len(r.Data), MaxWaitingData)
	case len(r.Data) > 0 && own.data >= free.data:
		return run.Errorf(run.CodeLedgerFull, "runs of job %q carry %d bytes of data, its share of the ledger: try again when some have run", r.Key.Job, own.data)
	case free.bytes < 0:
		return run.Errorf(run.CodeLedgerFull, "the ledger holds about %d KiB and takes no more by hand (%d KiB): try again when some runs have ended", m.all.bytes>>10, bytes>>10)
	}
	return nil
}

// About what a record takes in the ledger, in bytes, beside texts of any length.
const (
	runWeight     = 400 // IDs, times and the names of the members
	claimWeight   = 40  // the names of the members that a claim adds
	skipWeight    = 290
	triggerWeight = 110
)

// weight is about what a run takes in the ledger. That it is a little too much rather than too little
// keeps a ledger that is full by it below its bound.
func weight(r *run.Run) int {
	n := runWeight + len(r.Key.Job) + len(r.Key.Trigger) + len(r.Data) + len(r.AppCode) + len(r.OriginalOf) + len(r.Request)
	if r.Node != "" {
		n += claimWeight + len(r.Node) + len(r.Place)
	}
	if r.Message != "" {
		n += 40 + len(r.Message)*9/8 // some of it has to be escaped
	}
	if r.Code != "" {
		n += 60
	}
	if p := r.Progress; p != nil {
		n += 80 + len(p.Text)
	}
	return n
}
