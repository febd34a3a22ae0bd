package leases

import "time"

// Moment is one point in time on the two clocks of a process. The monotonic one cannot be set but
// may stand still while the machine is suspended; the wall clock goes on then but may be set.
type Moment struct {
	Mono time.Duration // since some point that is the same for all moments of a process
	Wall time.Time
}

// Add returns the moment d later.
func (m Moment) Add(d time.Duration) Moment { return Moment{m.Mono + d, m.Wall.Add(d)} }

// reached reports whether either clock shows limit or later.
func (m Moment) reached(limit Moment) bool {
	return m.Mono >= limit.Mono || !m.Wall.Before(limit.Wall)
}

// drift is the part of a time to live that an observer waits longer than that, because its clock
// may be faster than the holder's: kernels slew theirs by at most 500 ppm either way.
const drift = 1000

// patience is how long an observer sees an entry unchanged before it counts as expired.
func patience(ttl time.Duration) time.Duration { return ttl + ttl/drift }

// View is what one process knows of the leases beyond what is stored: since when it has seen each
// as it is, and until when those are valid that it was granted itself. It is told the time. It is
// not safe for concurrent use. The zero View knows nothing.
type View struct {
	sightings map[string]sighting
	tenures   map[string]tenure
}

// sighting is since when an entry has been seen as it is.
type sighting struct {
	mark  mark
	since time.Duration
}

// tenure is a lease that this process was granted.
type tenure struct {
	token int64
	until Moment
}

// Observe takes note of a table that was read, or written, before at. It reports whether anything in
// it is new.
func (v *View) Observe(t *Table, at time.Duration) (changed bool) {
	seen := make(map[string]sighting, len(t.Leases))
	for name, e := range t.Leases {
		s, ok := v.sightings[name]
		if m := e.mark(); !ok || s.mark != m {
			s, changed = sighting{m, at}, true
		}
		seen[name] = s
	}
	changed = changed || len(seen) != len(v.sightings)
	v.sightings = seen
	return changed
}

// granted takes note of a lease that the app is told to hold until then.
func (v *View) granted(name string, token int64, until Moment) {
	if v.tenures == nil {
		v.tenures = make(map[string]tenure)
	}
	if t, ok := v.tenures[name]; ok && (t.token > token || t.token == token && t.until.Mono > until.Mono) {
		return // answers may be noted out of order
	}
	if len(v.tenures) >= 2*MaxLeases {
		for other, t := range v.tenures {
			if until.Mono-t.until.Mono > MaxTTL {
				delete(v.tenures, other)
			}
		}
	}
	v.tenures[name] = tenure{token, until}
}

// gaveUp takes note that the app holds a lease no longer.
func (v *View) gaveUp(name string, token int64) {
	if v.tenures[name].token == token {
		delete(v.tenures, name)
	}
}

// Remaining is how long the app may go on to act on a lease that it was granted through this
// process, 0 when its time is over; ok reports whether it was.
func (v *View) Remaining(name string, token int64, now Moment) (left time.Duration, ok bool) {
	t, ok := v.tenures[name]
	if !ok || t.token != token {
		return 0, false
	}
	return max(0, min(t.until.Mono-now.Mono, t.until.Wall.Sub(now.Wall))), true
}

// held is how many leases are valid that this process was granted.
func (v *View) held(now Moment) (n int) {
	for _, t := range v.tenures {
		if !now.reached(t.until) {
			n++
		}
	}
	return n
}

// ended reports whether this process knows that the time of a lease that it was granted is over.
func (v *View) ended(name string, token int64, now Moment) bool {
	t, ok := v.tenures[name]
	return ok && t.token == token && now.reached(t.until)
}

// FreeIn is how long it takes until this process may take a lease over, should nobody renew it; 0
// if it may at once.
func (v *View) FreeIn(name string, e *Entry, now time.Duration) time.Duration {
	wait := patience(e.TTL())
	if s, ok := v.sightings[name]; ok && s.mark == e.mark() {
		wait = s.since + wait - now
	}
	// What it granted itself, nobody else can have extended. Here the monotonic clock decides alone,
	// because the app may count by it.
	if t, ok := v.tenures[name]; ok && t.token == e.Token && e.unreadable == "" {
		wait = min(wait, t.until.Mono-now)
	}
	return max(0, wait)
}

// expired reports whether this process may take a lease over.
func (v *View) expired(name string, e *Entry, now time.Duration) bool {
	return v.FreeIn(name, e, now) == 0
}
