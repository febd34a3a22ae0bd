package leases

import (
	"fmt"
	"regexp"
	"time"
)

// The bounds of what a request may ask for.
const (
	// MaxLeases is how many leases of one app may be held at once.
	MaxLeases = 100
	// MinTTL and MaxTTL bound a time to live, which is in whole seconds.
	MinTTL = time.Second
	MaxTTL = 24 * time.Hour
	// MaxWait bounds how long an acquisition waits for a lease that somebody holds.
	MaxWait = 30 * time.Second
	// MaxToken is the largest number that every reader of JSON takes exactly.
	MaxToken = 1<<53 - 1
)

// The grammar of what a request names.
const (
	// NamePattern is that of the names of leases, the same as of jobs.
	NamePattern = `^[a-z0-9][a-z0-9._-]{0,127}$`
	// HolderPattern is that of the names of holders.
	HolderPattern = `^[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}$`
	// KeyPattern is that of the keys by which a repeated request is known.
	KeyPattern = `^[!-~]{1,255}$`
)

var (
	namePattern   = regexp.MustCompile(NamePattern)
	holderPattern = regexp.MustCompile(HolderPattern)
	keyPattern    = regexp.MustCompile(KeyPattern)
)

// InvalidError says what is wrong with a request.
type InvalidError struct {
	Field   string // as in the API: name, holder, ttlSeconds, waitSeconds, token, key
	Problem string
}

// Error names the field and the fix.
func (e *InvalidError) Error() string { return e.Field + ": " + e.Problem }

func checkName(name string) error {
	if !namePattern.MatchString(name) {
		return &InvalidError{"name", "must match " + NamePattern}
	}
	return nil
}

func checkToken(name string, token int64) error {
	if token < 1 || token > MaxToken {
		return &InvalidError{"token", "must be the number that the acquisition was answered with"}
	}
	return checkName(name)
}

func (r *AcquireRequest) check() error {
	switch {
	case !holderPattern.MatchString(r.Holder):
		return &InvalidError{"holder", "must match " + HolderPattern}
	case r.TTL < MinTTL || r.TTL > MaxTTL || r.TTL%time.Second != 0:
		return &InvalidError{"ttlSeconds", fmt.Sprintf("must be a whole number from %d to %d", int(MinTTL.Seconds()), int(MaxTTL.Seconds()))}
	case r.Wait < 0 || r.Wait > MaxWait:
		return &InvalidError{"waitSeconds", fmt.Sprintf("must be a number from 0 to %d", int(MaxWait.Seconds()))}
	case r.Key != "" && !keyPattern.MatchString(r.Key):
		return &InvalidError{"key", "must be 1 to 255 printable characters of ASCII, without spaces"}
	}
	return checkName(r.Name)
}
