package state

import (
	"encoding/json"
	"slices"
	"time"
)

// MaxVersions is how many versions of a job the catalog keeps.
const MaxVersions = 10

// KeepRemoved is how long a job that left the document is remembered under its name.
const KeepRemoved = 30 * 24 * time.Hour

// Catalog holds the definitions by which the cluster decides, version by version.
type Catalog struct {
	// Revision grows with each change; the ledger names the one in force.
	Revision int64 `json:"revision"`
	// Term mirrors the ledger's, so that a ledger that was lost does not start again from 1.
	Term int64           `json:"term,omitempty"`
	Jobs map[string]*Job `json:"jobs,omitempty"`
}

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
	Source      Source    `json:"source"`
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

// Add appends a version and drops the oldest beyond [MaxVersions].
func (j *Job) Add(v Version) {
	j.Versions = append(j.Versions, v)
	if n := len(j.Versions) - MaxVersions; n > 0 {
		j.Versions = slices.Delete(j.Versions, 0, n)
	}
}
