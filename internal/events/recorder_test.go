package events_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/internal/events"
)

// fakeWriter keeps Events as an API server does, and what it costs.
type fakeWriter struct {
	mu       sync.Mutex
	events   map[string]*corev1.Event
	order    []string
	requests int
	err      error // answers everything while it is set
	lose     bool  // store, and answer with err
	hang     bool
}

func (f *fakeWriter) CreateEvent(ctx context.Context, e *corev1.Event) error {
	return f.do(ctx, e.Name, func() error {
		if f.events[e.Name] != nil {
			return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, e.Name)
		}
		f.events[e.Name] = e.DeepCopy()
		f.order = append(f.order, e.Name)
		return nil
	})
}

func (f *fakeWriter) PatchEvent(ctx context.Context, _, name string, patch []byte) error {
	return f.do(ctx, name, func() error {
		if f.events[name] == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "events"}, name)
		}
		return json.Unmarshal(patch, f.events[name])
	})
}

func (f *fakeWriter) do(ctx context.Context, _ string, apply func() error) error {
	f.mu.Lock()
	f.requests++
	hang, err, lose := f.hang, f.err, f.lose
	if !hang && (err == nil || lose) {
		if applied := apply(); err == nil {
			err = applied
		}
	}
	f.mu.Unlock()
	if hang {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return err
}

func (f *fakeWriter) set(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeWriter) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.requests
}

// list says of each Event, in the order of creation: object, reason, count.
func (f *fakeWriter) list() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, name := range f.order {
		if e := f.events[name]; e != nil {
			out = append(out, fmt.Sprintf("%s %s/%s %s x%d", e.Type, e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Count))
		}
	}
	return out
}

func (f *fakeWriter) messages() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for _, name := range f.order {
		if e := f.events[name]; e != nil {
			b.WriteString(e.Message + "\n")
		}
	}
	return b.String()
}

type bench struct {
	*events.Recorder
	writer *fakeWriter
	log    *strings.Builder
	stop   func()
}

// bubble runs a recorder in fake time.
func bubble(t *testing.T, play func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{writer: &fakeWriter{events: make(map[string]*corev1.Event)}, log: &strings.Builder{}}
		var err error
		b.Recorder, err = events.New(events.Options{
			Writer: b.writer, Namespace: "shop", Node: "shop-0_abc", Host: "shop-0",
			Lease: events.Object{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Name: "shop-leasecron"},
			Pod:   events.Object{APIVersion: "v1", Kind: "Pod", Name: "shop-0", UID: "u1"},
			Jobs:  events.Object{APIVersion: "v1", Kind: "ConfigMap", Name: "shop-jobs"}, LeaseUID: func() string { return "u2" },
			Logger: slog.New(slog.NewTextHandler(b.log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.Run(ctx) }()
		b.stop = sync.OnceFunc(func() {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("Run() = %v", err)
			}
		})
		play(b)
		b.stop()
	})
}

func (b *bench) fail(job string) {
	b.Observe(engine.RunEnded{Final: true, Run: run.Run{
		ID: "r1", Key: run.Key{Job: job, Trigger: "default"}, State: run.StateFailed, Attempt: 1, Code: run.CodeFailed, Status: 500,
		Message: "disk full", ScheduledAt: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC),
	}})
}

func (b *bench) wrote(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, b.writer.list()); diff != "" {
		t.Errorf("Events (-want +got):\n%s\n%s", diff, b.writer.messages())
	}
}

