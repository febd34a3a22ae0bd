package leases

import (
	"bytes"
	"encoding/json"
	"maps"
	"time"
)

// Table is the stored document: every lease of an app that was acquired and not released. The zero
// Table has none.
type Table struct {
	// LastToken is the greatest token that was ever given.
	LastToken int64 `json:"lastToken,omitempty"`
	// Leases by name, at most [MaxLeases].
	Leases map[string]Entry `json:"leases,omitempty"`
}

// Entry is one lease. Its times are those of the clocks of others: for people to read, never to
// decide by.
type Entry struct {
	Token      int64  `json:"token"`
	Holder     string `json:"holder"`          // what the app calls itself
	Node       string `json:"node"`            // the sidecar's process that acquired it
	Place      string `json:"place,omitempty"` // UID of its pod
	TTLSeconds int    `json:"ttlSeconds"`      // never changes
	// Renewals makes every renewal a change that others can see.
	Renewals   int64     `json:"renewals,omitempty"`
	Request    string    `json:"request,omitempty"` // by which a repeated acquisition is known
	AcquiredAt time.Time `json:"acquiredAt"`
	RenewedAt  time.Time `json:"renewedAt,omitzero"`

	// unreadable is the entry as it is stored where this program cannot read it. It counts as held,
	// and expires after MaxTTL, so that it spoils one name and not for ever.
	unreadable string
}

// UnmarshalJSON keeps an entry that it cannot read as it is: that must not hide the others.
func (e *Entry) UnmarshalJSON(data []byte) error {
	type plain Entry
	var p plain
	if err := json.Unmarshal(data, &p); err != nil || p.Token < 1 || p.Token > MaxToken {
		*e = Entry{unreadable: string(data)}
		return nil //nolint:nilerr // it is kept, as what it is
	}
	*e = Entry(p)
	return nil
}

// MarshalJSON gives back what UnmarshalJSON could not read.
func (e Entry) MarshalJSON() ([]byte, error) {
	if e.unreadable != "" {
		return []byte(e.unreadable), nil
	}
	type plain Entry
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(plain(e))
	return bytes.TrimSpace(out.Bytes()), err
}

// TTL is the entry's time to live, within the bounds even where somebody edited it by hand.
func (e *Entry) TTL() time.Duration {
	if e.unreadable != "" || e.TTLSeconds > int(MaxTTL/time.Second) {
		return MaxTTL
	}
	return max(MinTTL, time.Duration(e.TTLSeconds)*time.Second)
}

// holder is the entry's holder as it is shown.
func (e *Entry) holder() string {
	if e.unreadable != "" {
		return "(unreadable)"
	}
	return e.Holder
}

// mark tells one state of an entry from every other.
type mark struct {
	token, renewals int64
	unreadable      string
}

func (e *Entry) mark() mark { return mark{e.Token, e.Renewals, e.unreadable} }

// clone returns a table that shares nothing with t.
func (t *Table) clone() *Table {
	return &Table{LastToken: t.LastToken, Leases: maps.Clone(t.Leases)}
}

// nextToken returns a token greater than every one before, and than the Unix time in
// milliseconds: of a table that was lost or restored from a copy, what it does not remember is
// older than now. It reports false when somebody has written a number that leaves none.
func (t *Table) nextToken(wall time.Time) (int64, bool) {
	last := t.LastToken
	for _, e := range t.Leases {
		last = max(last, e.Token)
	}
	if last < 0 || last >= MaxToken {
		return 0, false
	}
	return max(last+1, min(wall.UnixMilli(), MaxToken)), true
}
