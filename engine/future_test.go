package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// A time in the far future, that an older bug or a restored backup left, is cut to now at a takeover:
// whatever it stands for, no trigger waits until then (rule 18).
func TestTimesInTheFutureAreCutAtATakeover(t *testing.T) {
	future := time.Date(2036, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := map[string]func(l *state.Ledger, now time.Time){
		"watermark": func(l *state.Ledger, _ time.Time) { l.Watermark = future },
		"cursor": func(l *state.Ledger, now time.Time) {
			l.Watermark = now
			l.SetTrigger(run.Key{Job: "tick", Trigger: "default"}, state.Trigger{Cursor: future})
		},
		"a run that waits for its instant": func(l *state.Ledger, now time.Time) {
			l.Watermark = now
			l.Runs = append(l.Runs, run.Run{
				ID: "1", Occurrence: "o", Key: run.Key{Job: "tick", Trigger: "default"}, Version: 1, Cause: run.CauseSchedule, State: run.StateQueued,
				ScheduledAt: future, DueAt: future, Attempt: 1, DecidedAt: now,
			})
		},
	}
	for name, prior := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, events := ledger.NewSharedMemory(), &observed{}
				swap(t, store, ledger.NameLedger, func(l *state.Ledger) {
					l.Term = 3
					prior(l, time.Now().UTC())
				})
				n := start(t, store, "a", &app{}, func(o *engine.Options) { o.Observer = events })
				n.engine.Define([]config.Job{job("tick", "rate 1s"), job("other", "rate 1s")})
				_, leave := n.lead()
				time.Sleep(time.Minute)
				for _, job := range []string{"tick", "other"} {
					if got := callsOf(job, n.app); got < 58 {
						t.Errorf("%d calls of %s within a minute of one each second", got, job)
					}
				}
				if told := eventsOf[engine.TimesCut](events); len(told) != 1 {
					t.Errorf("told %v, want it once", told)
				}
				leave()
				n.close()
			})
		})
	}
}

// Definitions that a clock far ahead has written take effect now, not then.
func TestVersionsOfTheFutureTakeEffectNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, store := &stepped{}, ledger.NewSharedMemory()
		clock.step(365 * 24 * time.Hour)
		off, right := start(t, store, "a", &app{}, func(o *engine.Options) { o.Now = clock.now }), start(t, store, "b", &app{})
		jobs := []config.Job{job("tick", "rate 1s"), job("tock", "* * * * * *")}
		off.engine.Define(jobs)
		right.engine.Define(jobs)
		_, leave := off.lead()
		time.Sleep(time.Second)
		leave()
		_, leave = right.lead()
		time.Sleep(30 * time.Second)
		for _, job := range []string{"tick", "tock"} {
			if got := callsOf(job, right.app); got < 28 {
				t.Errorf("%d calls of %s within 30 s", got, job)
			}
		}
		leave()
		off.close()
		right.close()
	})
}

// A clock that was ahead and came back costs no restart: watermark and cursors are cut within the term,
// and what is decided again has the same occurrence IDs.
func TestAClockThatJumpsAheadAndComesBackWithinATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock, events := &stepped{}, &observed{}
		n := start(t, ledger.NewMemory(), "a", &app{}, func(o *engine.Options) { o.Now, o.Observer = clock.now, events })
		// The second one is blocked at times, and so has a cursor of its own; the third one's runs take long.
		slow := job("slow", "rate 1s")
		slow.Timeout = time.Minute
		n.app.workOf = func(a run.Attempt) time.Duration {
			if a.Run.Key.Job == "slow" {
				return 2500 * time.Millisecond
			}
			return 0
		}
		n.engine.Define([]config.Job{job("tick", "rate 1s"), slow, job("hourly", "cron 0 0 * * * ?")})
		_, leave := n.lead()
		time.Sleep(10 * time.Second)
		clock.step(24 * time.Hour)
		time.Sleep(30 * time.Second)
		clock.step(-24 * time.Hour)
		time.Sleep(30 * time.Second)
		tick, slowly := callsOf("tick", n.app), callsOf("slow", n.app)
		time.Sleep(30 * time.Second)
		if got := callsOf("tick", n.app) - tick; got < 29 {
			t.Errorf("%d calls of tick within 30 s after the clock came back", got)
		}
		if got := callsOf("slow", n.app) - slowly; got < 9 {
			t.Errorf("%d calls of slow within 30 s after the clock came back", got)
		}
		if len(eventsOf[engine.TimesCut](events)) == 0 {
			t.Error("nobody was told")
		}
		leave()
		n.close()
	})
}

// Two clocks that are off by no more than is allowed, one ahead and one behind, repeat nothing.
func TestClocksWithinTheSkewCutNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, a, events := ledger.NewSharedMemory(), &app{}, &observed{}
		fast, slow := &stepped{}, &stepped{}
		fast.step(55 * time.Second)
		slow.step(-55 * time.Second)
		first := start(t, store, "a", a, func(o *engine.Options) { o.Now = fast.now })
		second := start(t, store, "b", a, func(o *engine.Options) { o.Now, o.Observer = slow.now, events })
		jobs := []config.Job{job("tick", "rate 1s")}
		first.engine.Define(jobs)
		second.engine.Define(jobs)
		_, leave := first.lead()
		time.Sleep(time.Minute)
		leave()
		_, leave = second.lead()
		time.Sleep(3 * time.Minute)
		seen := make(map[string]bool)
		for _, c := range a.Calls() {
			if seen[c.Run.Occurrence] {
				t.Fatalf("the instant %s was run twice", c.Run.ScheduledAt)
			}
			seen[c.Run.Occurrence] = true
		}
		if told := eventsOf[engine.TimesCut](events); len(told) > 0 || len(a.Calls()) < 120 {
			t.Errorf("told %v, %d calls", told, len(a.Calls()))
		}
		leave()
		first.close()
		second.close()
	})
}