// Which object, which reason, and what it says. R017, R053, R198
func TestWhatIsTold(t *testing.T) {
	key := run.Key{Job: "report", Trigger: "daily"}
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		tell func(b *bench)
		want string   // empty: nothing
		says []string // in the message
	}{
		"a term won": {func(b *bench) { b.Observe(engine.TermBegan{Term: 12}) }, "Normal Lease/shop-leasecron LeaderElected x1", []string{"shop-0_abc", "term 12"}},
		"a hand-over": {
			func(b *bench) { b.ObserveElection(election.TermEnded{Err: errors.New("this sidecar is drained")}) },
			"Normal Lease/shop-leasecron LeadershipHandedOver x1",
			[]string{"drained"},
		},
		"a lost term": {
			func(b *bench) { b.ObserveElection(election.TermEnded{Err: election.ErrExpired, Lost: true}) },
			"Warning Lease/shop-leasecron LeadershipLost x1",
			[]string{"not renewed in time"},
		},
		"stepping down": {
			func(b *bench) {
				b.ObserveElection(election.TermEnded{Err: fmt.Errorf("%w: %w", election.ErrResigned, engine.ErrLedgerFailing)})
			},
			"Warning Lease/shop-leasecron SteppedDown x1",
			[]string{"could not be written for a lease duration"},
		},
		"a foreign Lease": {
			func(b *bench) { b.ObserveElection(election.Obstructed{Err: election.ErrForeign}) },
			"Warning Lease/shop-leasecron LeaseRefused x1",
			[]string{"another workload"},
		},
		"a Lease that became foreign": {
			func(b *bench) { b.ObserveElection(election.TermEnded{Err: election.ErrForeign}) },
			"Warning Lease/shop-leasecron LeaseRefused x1",
			[]string{"another workload"},
		},
		"a ledger that is gone": {func(b *bench) { b.Observe(engine.LedgerGone{Term: 3}) }, "Warning Lease/shop-leasecron LedgerGone x1", []string{"empty ledger"}},
		"a watermark in the future": {
			func(b *bench) {
				b.Observe(engine.TimesCut{Watermark: at, Triggers: []run.Key{{Job: "a", Trigger: "b"}, {Job: "c", Trigger: "d"}}})
			},
			"Warning Lease/shop-leasecron LedgerTimeCorrected x1",
			[]string{"2026-11-30T12:00:00Z", "a/b and 1 other"},
		},
		"a newer format": {
			func(b *bench) {
				b.Observe(engine.FormatNewer{Document: "ledger", Err: errors.New("it is 2, this program reads up to 1")})
			},
			"Warning Lease/shop-leasecron NewerFormat x1",
			[]string{"writes nothing", "it is 2"},
		},
		"definitions that the catalog does not take": {
			func(b *bench) { b.Observe(engine.CatalogRefused{Err: errors.New("no room")}) },
			"Warning ConfigMap/shop-jobs DefinitionsNotStored x1",
			[]string{"those before stay", "no room"},
		},
		"a history that takes nothing": {
			func(b *bench) { b.Observe(engine.HistoryRefused{Err: errors.New("forbidden")}) },
			"Warning Lease/shop-leasecron HistoryNotWritten x1",
			[]string{"jobs go on", "forbidden"},
		},
		"records without a history": {
			func(b *bench) { b.Observe(engine.RecordsDropped{Count: 44}) },
			"Warning Lease/shop-leasecron RecordsDropped x44",
			[]string{"dropped"},
		},
		"records that cannot be read": {
			func(b *bench) {
				b.Observe(engine.Unreadable{Document: "ledger", Records: []string{"trigger a/b", "run of job c"}})
			},
			"Warning Lease/shop-leasecron RecordsUnreadable x1",
			[]string{"2 records of the ledger", "trigger a/b, run of job c"},
		},
		"refused definitions": {
			func(b *bench) {
				b.JobsRefused("ConfigMap shop/shop-jobs key jobs.yaml", errors.New("line 3: unknown key"))
			},
			"Warning ConfigMap/shop-jobs JobsRefused x1",
			[]string{"ConfigMap shop/shop-jobs", "line 3"},
		},
		"a job that does not compile any more": {
			func(b *bench) { b.Observe(engine.JobInvalid{Job: "report", Err: errors.New("no such zone")}) },
			"Warning ConfigMap/shop-jobs JobInvalid x1",
			[]string{"report", "no such zone"},
		},
		"a failed run": {func(b *bench) { b.fail("report") }, "Warning Pod/shop-0 RunFailed x1", []string{"report/default", "500", "disk full", "SCHEDULING_UNEXPECTED_001"}},
		"a lost run": {
			func(b *bench) {
				b.Observe(engine.RunEnded{Run: run.Run{Key: key, State: run.StateLost, Node: "shop-1_x"}})
			},
			"Warning Pod/shop-0 RunLost x1",
			[]string{"report/daily", "shop-1_x"},
		},
		"a run that needs review": {
			func(b *bench) { b.Observe(engine.RunEnded{Run: run.Run{Key: key, State: run.StateNeedsReview}}) },
			"Warning Pod/shop-0 RunNeedsReview x1",
			[]string{"report/daily"},
		},
		"missed instants": {
			func(b *bench) {
				b.Observe(engine.Missed{Key: key, Reason: run.ReasonMisfire, Count: 5, ScheduledAt: at, CoveredUntil: at.Add(time.Hour)})
			},
			"Warning Pod/shop-0 InstantsMissed x5",
			[]string{"5 instants of report/daily", "misfire", "from 2026-11-30T12:00:00Z until 2026-11-30T13:00:00Z"},
		},
		"a failure that is retried": {func(b *bench) { b.Observe(engine.RunEnded{Run: run.Run{Key: key, State: run.StateFailed}}) }, "", nil},
		"a good run": {func(b *bench) {
			b.Observe(engine.RunEnded{Final: true, Run: run.Run{Key: key, State: run.StateSucceeded}})
		}, "", nil},
		"a skip that was asked for":  {func(b *bench) { b.Observe(engine.Missed{Key: key, Reason: run.ReasonOverlap, Count: 1}) }, "", nil},
		"the instant of a lost run":  {func(b *bench) { b.Observe(engine.Missed{Key: key, Reason: run.ReasonLost, Count: 1}) }, "", nil},
		"the course of normal work":  {func(b *bench) { b.Observe(engine.Committed{}); b.Observe(engine.JobsChanged{}) }, "", nil},
		"renewals that fail for now": {func(b *bench) { b.ObserveElection(election.Renewed{Err: errors.New("no answer")}) }, "", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				tt.tell(b)
				if tt.want == "" {
					b.wrote(t)
					if n := b.writer.count(); n != 0 {
						t.Errorf("%d requests, want none", n)
					}
					return
				}
				b.wrote(t, tt.want)
				for _, part := range tt.says {
					if !strings.Contains(b.writer.messages(), part) {
						t.Errorf("no %q in %s", part, b.writer.messages())
					}
				}
			})
		})
	}
}

