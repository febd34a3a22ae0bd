package engine_test

// Reports on replicas that each ran the job, and on what a roll-out or a sleep does to it.

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// callsOf counts what all apps were asked to do for a job.
func callsOf(job string, apps ...*app) int {
	n := 0
	for _, a := range apps {
		for _, c := range a.Calls() {
			if c.Run.Key.Job == job {
				n++
			}
		}
	}
	return n
}

// R085, R119, R122: replicas that start out of phase, and more of them while it runs, fire each
// instant once, without a word about it in the job.
func TestR119ReplicasOutOfPhase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		var nodes []*node
		var apps []*app
		add := func() {
			a := &app{}
			n := start(t, store, fmt.Sprintf("pod-%d", len(nodes)), a)
			n.engine.Define([]config.Job{job("tick", "rate 20s")})
			nodes, apps = append(nodes, n), append(apps, a)
		}
		add()
		_, leave := nodes[0].lead()
		for range 2 {
			time.Sleep(7 * time.Second)
			add()
		}
		time.Sleep(5*time.Minute - 14*time.Second + time.Millisecond)
		add()
		add()
		leave()
		_, leave = nodes[3].lead()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := len(occurrences(t, apps...)); got != 30 {
			t.Errorf("%d runs in ten minutes of rate 20s with 3, then 5 replicas, want 30", got)
		}
		leave()
		for _, n := range nodes {
			n.close()
		}
	})
}

// R117: a run may last as many lease durations and leaders as it likes.
func TestR117ARunLongerThanTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		apps := []*app{{work: 10 * time.Minute}, {}, {}}
		var nodes []*node
		for i, a := range apps {
			n := start(t, store, fmt.Sprintf("pod-%d", i), a, func(o *engine.Options) { o.LeaseDuration = 15 * time.Second })
			n.engine.Define([]config.Job{job("long", "rate 1h", func(j *config.Job) { j.Timeout, j.Recovery = time.Hour, config.RecoveryRerun })})
			nodes = append(nodes, n)
		}
		_, leave := nodes[0].lead()
		time.Sleep(time.Hour + time.Second)
		for i := range 30 {
			leave()
			_, leave = nodes[1+i%2].lead()
			time.Sleep(20 * time.Second)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(occurrences(t, apps...)); got != 1 {
			t.Errorf("%d attempts of a run that outlived 30 leaders, want 1", got)
		}
		leave()
		for _, n := range nodes {
			n.close()
		}
	})
}

// R120: whatever form of zone the stored times have, an instant runs at most once.
func TestR120StoredTimesInAnyZone(t *testing.T) {
	for name, zone := range map[string]*time.Location{
		"UTC": time.UTC, "ahead": time.FixedZone("", 8*3600), "behind": time.FixedZone("", -9*3600-1800),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := ledger.NewSharedMemory()
				first := start(t, store, "a", &app{})
				jobs := []config.Job{job("cron", "* * * * *"), job("rate", "rate 1m"), job("every", "every 1m")}
				first.engine.Define(jobs)
				_, leave := first.lead()
				time.Sleep(10*time.Minute + time.Second)
				leave()
				first.close()
				_, err := ledger.NewPort[state.Ledger](store, ledger.NameLedger).Swap(t.Context(), func(l *state.Ledger) error {
					l.Watermark = l.Watermark.In(zone)
					for key, tr := range l.Triggers {
						tr.Cursor, tr.LastEnd = tr.Cursor.In(zone), tr.LastEnd.In(zone)
						l.Triggers[key] = tr
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				second := start(t, store, "b", &app{})
				second.engine.Define(jobs)
				_, leave = second.lead()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				occurrences(t, first.app, second.app)
				for _, j := range jobs {
					if got := callsOf(j.Name, second.app); got < 9 || got > 10 {
						t.Errorf("%s ran %d times in the ten minutes after, want one a minute", j.Name, got)
					}
				}
				leave()
				second.close()
			})
		})
	}
}

// R030: two weeks off leave one run of a job that is due every five seconds, by whatever kind of
// schedule. What it costs to plan is BenchmarkAfterThirtyDays.
func TestR030TwoWeeksOff(t *testing.T) {
	for _, text := range []string{"rate 5s", "*/5 * * * * *", "every 5s"} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := ledger.NewSharedMemory()
				jobs := []config.Job{job("tick", text)}
				leadFor(t, store, &app{}, jobs, time.Minute+2*time.Second) // nothing is committed ahead
				time.Sleep(14 * 24 * time.Hour)
				second := start(t, store, "b", &app{})
				second.engine.Define(jobs)
				began := time.Now()
				_, leave := second.lead()
				time.Sleep(4 * time.Second)
				synctest.Wait()
				late := 0
				for _, c := range second.app.Calls() {
					if c.Run.ScheduledAt.Before(began.Add(-time.Minute)) {
						late++
					}
				}
				if late != 1 || len(second.app.Calls()) > 2 {
					t.Errorf("%d runs for the two weeks, %d calls in all, want one", late, len(second.app.Calls()))
				}
				leave()
				second.close()
			})
		})
	}
}

