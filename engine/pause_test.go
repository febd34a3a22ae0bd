package engine_test

import (
	"errors"
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
				if s := leader.engine.Status(); len(s.Jobs) != 1 || (tt.key.Trigger == "" && !s.Jobs[0].Paused) {
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
					if err := other.engine.Resume(t.Context(), tt.key, tt.skip); err != nil {
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
				if err := n.engine.Resume(t.Context(), run.Key{Job: "a"}, true); err != nil {
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
		if err := b.engine.Resume(t.Context(), run.Key{Job: "paused"}, false); !errors.Is(err, engine.ErrNoLeader) {
			t.Errorf("Resume without a leader = %v, want %v", err, engine.ErrNoLeader)
		}
		if _, err := b.engine.Pause(t.Context(), run.Key{Job: "unknown"}, "", time.Time{}); !errors.Is(err, engine.ErrJobNotFound) {
			t.Errorf("Pause(unknown) = %v, want %v", err, engine.ErrJobNotFound)
		}
		a.close()
		b.close()
	})
}