func TestAJobThatFailsEverySecondForAnHourCostsFewRequests(t *testing.T) {
	bubble(t, func(b *bench) {
		for range 3600 {
			b.fail("tick")
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Minute)
		b.wrote(t, "Warning Pod/shop-0 RunFailed x3600")
		if n := b.writer.count(); n > 15 {
			t.Errorf("%d requests, want at most 15", n)
		}
		before := b.writer.count()
		time.Sleep(24 * time.Hour)
		if n := b.writer.count() - before; n != 0 {
			t.Errorf("%d requests in a day in which nothing happened", n)
		}
	})
}

// R193: a hundred jobs that fail make few Events, which count them all; what matters more is not
// crowded out.
func TestAHundredFailingJobsMakeFewEvents(t *testing.T) {
	bubble(t, func(b *bench) {
		for i := range 100 {
			b.fail(fmt.Sprintf("job-%d", i))
			time.Sleep(600 * time.Millisecond)
		}
		b.Observe(engine.RunEnded{Run: run.Run{Key: run.Key{Job: "x"}, State: run.StateLost}})
		time.Sleep(time.Minute)
		b.wrote(t,
			"Warning Pod/shop-0 RunFailed x1", "Warning Pod/shop-0 RunFailed x1", "Warning Pod/shop-0 RunFailed x1", "Warning Pod/shop-0 RunFailed x1",
			"Warning Pod/shop-0 RunFailed x96", "Warning Pod/shop-0 RunLost x1")
		if want := "96 runs of further jobs, the last one: run r1 of job-99/default"; !strings.Contains(b.writer.messages(), want) {
			t.Errorf("no %q in\n%s", want, b.writer.messages())
		}
		if n := b.writer.count(); n > 15 {
			t.Errorf("%d requests, want at most 15", n)
		}
	})
}

func TestWhatMattersMostIsWrittenFirst(t *testing.T) {
	bubble(t, func(b *bench) {
		b.writer.set(errors.New("connection refused"))
		b.fail("tick")
		b.Observe(engine.TermBegan{Term: 1})
		b.Observe(engine.RunEnded{Run: run.Run{State: run.StateLost}})
		b.ObserveElection(election.TermEnded{Err: election.ErrExpired, Lost: true})
		time.Sleep(time.Minute)
		b.writer.set(nil)
		time.Sleep(2 * time.Minute)
		b.wrote(t, "Warning Lease/shop-leasecron LeadershipLost x1", "Warning Pod/shop-0 RunLost x1",
			"Warning Pod/shop-0 RunFailed x1", "Normal Lease/shop-leasecron LeaderElected x1")
	})
}

// Whatever happens, the rate is bounded.
func TestEverythingAtOnceIsBounded(t *testing.T) {
	bubble(t, func(b *bench) {
		began := time.Now()
		for time.Since(began) < 10*time.Minute {
			for i := range 20 {
				job := fmt.Sprintf("job-%d", i)
				key := run.Key{Job: job}
				b.fail(job)
				b.Observe(engine.RunEnded{Run: run.Run{Key: key, State: run.StateLost}})
				b.Observe(engine.RunEnded{Run: run.Run{Key: key, State: run.StateNeedsReview}})
				b.Observe(engine.Missed{Key: key, Reason: run.ReasonWindow, Count: 1})
				b.Observe(engine.JobInvalid{Job: job, Err: errors.New("no such zone")})
				b.Observe(engine.TermBegan{Term: int64(i)})
				b.ObserveElection(election.TermEnded{Err: election.ErrExpired, Lost: true})
			}
			time.Sleep(time.Second)
		}
		if n := b.writer.count(); n > 20+40+1 {
			t.Errorf("%d requests in ten minutes, want at most 20 at once and 4 a minute", n)
		}
		for _, reason := range []string{"RunFailed", "RunLost", "RunNeedsReview", "InstantsMissed", "JobInvalid", "LeaderElected", "LeadershipLost"} {
			if !strings.Contains(strings.Join(b.writer.list(), "\n"), reason) {
				t.Errorf("%s was crowded out", reason)
			}
		}
	})
}

