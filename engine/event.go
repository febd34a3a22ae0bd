package engine

import (
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/plan"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// Event is something that happened in the engine. Observers switch on its type.
type Event interface{ isEvent() }

// Observer is told every event, in order, by the goroutine in which it happened: it must not
// block and must not call back into the engine. It is called concurrently.
type Observer interface{ Observe(Event) }

// The events.
type (
	// TermBegan says that this sidecar took over and plans from now on.
	TermBegan struct{ Term int64 }
	// TermEnded says that this sidecar stopped planning. Err is nil after a hand-over that was asked for.
	TermEnded struct {
		Term int64
		Err  error
	}
	// LedgerGone says that the ledger was empty although a leader has written it before: planning
	// starts at now, what was in flight is unknown.
	LedgerGone struct{ Term int64 }
	// TimesCut says that the ledger had decided into the far future and was cut to now: where its watermark
	// lay (zero: not there), the triggers whose cursors did, and how many runs were taken back.
	TimesCut struct {
		Watermark time.Time
		Triggers  []run.Key
		Runs      int
	}
	// FormatNewer says that a newer program has written a document (ledger, catalog or history): this one
	// writes nothing any more and does not campaign until it can read the document again.
	FormatNewer struct {
		Document string
		Err      error
	}
	// CatalogRefused says that the newest job definitions are not in force, because the catalog could not be
	// written or read: those before stay so. It comes once for a row of failures.
	CatalogRefused struct{ Err error }
	// HistoryRefused says that what ended cannot be written to the history, and waits in the ledger. It
	// comes once for a row of failures.
	HistoryRefused struct{ Err error }
	// RecordsDropped says how many records of what ended were dropped, the oldest: the history did not
	// take them and the ledger needed their room.
	RecordsDropped struct{ Count int }
	// Unreadable says that a document (ledger, catalog or history) has records that this program cannot make
	// sense of, and where. They are kept as they are.
	Unreadable struct {
		Document string
		Records  []string
	}
	// JobInvalid says that a job that is in force cannot be computed any more and stands still.
	JobInvalid struct {
		Job string
		Err error
	}
	// JobsChanged says that another set of jobs is in force: what the cluster decides by.
	JobsChanged struct{ Jobs []config.Job }
	// RunStarted says that the request of an attempt was begun. Lateness counts from DueAt.
	RunStarted struct {
		Run      run.Run
		Lateness time.Duration
	}
	// RunEnded says that an attempt's outcome is in the ledger; Final, that no further attempt follows.
	RunEnded struct {
		Run   run.Run
		Final bool
	}
	// RetryPlanned says that a further attempt was enqueued, due at Run.DueAt, because After failed
	// or was lost.
	RetryPlanned struct{ Run, After run.Run }
	// ManualPlanned says that a run that was asked for by hand was accepted.
	ManualPlanned struct{ Run run.Run }
	// Missed says that instants got no run of their own.
	Missed struct {
		Key          run.Key
		Reason       run.Reason
		Count        int
		ScheduledAt  time.Time
		CoveredUntil time.Time
	}
	// Committed says that one swap of the ledger ended, after Took; Bytes is the size of what was written.
	Committed struct {
		Took  time.Duration
		Bytes int
		Err   error
	}
)

func (TermBegan) isEvent()      {}
func (TermEnded) isEvent()      {}
func (LedgerGone) isEvent()     {}
func (TimesCut) isEvent()       {}
func (FormatNewer) isEvent()    {}
func (CatalogRefused) isEvent() {}
func (HistoryRefused) isEvent() {}
func (RecordsDropped) isEvent() {}
func (Unreadable) isEvent()     {}
func (JobInvalid) isEvent()     {}
func (JobsChanged) isEvent()    {}
func (RunStarted) isEvent()     {}
func (RunEnded) isEvent()       {}
func (RetryPlanned) isEvent()   {}
func (ManualPlanned) isEvent()  {}
func (Missed) isEvent()         {}
func (Committed) isEvent()      {}

// JobStatus is what is known of one job at one moment. Only the leader knows Next and DueSince.
type JobStatus struct {
	Job config.Job
	// Paused says that a pause keeps all of it from firing: one of the whole job, or one of each trigger
	// that may still be due. PausedBy lists what pauses the job or some of its triggers.
	Paused   bool
	PausedBy []plan.Hold
	Next     time.Time // the next instant, always in the future; zero: none
	DueSince time.Time // the oldest undecided instant that lies in the past; zero: none
	InFlight int       // runs of the job that have not ended
	// Overdue is as DueSince, of those triggers that may fire: the instants of a pause wait on purpose.
	Overdue time.Time
	state.Latest
	// SuccessDue is the second instant of a trigger after the job's last success, or after the trigger
	// was first seen, changed or let go on, if that is later; zero: none. A job that has no success
	// by then, and does not run, has something wrong with it.
	SuccessDue  time.Time
	NeedsReview int // runs that wait for a person to say how they ended
	FirstSeen   time.Time
	Error       string // why the job cannot run; empty: it can
	// Triggers has those that can be planned, in the order of the document.
	Triggers []TriggerStatus
}

// TriggerStatus is what is known of one trigger at one moment.
type TriggerStatus struct {
	Name     string
	Next     time.Time // as of the job
	DueSince time.Time // as of the job
}

// Status is what an engine knows at one moment.
type Status struct {
	Node        string
	Leading     bool
	Term        int64
	Jobs        []JobStatus // of the cluster, filled by the leader only; ordered by name
	Everything  *plan.Hold  // the pause of all of them, filled by the leader only; nil: there is none
	InFlight    int         // runs of this node
	Held        int         // runs of this node whose end is not in the ledger yet: InFlight and those around it
	Abandoned   int         // runs of this node that were recorded as lost when a drain's grace was over
	LastTurn    time.Time   // when the loop last made progress
	LedgerBytes int
	// Unreadable counts the records that cannot be read, by document, as this node last saw it.
	Unreadable map[string]int
	// LedgerError is why the ledger could not be read or written the last time; empty: it could.
	LedgerError string
	// CatalogError is why the newest job definitions are not in force, HistoryError why what ended is not
	// written to the history; empty: nothing is wrong, or this node does not lead.
	CatalogError, HistoryError string
}
