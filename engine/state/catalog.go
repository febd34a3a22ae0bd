package state

import (
	"encoding/json"
	"time"

	"github.com/leasecron/leasecron/engine/run"
)

// MaxVersions is how many versions of a job the catalog keeps, beside older ones that a run or an
// undecided instant still needs.
const MaxVersions = 10

// MostVersions bounds those too: what versions older than the newest so many have not decided is passed
// over, with a record.
const MostVersions = 100

// KeepRemoved is how long a job that left the document is remembered under its name.
const KeepRemoved = 30 * 24 * time.Hour

// Catalog holds the definitions by which the cluster decides, version by version.
type Catalog struct {
	// Revision grows with each change; the ledger names the one in force.
	Revision int64 `json:"revision"`
	// Term mirrors the ledger's, so that a ledger that was lost does not start again from 1.
	Term int64           `json:"term,omitempty"`
	Jobs map[string]*Job `json:"jobs,omitempty"`
	// Pauses are those that were asked for, beside what the definitions say; Skips says up to when
	// a resume has waived the instants of a pause. Both by what they concern: see [PauseKey].
	Pauses map[string]Pause     `json:"pauses,omitempty"`
	Skips  map[string]time.Time `json:"skips,omitempty"`
	// OddJobs and OddPauses are the names of those whose records cannot be read. What stores the catalog
	// leaves members that it does not know where they are.
	OddJobs   []string `json:"-"`
	OddPauses []string `json:"-"`
}

// PauseAll is the key of a pause of the whole app.
const PauseAll = "*"

// PauseKey names what a pause concerns: the whole app, a job, or one trigger of it.
func PauseKey(key run.Key) string {
	if key.Job == "" {
		return PauseAll
	}
	return key.String()
}

// Pause keeps triggers from firing until it is taken back or its end comes.
type Pause struct {
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
	Until  time.Time `json:"until,omitzero"` // zero: until somebody resumes
}

// Active reports whether the pause holds at a time.
func (p Pause) Active(at time.Time) bool { return p.Until.IsZero() || at.Before(p.Until) }

// Job is the catalog's record of one job.
type Job struct {
	FirstSeen time.Time `json:"firstSeen"`
	Versions  []Version `json:"versions"` // oldest first; the newest decides from its EffectiveAt on
}

// Source says where a version came from.
type Source string

// The sources of a version.
const (
	SourceConfig     Source = "config"
	SourceOverridden Source = "overridden"
	SourceRuntime    Source = "runtime"
)

// Version is one immutable definition of a job.
type Version struct {
	Number int `json:"number"`
	// Revision is the catalog revision that introduced the version.
	Revision int64 `json:"revision"`
	// EffectiveAt is the first moment whose instants this version decides.
	EffectiveAt time.Time `json:"effectiveAt"`
	// Until ends what it decides where the version after it is not kept; zero: the next one does.
	Until  time.Time `json:"until,omitzero"`
	Source Source    `json:"source"`
	// Fingerprint is the SHA-256 of the definition, in hex.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Definition is a config.Job; empty where the job left the document.
	Definition json.RawMessage `json:"definition,omitempty"`
	// Bases are what rate and every triggers without a start count from, by trigger name.
	Bases map[string]time.Time `json:"bases,omitempty"`
	// ZoneData is the version of the time zone rules that the job was loaded with.
	ZoneData string `json:"zoneData,omitempty"`
}

// Removed reports whether the version says that the job has left.
func (v Version) Removed() bool { return len(v.Definition) == 0 }

// Newest returns the version that decides from its EffectiveAt on.
func (j *Job) Newest() Version {
	if len(j.Versions) == 0 {
		return Version{}
	}
	return j.Versions[len(j.Versions)-1]
}

// Add appends a version. Which of the older ones are dropped depends on what they have decided.
func (j *Job) Add(v Version) { j.Versions = append(j.Versions, v) }