func TestAMissingRightIsSaidOnce(t *testing.T) {
	bubble(t, func(b *bench) {
		forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "", errors.New("no"))
		b.writer.set(forbidden)
		for range 3600 {
			b.fail("tick")
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := b.writer.count(); n > 6 {
			t.Errorf("%d requests in an hour without the right, want at most one in ten minutes", n)
		}
		if n := strings.Count(b.log.String(), "\n"); n != 1 || !strings.Contains(b.log.String(), "create and patch on events") {
			t.Errorf("%d lines, want one that says what to grant\n%s", n, b.log)
		}
		b.writer.set(nil)
		time.Sleep(10 * time.Minute)
		b.fail("tick")
		b.wrote(t, "Warning Pod/shop-0 RunFailed x1")
	})
}

// An API server that is away costs nothing and loses nothing that matters.
func TestAnAPIServerThatIsAway(t *testing.T) {
	for name, disturb := range map[string]func(f *fakeWriter){
		"refuses":                func(f *fakeWriter) { f.err = errors.New("connection refused") },
		"hangs":                  func(f *fakeWriter) { f.hang = true },
		"stores, without a word": func(f *fakeWriter) { f.err, f.lose = errors.New("no answer"), true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(b *bench) {
				b.writer.mu.Lock()
				disturb(b.writer)
				b.writer.mu.Unlock()
				began := time.Now()
				for range 600 {
					b.fail("tick")
					time.Sleep(time.Second)
				}
				if took := time.Since(began); took != 10*time.Minute {
					t.Errorf("telling took %s, want no time", took-10*time.Minute)
				}
				if n := b.writer.count(); n > 25 {
					t.Errorf("%d requests in ten minutes, want growing pauses", n)
				}
				b.writer.mu.Lock()
				b.writer.err, b.writer.hang, b.writer.lose = nil, false, false
				b.writer.mu.Unlock()
				time.Sleep(20 * time.Minute)
				b.wrote(t, "Warning Pod/shop-0 RunFailed x600")
			})
		})
	}
}

func TestAnExpiredEventIsMadeAnew(t *testing.T) {
	bubble(t, func(b *bench) {
		b.fail("tick")
		synctest.Wait()
		b.writer.mu.Lock()
		clear(b.writer.events)
		b.writer.mu.Unlock()
		time.Sleep(30 * time.Minute)
		b.fail("tick")
		time.Sleep(time.Minute)
		b.wrote(t, "Warning Pod/shop-0 RunFailed x1")
		time.Sleep(3 * time.Hour)
		b.fail("tick")
		b.wrote(t, "Warning Pod/shop-0 RunFailed x1", "Warning Pod/shop-0 RunFailed x1")
	})
}

// What the end of the process brings is still written.
func TestWhatIsLeftIsWrittenAtTheEnd(t *testing.T) {
	bubble(t, func(b *bench) {
		b.fail("tick")
		synctest.Wait()
		b.fail("tick")
		b.ObserveElection(election.TermEnded{Err: errors.New("stopped")})
		b.stop()
		b.wrote(t, "Warning Pod/shop-0 RunFailed x2", "Normal Lease/shop-leasecron LeadershipHandedOver x1")
	})
}

func TestTheObjectsCanBeFound(t *testing.T) {
	bubble(t, func(b *bench) {
		b.JobsSeen("u3")
		b.JobsRefused("ConfigMap", errors.New("no"))
		b.fail("tick")
		b.Observe(engine.TermBegan{Term: 1})
		b.fail(strings.Repeat("ä", 2000))
		synctest.Wait()
		want := map[string]string{"ConfigMap": "u3", "Pod": "u1", "Lease": "u2"}
		for _, e := range b.writer.events {
			if o := e.InvolvedObject; string(o.UID) != want[o.Kind] || o.Namespace != "shop" || e.Namespace != "shop" || o.APIVersion == "" {
				t.Errorf("%s is about %+v", e.Reason, o)
			}
			if len(e.Message) > 1024 || e.Source.Component != "leasecron" || e.ReportingInstance != "shop-0_abc" {
				t.Errorf("%s: %d bytes, from %+v %s", e.Reason, len(e.Message), e.Source, e.ReportingInstance)
			}
		}
	})
}
