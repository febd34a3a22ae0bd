package leases

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	noon  = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	here  = Self{Node: "shop-0_a", Place: "uid-0"}
	there = Self{Node: "shop-1_b", Place: "uid-1"}
)

// at is a moment that many seconds after noon.
func at(seconds float64) Moment {
	return Moment{}.Add(time.Duration(seconds * float64(time.Second))).on(noon)
}

// on lets the wall clock show d more than the monotonic one.
func (m Moment) on(wall time.Time) Moment { return Moment{m.Mono, wall.Add(m.Mono)} }

// past is a table in which "rebuild" was acquired at noon through that sidecar, for 30 s.
func past(by Self) *Table {
	t := new(Table)
	apply(t, []command{{op: opAcquire, name: "rebuild", holder: "worker", ttl: 30 * time.Second, request: "r"}}, by, new(View), at(0))
	return t
}

// Each row: what a sidecar knows, when it is asked, and what it answers.
func TestWhoMayTakeOver(t *testing.T) {
	seenAt := func(moment Moment) *View {
		v := new(View)
		v.Observe(past(there), moment.Mono)
		return v
	}
	granted := func(until Moment) *View {
		v := new(View)
		table := past(here)
		v.Observe(table, at(0.1).Mono)
		v.granted("rebuild", table.Leases["rebuild"].Token, until)
		return v
	}
	tests := map[string]struct {
		table  *Table
		view   *View
		self   Self
		now    Moment
		freeIn time.Duration // 0: it is granted
	}{
		"what was never seen before waits a whole time to live":    {past(there), new(View), here, at(3600), 30030 * time.Millisecond},
		"what was just seen waits as long":                         {past(there), seenAt(at(3600)), here, at(3600), 30030 * time.Millisecond},
		"half of it has passed":                                    {past(there), seenAt(at(10)), here, at(25), 15030 * time.Millisecond},
		"its time to live is not quite enough, as clocks differ":   {past(there), seenAt(at(10)), here, at(40), 30 * time.Millisecond},
		"all of it has passed":                                     {past(there), seenAt(at(10)), here, at(40.03), 0},
		"the wall clock is an hour ahead":                          {past(there), seenAt(at(10)), here, at(25).on(noon.Add(time.Hour)), 15030 * time.Millisecond},
		"the wall clock is an hour behind":                         {past(there), seenAt(at(10)), here, at(40.03).on(noon.Add(-time.Hour)), 0},
		"its own grant is over by its own clock":                   {past(here), granted(at(30)), here, at(30), 0},
		"its own grant is not over":                                {past(here), granted(at(30)), here, at(29), time.Second},
		"its own grant is over by the wall clock: the app may yet": {past(here), granted(at(30)), here, at(5).on(noon.Add(time.Hour)), 25 * time.Second},
		"its own grant was extended":                               {past(here), granted(at(60)), here, at(30), 130 * time.Millisecond},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := tt.table.Leases["rebuild"].Token
			outs, changed := apply(tt.table, []command{{op: opAcquire, name: "rebuild", holder: "next", ttl: time.Minute, request: "n"}}, tt.self, tt.view, tt.now)
			if tt.freeIn == 0 {
				if !changed || outs[0].err != nil || outs[0].entry.Token <= before || tt.table.Leases["rebuild"] != outs[0].entry {
					t.Errorf("not granted: %+v", outs[0])
				}
				return
			}
			held, ok := errors.AsType[*HeldError](outs[0].err)
			if !ok || changed || held.FreeIn != tt.freeIn || held.Holder != "worker" {
				t.Errorf("answer = %+v, %v; want it held for %s", outs[0], outs[0].err, tt.freeIn)
			}
		})
	}
}

