package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
)

func TestPauseAndResume(t *testing.T) {
	skip := func(j *config.Job) { j.Triggers[0].Misfire.Policy = config.MisfireSkip }
	tests := map[string]struct {
		job   config.Job
		key   run.Key
		until time.Duration // of the pause; 0: until resumed
		skip  bool          // of the resume
		want  int           // runs that start at once on resume
	}{
		"the misfire policy decides on resume":         {job: job("a", "rate 1m"), key: run.Key{Job: "a"}, want: 1}, // R002
		"under skip nothing that is old runs":          {job: job("a", "rate 10m", skip), key: run.Key{Job: "a"}},   // R024, R157
		"misfire=skip waives the instants":             {job: job("a", "rate 1m"), key: run.Key{Job: "a"}, skip: true},
		"a trigger alone":                              {job: job("a", "rate 1m"), key: run.Key{Job: "a", Trigger: "default"}, want: 1},
		"the whole app":                                {job: job("a", "rate 1m"), want: 1},
		"a pause with an end ends without being asked": {job: job("a", "rate 1m"), key: run.Key{Job: "a"}, until: time.Hour, want: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := ledger.NewSharedMemory()
				leader, other := start(t, store, "a", &app{}), start(t, store, "b", &app{})
				leader.engine.Define([]config.Job{tt.job})
				_, leave := leader.lead()
				time.Sleep(10 * time.Second)
				var until time.Time
				if tt.until > 0 {
					until = time.Now().Add(tt.until)
				}
				if _, err := other.engine.Pause(t.Context(), tt.key, "maintenance", until); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour - time.Minute)
				if n := len(leader.app.Calls()); n != 0 {
					t.Fatalf("%d calls while paused", n)
				}
				if s := leader.engine.Status(); len(s.Jobs) != 1 || !s.Jobs[0].Paused {
					t.Errorf("status %+v does not say that the job is paused", s.Jobs)
				}
				if _, err := other.engine.Enqueue(t.Context(), "a", nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(30 * time.Second)
				if n := len(leader.app.Calls()); n != 1 {
					t.Fatalf("%d calls, want the manual run: it works while paused", n)
				}
				if tt.until == 0 {
					if _, err := other.engine.Resume(t.Context(), tt.key, tt.skip); err != nil {
						t.Fatal(err)
					}
				} else {
					time.Sleep(45 * time.Second)
				}
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				if n := len(leader.app.Calls()) - 1; n != tt.want {
					t.Errorf("%d runs at once on resume, want %d", n, tt.want)
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := len(leader.app.Calls()) - 1 - tt.want; n < 1 {
					t.Error("nothing ran after the resume")
				}
				leave()
				leader.close()
				other.close()
			})
		})
	}
}

func TestResumingWhatIsNotPausedDropsNothing(t *testing.T) {
	// A job catches up an hour; somebody resumes it with misfire=skip although it is not paused (any more).
	catchUp := func(j *config.Job) {
		j.Triggers[0].Misfire = config.Misfire{Policy: config.MisfireCatchUp, Grace: time.Second, Limit: 1, Window: 24 * time.Hour}
	}
	for name, pause := range map[string]time.Duration{"never paused": 0, "its pause has ended by itself": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := start(t, ledger.NewMemory(), "a", &app{})
				n.engine.Define([]config.Job{job("a", "rate 1m", catchUp), job("tick", "rate 1m")})
				_, leave := n.lead()
				time.Sleep(time.Second)
				if pause > 0 {
					if _, err := n.engine.Pause(t.Context(), run.Key{Job: "a"}, "", time.Now().Add(pause)); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(2 * time.Minute)
				leave() // nobody leads for an hour
				time.Sleep(time.Hour)
				_, leave = n.lead()
				time.Sleep(5 * time.Second)
				if _, err := n.engine.Resume(t.Context(), run.Key{Job: "a"}, true); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if got := callsOf("a", n.app); got < 60 {
					t.Errorf("%d runs, want the backlog of an hour caught up", got)
				}
				leave()
				n.close()
			})
		})
	}
}

func TestAPauseSurvivesLeadersAndEdits(t *testing.T) { // R158, R159
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		a, b := start(t, store, "a", &app{}), start(t, store, "b", &app{})
		jobs := []config.Job{job("paused", "rate 10s"), job("other", "rate 10s")}
		a.engine.Define(jobs)
		b.engine.Define(append(jobs, job("new", "rate 10s")))
		_, leave := a.lead()
		time.Sleep(time.Second)
		if _, err := a.engine.Pause(t.Context(), run.Key{Job: "paused"}, "", time.Time{}); err != nil {
			t.Fatal(err)
		}
		leave()
		_, leave = b.lead()
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, c := range b.app.Calls() {
			if c.Run.Key.Job == "paused" {
				t.Fatal("a change of leader and of another job has un-paused it")
			}
		}
		leave()
		if _, err := b.engine.Resume(t.Context(), run.Key{Job: "paused"}, false); !errors.Is(err, engine.ErrNoLeader) {
			t.Errorf("Resume without a leader = %v, want %v", err, engine.ErrNoLeader)
		}
		if _, err := b.engine.Pause(t.Context(), run.Key{Job: "unknown"}, "", time.Time{}); !errors.Is(err, engine.ErrJobNotFound) {
			t.Errorf("Pause(unknown) = %v, want %v", err, engine.ErrJobNotFound)
		}
		a.close()
		b.close()
	})
}

