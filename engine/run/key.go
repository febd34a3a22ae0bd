package run

import (
	"fmt"
	"regexp"
	"strings"
)

// NamePattern is the grammar of the names of jobs, triggers, calendars and named leases.
const NamePattern = `^[a-z0-9][a-z0-9._-]{0,127}$`

var namePattern = regexp.MustCompile(NamePattern)

// ValidName reports whether s may name a job, a trigger, a calendar or a named lease.
func ValidName(s string) bool { return namePattern.MatchString(s) }

// Key names a trigger of a job. The trigger is empty for a run that was asked for by hand.
type Key struct {
	Job     string
	Trigger string
}

// String returns "job/trigger", or the job alone where there is no trigger.
func (k Key) String() string {
	if k.Trigger == "" {
		return k.Job
	}
	return k.Job + "/" + k.Trigger
}

// Compare orders keys by job, then by trigger.
func (k Key) Compare(other Key) int {
	if c := strings.Compare(k.Job, other.Job); c != 0 {
		return c
	}
	return strings.Compare(k.Trigger, other.Trigger)
}

// MarshalText writes the key as "job/trigger".
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what [Key.MarshalText] writes.
func (k *Key) UnmarshalText(text []byte) error {
	job, trigger, _ := strings.Cut(string(text), "/")
	if !ValidName(job) || (trigger != "" && !ValidName(trigger)) {
		return fmt.Errorf("key %q is not job/trigger", text)
	}
	*k = Key{Job: job, Trigger: trigger}
	return nil
}