func TestWhoMayRenew(t *testing.T) {
	restarted := Self{Node: "shop-0_z", Place: "uid-0"}
	token := past(here).Leases["rebuild"].Token
	granted := func(until Moment) *View {
		v := new(View)
		v.granted("rebuild", token, until)
		return v
	}
	tests := map[string]struct {
		self  Self
		token int64
		view  *View
		now   Moment
		want  LostError // zero: it is renewed
	}{
		"the holder": {here, token, granted(at(30)), at(10), LostError{}},
		"the holder's pod, its sidecar restarted":  {restarted, token, new(View), at(10), LostError{}},
		"a pod without UID, its sidecar restarted": {Self{Node: "shop-0_z"}, token, new(View), at(10), LostError{Elsewhere: true, Holder: "worker"}},
		"another pod":                        {there, token, new(View), at(10), LostError{Elsewhere: true, Holder: "worker"}},
		"the one process that has the table": {Self{Node: "x_1", Exclusive: true}, token, new(View), at(10), LostError{}},
		"another token":                      {here, token - 1, granted(at(30)), at(10), LostError{Holder: "worker"}},
		"at the last moment":                 {here, token, granted(at(30)), at(29.9), LostError{}},
		"when the time is over":              {here, token, granted(at(30)), at(30), LostError{Expired: true}},
		"when the wall clock was set forward, or a suspended machine woke": {here, token, granted(at(30)), at(5).on(noon.Add(time.Hour)), LostError{Expired: true}},
		"when the wall clock was set back":                                 {here, token, granted(at(30)), at(10).on(noon.Add(-time.Hour)), LostError{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			table := past(here)
			tt.view.Observe(table, at(0.1).Mono)
			outs, changed := apply(table, []command{{op: opRenew, name: "rebuild", token: tt.token}}, tt.self, tt.view, tt.now)
			if tt.want == (LostError{}) {
				if e := table.Leases["rebuild"]; !changed || !outs[0].granted || e.Renewals != 1 || e.Token != token || e.TTL() != 30*time.Second {
					t.Errorf("answer = %+v, entry %+v", outs[0], e)
				}
				return
			}
			lost, ok := errors.AsType[*LostError](outs[0].err)
			if !ok || changed || lost.Elsewhere != tt.want.Elsewhere || lost.Expired != tt.want.Expired ||
				(tt.want.Holder != "" && lost.Holder != tt.want.Holder) || lost.Token != tt.token {
				t.Errorf("answer = %+v (%v), want %+v", lost, outs[0].err, tt.want)
			}
		})
	}
}

// R084, of the app's leases: who has not renewed is judged by one clock.
func TestARenewalStartsTheObserversPatienceAnew(t *testing.T) {
	table, v := past(there), new(View)
	token := table.Leases["rebuild"].Token
	for i := range 20 { // every 25 s for eight minutes, by a clock that is an hour off
		v.Observe(table, at(float64(25*i)).Mono)
		e := table.Leases["rebuild"]
		if free := v.FreeIn("rebuild", &e, at(float64(25*i+24)).Mono); free <= 0 {
			t.Fatalf("free after %d renewals", i)
		}
		apply(table, []command{{op: opRenew, name: "rebuild", token: token}}, there, new(View), at(float64(25*i)).on(noon.Add(-time.Hour)))
	}
}

func TestTokens(t *testing.T) {
	ms := noon.UnixMilli()
	tests := map[string]struct {
		table Table
		now   time.Time
		want  int64 // 0: refused
	}{
		"an empty table begins at the time":                        {Table{}, noon, ms},
		"the time has gone on":                                     {Table{LastToken: ms}, noon.Add(time.Second), ms + 1000},
		"two in one millisecond":                                   {Table{LastToken: ms}, noon, ms + 1},
		"a clock far behind":                                       {Table{LastToken: ms}, time.UnixMilli(0), ms + 1},
		"a clock before 1970":                                      {Table{}, time.UnixMilli(-5), 1},
		"a clock far ahead":                                        {Table{LastToken: ms}, time.UnixMilli(MaxToken + 5), MaxToken},
		"a table restored from a copy":                             {Table{LastToken: ms - 86400000}, noon, ms},
		"an entry greater than the last, as after an edit":         {Table{LastToken: 5, Leases: map[string]Entry{"a": {Token: ms + 7}}}, noon, ms + 8},
		"the greatest number there is leaves none, and none wraps": {Table{LastToken: MaxToken}, noon, 0},
		"nor does an invented one":                                 {Table{LastToken: 1<<63 - 1}, noon, 0},
		"nor a negative one":                                       {Table{LastToken: -5}, noon, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := command{op: opAcquire, name: "new", holder: "w", ttl: time.Minute, request: "r"}
			outs, changed := apply(&tt.table, []command{c}, here, new(View), Moment{Wall: tt.now})
			if tt.want == 0 {
				if !errors.Is(outs[0].err, ErrTokensUsedUp) || changed {
					t.Errorf("answer = %+v, want %v", outs[0], ErrTokensUsedUp)
				}
				return
			}
			if outs[0].entry.Token != tt.want || tt.table.LastToken != tt.want {
				t.Errorf("token = %d, last %d, want %d", outs[0].entry.Token, tt.table.LastToken, tt.want)
			}
		})
	}
}