// What pauses a job or a trigger can be read back, and a pause that has ended by itself counts no more.
func TestWhatPausesIsTold(t *testing.T) { // R159
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		leader, other := start(t, store, "a", &app{}), start(t, store, "b", &app{})
		two := job("two", "rate 1m", func(j *config.Job) {
			second := j.Triggers[0]
			second.Name = "second"
			j.Triggers = append(j.Triggers, second)
		})
		set := []config.Job{two, job("defined", "rate 1m", func(j *config.Job) { j.Paused = true })}
		leader.engine.Define(set)
		other.engine.Define(set)
		_, leave := leader.lead()
		time.Sleep(5 * time.Second)

		pause := func(key run.Key, until time.Time) {
			t.Helper()
			if _, err := other.engine.Pause(t.Context(), key, "because", until); err != nil {
				t.Fatal(err)
			}
		}
		// What each node says of the job two: paused or not, by what, and how many of its triggers.
		tells := func(want string) {
			t.Helper()
			time.Sleep(1500 * time.Millisecond) // who follows looks once a second
			for _, n := range []*node{leader, other} {
				jobs, err := n.engine.Jobs(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				j := jobs[1]
				got := fmt.Sprintf("%v %d", j.Paused, j.PausedTriggers())
				for _, h := range j.PausedBy {
					got += fmt.Sprintf(" %s/%s", h.By, h.Trigger)
					if h.Reason != "because" || h.Since.IsZero() {
						t.Errorf("%+v has no reason or no time", h)
					}
				}
				if got != want {
					t.Errorf("a node tells %q, want %q", got, want)
				}
			}
		}
		tells("false 0")
		pause(run.Key{Job: "two", Trigger: "default"}, time.Time{})
		tells("false 1 trigger/default")
		pause(run.Key{Job: "two", Trigger: "second"}, time.Now().Add(time.Minute))
		tells("true 2 trigger/default trigger/second")
		time.Sleep(time.Minute)
		tells("false 1 trigger/default")
		pause(run.Key{}, time.Time{})
		tells("true 2 everything/ trigger/default")
		for _, n := range []*node{leader, other} {
			if h, err := n.engine.Everything(t.Context()); err != nil || h == nil || h.Reason != "because" {
				t.Errorf("Everything() = %+v, %v, want the pause", h, err)
			}
		}

		still := func(key run.Key, want ...string) {
			t.Helper()
			holds, err := other.engine.Resume(t.Context(), key, false)
			var got []string
			for _, h := range holds {
				got = append(got, fmt.Sprintf("%s/%s", h.By, h.Trigger))
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("Resume(%q) = %v, %v, want %v", key, got, err, want)
			}
		}
		still(run.Key{Job: "two"}, "everything/", "trigger/default")
		still(run.Key{Job: "two", Trigger: "second"}, "everything/")
		still(run.Key{})
		still(run.Key{Job: "two"}, "trigger/default")
		still(run.Key{Job: "two", Trigger: "default"})
		still(run.Key{Job: "defined"}, "definition/")
		tells("false 0")
		if h, err := other.engine.Everything(t.Context()); err != nil || h != nil {
			t.Errorf("Everything() = %+v, %v, want nothing", h, err)
		}
		leave()
		leader.close()
		other.close()
	})
}

// Before the first leader: what is defined cannot be paused yet, what is not is not found. After it,
// with nobody leading, the answer comes when it has been waited for 10 s.
func TestPausingWhileNobodyLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{})
		n.engine.Define([]config.Job{job("ok", "rate 1m")})
		code := func(err error) run.Code {
			coded, _ := errors.AsType[*run.Error](err)
			if coded == nil {
				return ""
			}
			return coded.Code
		}
		for _, key := range []run.Key{{Job: "ok"}, {Job: "ok", Trigger: "default"}} {
			if _, err := n.engine.Pause(t.Context(), key, "", time.Time{}); code(err) != run.CodeNoScheduler {
				t.Errorf("Pause(%q) = %v, want %s", key, err, run.CodeNoScheduler)
			}
			if _, err := n.engine.Resume(t.Context(), key, false); code(err) != run.CodeNoScheduler {
				t.Errorf("Resume(%q) = %v, want %s", key, err, run.CodeNoScheduler)
			}
		}
		if _, err := n.engine.Pause(t.Context(), run.Key{Job: "unknown"}, "", time.Time{}); !errors.Is(err, engine.ErrJobNotFound) {
			t.Errorf("Pause(unknown) = %v, want %v", err, engine.ErrJobNotFound)
		}
		_, leave := n.lead()
		time.Sleep(5 * time.Second)
		leave()
		began := time.Now()
		if _, err := n.engine.Pause(t.Context(), run.Key{Job: "ok"}, "", time.Time{}); !errors.Is(err, engine.ErrNoLeader) || time.Since(began).Round(time.Second) != 10*time.Second {
			t.Errorf("Pause() = %v after %s, want %v after 10 s", err, time.Since(began), engine.ErrNoLeader)
		}
		n.close()
	})
}