// R031, R165: there is no run at start. DESIGN: loading a document never starts a run by itself, so
// neither a roll-out nor an edit does.
func TestR031ARolloutStartsNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		a := &app{}
		for version := range 5 {
			path := fmt.Sprintf("/daily/%d", version)
			for pod := range 3 {
				n := start(t, store, fmt.Sprintf("v%d-%d", version, pod), a)
				n.engine.Define([]config.Job{job("daily", "rate 24h", func(j *config.Job) { j.Path = path })})
				_, leave := n.lead()
				time.Sleep(5 * time.Minute)
				leave()
				n.close()
			}
		}
		synctest.Wait()
		if got := len(a.Calls()); got != 0 {
			t.Errorf("%d runs of a daily job within 75 minutes of deploys, want none", got)
		}
	})
}

// R007: a machine that slept for three hours goes on by the misfire policy once its lease is
// confirmed; the clock that ran on is the wall clock.
func TestR007AMachineThatSlept(t *testing.T) {
	for policy, want := range map[config.MisfirePolicy]int{
		config.MisfireRunOnce: 1,  // all of it in one
		config.MisfireSkip:    1,  // the instant within grace
		config.MisfireCatchUp: 11, // DESIGN: nothing is dropped, at most limit a second
	} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := &stepped{}
				n := start(t, ledger.NewMemory(), "a", &app{}, func(o *engine.Options) { o.Now = clock.now })
				n.engine.Define([]config.Job{job("minutely", "* * * * *", func(j *config.Job) {
					j.Overlap = config.OverlapParallel
					j.Triggers[0].Misfire = config.Misfire{Policy: policy, Grace: time.Minute, Limit: 10, Window: 24 * time.Hour}
				})})
				l, leave := n.lead()
				time.Sleep(2*time.Minute + 30*time.Second)
				before := len(n.app.Calls())
				l.mu.Lock()
				l.err = engine.ErrTermOver // what the elector says when it wakes
				l.mu.Unlock()
				clock.step(3 * time.Hour)
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if got := len(n.app.Calls()); got != before {
					t.Errorf("%d runs were started without a valid lease", got-before)
				}
				leave()
				_, leave = n.lead()
				time.Sleep(1100 * time.Millisecond)
				synctest.Wait()
				got := len(n.app.Calls()) - before
				if got < want-1 || got > want+10 || (policy != config.MisfireCatchUp && got != want) {
					t.Errorf("%d runs in the second after waking, want %d", got, want)
				}
				occurrences(t, n.app)
				leave()
				n.close()
			})
		})
	}
}

// R027, R200: what is shown as the next instant lies in the future, also while a run takes longer
// than the period.
func TestR027NextLiesInTheFuture(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{work: 25 * time.Minute})
		n.engine.Define([]config.Job{job("slow", "*/10 * * * *", func(j *config.Job) { j.Timeout = time.Hour })})
		_, leave := n.lead()
		time.Sleep(time.Second)
		for range 2 * 60 {
			time.Sleep(time.Minute)
			synctest.Wait()
			if s := n.engine.Status(); len(s.Jobs) != 1 || !s.Jobs[0].Next.After(time.Now()) {
				t.Fatalf("at %s the status is %+v, want a next instant in the future", time.Now(), s.Jobs)
			}
		}
		leave()
		time.Sleep(30 * time.Minute)
		n.close()
	})
}

// R028: a job that has never succeeded is caught up like any other.
func TestR028AFailureIsABaseToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		fails := &app{answer: func(run.Attempt) run.Outcome {
			return run.Outcome{State: run.StateFailed, Code: run.CodeFailed, Status: 500}
		}}
		jobs := []config.Job{job("hourly", "rate 1h")}
		leadFor(t, store, fails, jobs, time.Hour+time.Minute)
		time.Sleep(time.Hour + 10*time.Minute)
		second := start(t, store, "b", &app{})
		second.engine.Define(jobs)
		_, leave := second.lead()
		time.Sleep(time.Second)
		synctest.Wait()
		if got := len(second.app.Calls()); got != 1 {
			t.Errorf("%d runs after the miss, want the one that was missed", got)
		}
		leave()
		second.close()
	})
}

// leadFor has a node lead for a while, that is then gone.
func leadFor(t *testing.T, store ledger.Store, a *app, jobs []config.Job, d time.Duration) {
	t.Helper()
	n := start(t, store, "before", a)
	n.engine.Define(jobs)
	_, leave := n.lead()
	time.Sleep(d)
	leave()
	n.close()
}