// An entry that was damaged by hand spoils its own name, for a day, and is kept as it is.
func TestUnreadableEntries(t *testing.T) {
	const stored = `{"lastToken":7,"leases":{"bad":{"token":"seven","holder":"w"},"good":{"token":7,"holder":"w","node":"shop-1_b","place":"uid-1","ttlSeconds":30,"acquiredAt":"2026-11-30T12:00:00Z"},"odd":{"token":6,"holder":"w","node":"n","ttlSeconds":-9,"acquiredAt":"2026-11-30T12:00:00Z"}}}`
	var table Table
	if err := json.Unmarshal([]byte(stored), &table); err != nil {
		t.Fatal(err)
	}
	back, err := json.Marshal(&table)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(stored, string(back)); diff != "" {
		t.Errorf("read and written (-stored +written):\n%s", diff)
	}
	v := new(View)
	v.Observe(&table, 0)
	acquire := func(name string, now Moment) error {
		outs, _ := apply(table.clone(), []command{{op: opAcquire, name: name, holder: "me", ttl: time.Minute, request: "r"}}, here, v, now)
		return outs[0].err
	}
	for name, freeIn := range map[string]time.Duration{"bad": MaxTTL, "good": 30 * time.Second, "odd": MinTTL} {
		early, late := Moment{Mono: freeIn - time.Millisecond, Wall: noon}, Moment{Mono: patience(freeIn), Wall: noon}
		if _, held := errors.AsType[*HeldError](acquire(name, early)); !held {
			t.Errorf("%s can be taken %s after it was seen", name, early.Mono)
		}
		if err := acquire(name, late); err != nil {
			t.Errorf("%s cannot be taken after %s: %v", name, late.Mono, err)
		}
	}
	// Nobody renews or releases what cannot be read, with whatever token.
	for _, c := range []command{{op: opRenew, name: "bad", token: 7}, {op: opRelease, name: "bad"}} {
		if _, changed := apply(&table, []command{c}, here, v, at(0)); changed {
			t.Errorf("%+v changed it", c)
		}
	}
}

// What the errors say is all that a person gets.
func TestErrorsSayWhoAndWhatToDo(t *testing.T) {
	tests := map[string]struct {
		err  error
		says []string
	}{
		"held":       {&HeldError{Name: "r", Holder: "w", Node: "shop-1_b", Token: 7, FreeIn: 1500 * time.Millisecond}, []string{`"r"`, "held by w", "shop-1_b", "token 7", "free in 2s"}},
		"taken over": {&LostError{Name: "r", Token: 5, Holder: "w", Node: "n", HolderToken: 7}, []string{"w holds it", "token 7", "stop the work"}},
		"expired":    {&LostError{Name: "r", Token: 5, Expired: true}, []string{"token 5", "expired", "stop the work"}},
		"gone":       {&LostError{Name: "r", Token: 5}, []string{"nobody holds it", "stop the work"}},
		"elsewhere":  {&LostError{Name: "r", Token: 5, Elsewhere: true, Holder: "w", Node: "n"}, []string{"acquired by w through n", "in that pod only"}},
		"unknown":    {&StoreError{Unknown: true, Err: fmt.Errorf("x")}, []string{"may have been made"}},
		"not made":   {&StoreError{Err: fmt.Errorf("x")}, []string{"nothing was changed"}},
	}
	for name, tt := range tests {
		for _, words := range tt.says {
			if !strings.Contains(tt.err.Error(), words) {
				t.Errorf("%s: %q does not say %q", name, tt.err, words)
			}
		}
	}
}
