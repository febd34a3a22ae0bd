package events

import (
	"strconv"
	"time"
)

// place is the object that an Event is about.
type place int

const (
	onLease place = iota // who leads, and the ledger behind it
	onPod                // what this replica runs
	onJobs               // the ConfigMap with the definitions
)

// The types of an Event.
const (
	normal  = "Normal"
	warning = "Warning"
)

// reason is what an Event is for. The first ones are written first.
type reason int

const (
	ledgerGone reason = iota
	watermarkCut
	newerFormat
	recordsUnreadable
	leaseRefused
	leadershipLost
	steppedDown
	jobsRefused
	catalogRefused
	historyRefused
	recordsDropped
	jobInvalid
	runLost
	runNeedsReview
	instantsMissed
	runFailed
	leaderElected
	leadershipHandedOver
	reasons // how many there are
)

// kinds says of each reason how it is told. The names are what people and alerts search for: they
// never change.
var kinds = [reasons]struct {
	name  string
	kind  string
	place place
	many  string // what several of them are
}{
	ledgerGone:           {"LedgerGone", warning, onLease, "takeovers"},
	watermarkCut:         {"LedgerTimeCorrected", warning, onLease, "corrections"},
	newerFormat:          {"NewerFormat", warning, onLease, "findings"},
	recordsUnreadable:    {"RecordsUnreadable", warning, onLease, "findings"},
	leaseRefused:         {"LeaseRefused", warning, onLease, "refusals"},
	leadershipLost:       {"LeadershipLost", warning, onLease, "losses"},
	steppedDown:          {"SteppedDown", warning, onLease, "terms"},
	jobsRefused:          {"JobsRefused", warning, onJobs, "versions"},
	catalogRefused:       {"DefinitionsNotStored", warning, onJobs, "refusals"},
	historyRefused:       {"HistoryNotWritten", warning, onLease, "refusals"},
	recordsDropped:       {"RecordsDropped", warning, onLease, "records"},
	jobInvalid:           {"JobInvalid", warning, onJobs, "jobs"},
	runLost:              {"RunLost", warning, onPod, "runs"},
	runNeedsReview:       {"RunNeedsReview", warning, onPod, "runs"},
	instantsMissed:       {"InstantsMissed", warning, onPod, "instants"},
	runFailed:            {"RunFailed", warning, onPod, "runs"},
	leaderElected:        {"LeaderElected", normal, onLease, "terms"},
	leadershipHandedOver: {"LeadershipHandedOver", normal, onLease, "hand-overs"},
}

// note is one thing worth an Event.
type note struct {
	reason  reason
	subject string // what is counted apart from others of that reason: a job; empty where it is all one
	message string
	count   int
}

// key tells Events apart. crowd is for the subjects for which there is no room.
type key struct {
	reason  reason
	subject string
	crowd   bool
}

// entry is one Event as it is to be, and as far as it was written.
type entry struct {
	key     key
	name    string // of the object; empty: not chosen yet
	message string
	first   time.Time
	last    time.Time
	count   int  // of all that happened
	told    int  // of what is written
	created bool // the object exists, as far as known

	next  time.Time     // when it may be written again
	pause time.Duration // until the time after that
}

func (e *entry) pending() bool { return e.count != e.told }

// text is the message; the crowd's says that it stands for others.
func (e *entry) text() string {
	if !e.key.crowd {
		return e.message
	}
	return strconv.Itoa(e.count) + " " + kinds[e.key.reason].many + " of further jobs, the last one: " + e.message
}
