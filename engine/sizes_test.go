package engine_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
)

// refusing is a store that does not take one document while err says why.
type refusing struct {
	ledger.Store
	name ledger.Name
	err  atomic.Pointer[error]
}

func (r *refusing) refuse(err error) { r.err.Store(&err) }

func (r *refusing) Replace(ctx context.Context, name ledger.Name, from ledger.Version, data []byte) (ledger.Version, error) {
	if err := r.err.Load(); err != nil && *err != nil && name == r.name {
		return "", fmt.Errorf("replace %s: %w", name, *err)
	}
	return r.Store.Replace(ctx, name, from, data)
}

// lines is a log of warnings and errors.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

// countOf counts the events of a kind.
func countOf[E engine.Event](o *told) (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.events {
		if _, ok := e.(E); ok {
			n++
		}
	}
	return n
}

// A ConfigMap carries about 2,000 jobs. An edit of the document's defaults changes all of them, and each
// change is a version: ten of them outgrow the catalog, which then keeps fewer.
func TestTwoThousandJobsEditedTenTimesAllFire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewMemory()
		n := start(t, store, "a", &app{})
		_, leave := n.lead()
		const many, edits = 2_000, 10
		for edit := range edits {
			jobs := make([]config.Job, many)
			for i := range jobs {
				jobs[i] = job(fmt.Sprintf("reports.tenant-%04d", i), "cron 0 0 3 * * ? tz=Asia/Shanghai")
				jobs[i].Timeout = time.Duration(30+edit) * time.Second
			}
			n.engine.Define(jobs)
			time.Sleep(time.Minute)
			synctest.Wait()
			if s := n.engine.Status(); s.CatalogError != "" || s.LedgerError != "" {
				t.Fatalf("edit %d: catalog %q, ledger %q", edit+1, s.CatalogError, s.LedgerError)
			}
		}
		time.Sleep(24 * time.Hour)
		fired := make(map[string]time.Duration)
		for _, c := range n.app.Calls() {
			fired[c.Run.Key.Job] = c.Timeout
		}
		old := 0
		for _, timeout := range fired {
			if timeout != (30+edits-1)*time.Second {
				old++
			}
		}
		if len(fired) != many || old > 0 {
			t.Errorf("%d of %d jobs fired, %d of them as they were before the last edit", len(fired), many, old)
		}
		leave()
		n.close()
	})
}

func TestACatalogThatTakesNothingKeepsTheDefinitionsInForce(t *testing.T) {
	for name, refusal := range map[string]error{
		"it would be too large": ledger.ErrTooLarge,
		"it may not be written": errors.New("configmaps is forbidden"),
		"it is gone":            ledger.ErrMissing,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &refusing{Store: ledger.NewSharedMemory(), name: ledger.NameCatalog}
				observer, log := &told{}, &lines{}
				n := start(t, store, "a", &app{}, func(o *engine.Options) { o.Observer, o.Logger = observer, log.logger() })
				n.engine.Define([]config.Job{job("tick", "rate 5s")})
				l, leave := n.lead()
				time.Sleep(10 * time.Second)
				store.refuse(refusal)
				n.engine.Define([]config.Job{job("tock", "rate 5s")})
				before := len(n.app.Calls())
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if calls := len(n.app.Calls()) - before; calls < 119 || calls > 121 {
					t.Errorf("%d calls of the job in force in 10 minutes, want one every five seconds", calls)
				}
				s := n.engine.Status()
				if !s.Leading || l.resigned != nil || s.LedgerError != "" {
					t.Errorf("leading %v, resigned %v, ledger %q: want it to lead on", s.Leading, l.resigned, s.LedgerError)
				}
				if !strings.Contains(s.CatalogError, refusal.Error()) {
					t.Errorf("status tells %q, want the reason", s.CatalogError)
				}
				if events := countOf[engine.CatalogRefused](observer); events != 1 {
					t.Errorf("%d events, want one", events)
				}
				if errs, all := log.count("level=ERROR"), log.count("\n"); errs != 1 || all != 1 {
					t.Errorf("%d lines, %d of them errors, want just one error:\n%s", all, errs, &log.text)
				}
				store.refuse(nil)
				time.Sleep(6 * time.Minute)
				if last := n.app.Calls()[len(n.app.Calls())-1]; last.Run.Key.Job != "tock" {
					t.Errorf("the last call is of %s, want the new job", last.Run.Key.Job)
				}
				if s := n.engine.Status(); s.CatalogError != "" {
					t.Errorf("status still tells %q", s.CatalogError)
				}
				leave()
				n.close()
			})
		})
	}
}

// A history that nothing can be written to stops no job: what ended waits, and the oldest of it makes
// room in the ledger in the end.
func TestAHistoryThatTakesNothingStopsNoJob(t *testing.T) {
	for name, refusal := range map[string]error{
		"it would be too large": ledger.ErrTooLarge,
		"it may not be written": errors.New("configmaps is forbidden"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &refusing{Store: ledger.NewSharedMemory(), name: ledger.NameHistory}
				store.refuse(refusal)
				observer, log := &told{}, &lines{}
				a := &app{answer: func(run.Attempt) run.Outcome {
					return run.Outcome{State: run.StateSucceeded, Status: 200, Message: strings.Repeat("m", 900)}
				}}
				n := start(t, store, "a", a, func(o *engine.Options) {
					o.Observer, o.Logger = observer, log.logger()
					bounded(store, 44<<10)(o) // decisions stop at seven eighths of it
				})
				n.engine.Define([]config.Job{job("tick", "rate 4s"), job("tock", "rate 4s")})
				_, leave := n.lead()
				for range 3 {
					before := len(a.Calls())
					time.Sleep(time.Minute)
					synctest.Wait()
					if calls := len(a.Calls()) - before; calls < 22 {
						t.Errorf("%d calls in a minute, want about 30", calls)
					}
				}
				s := n.engine.Status()
				if !strings.Contains(s.HistoryError, refusal.Error()) {
					t.Errorf("status tells %q, want the reason", s.HistoryError)
				}
				if events := countOf[engine.HistoryRefused](observer); events != 1 {
					t.Errorf("%d events, want one", events)
				}
				if countOf[engine.RecordsDropped](observer) == 0 {
					t.Error("records were dropped and nobody was told")
				}
				if errs := log.count("the history takes nothing"); errs != 1 {
					t.Errorf("told %d times, want once:\n%s", errs, &log.text)
				}
				store.refuse(nil)
				time.Sleep(6 * time.Minute)
				h, err := ledger.NewPort[state.History](store, ledger.NameHistory).Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if h.Jobs["tick"] == nil || time.Since(h.Jobs["tick"].LastSuccess) > 30*time.Second {
					t.Error("the history is not written again")
				}
				if s := n.engine.Status(); s.HistoryError != "" {
					t.Errorf("status still tells %q", s.HistoryError)
				}
				leave()
				n.close()
			})
		})
	}
}

// However large its records are, the history keeps the newest that fit.
func TestAHistoryThatWouldOutgrowItsObjectKeepsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewMemory()
		observer := &told{}
		a := &app{answer: func(run.Attempt) run.Outcome {
			return run.Outcome{State: run.StateSucceeded, Status: 200, Message: strings.Repeat("m", 900)}
		}}
		var jobs []config.Job
		for i := range 10 {
			jobs = append(jobs, job(fmt.Sprintf("job-%d", i), "rate 20s"))
		}
		n := start(t, store, "a", a, func(o *engine.Options) {
			o.Observer = observer
			o.History = ledger.NewPort[state.History](store, ledger.NameHistory, ledger.WithMaxBytes(60<<10))
		})
		n.engine.Define(jobs)
		_, leave := n.lead()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		runs, err := n.engine.Runs(t.Context(), "", 1000)
		if err != nil {
			t.Fatal(err)
		}
		if len(runs) < 20 || time.Since(runs[0].ScheduledAt) > 25*time.Second {
			t.Errorf("%d runs are known, want the newest", len(runs))
		}
		if waiting := len(ledgerOf(t, store).Finished); waiting > 30 {
			t.Errorf("%d runs wait in the ledger", waiting)
		}
		if events := observer.take(); len(events) > 0 {
			t.Errorf("told %+v, want nothing: it is bounded, not refused", events)
		}
		leave()
		n.close()
	})
}

// compressing is a store that counts a document as it is when compressed, as ConfigMaps do.
type compressing struct {
	ledger.Store
	bound int
}

func (c compressing) Replace(ctx context.Context, name ledger.Name, from ledger.Version, data []byte) (ledger.Version, error) {
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	if _, err := w.Write(data); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	if name == ledger.NameHistory && small.Len() > c.bound {
		return "", fmt.Errorf("%s: %w", name, ledger.ErrTooLarge)
	}
	return c.Store.Replace(ctx, name, from, data)
}

// Answers that hardly compress fill the object much sooner than their number would say.
func TestAHistoryOfRandomAnswersKeepsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := compressing{ledger.NewSharedMemory(), 30 << 10}
		observer := &told{}
		a := &app{answer: func(at run.Attempt) run.Outcome {
			text := make([]byte, 600)
			if at.Run.ScheduledAt.Minute() >= 5 { // until then they compress well
				if _, err := rand.Read(text); err != nil {
					t.Error(err)
				}
			}
			return run.Outcome{State: run.StateSucceeded, Status: 200, Message: base64.StdEncoding.EncodeToString(text)}
		}}
		n := start(t, store, "a", a, func(o *engine.Options) { o.Observer = observer })
		n.engine.Define([]config.Job{
			job("tick", "rate 3s", func(j *config.Job) { j.HistoryLimit = 1000 }),
			job("rare", "rate 4m"),
		})
		_, leave := n.lead()
		time.Sleep(15 * time.Minute)
		synctest.Wait()
		h, err := ledger.NewPort[state.History](store, ledger.NameHistory).Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tick := h.Jobs["tick"]
		if len(tick.Runs) < 10 || time.Since(tick.Runs[0].ScheduledAt) > 30*time.Second {
			t.Errorf("%d runs are kept, want the newest", len(tick.Runs))
		}
		if h.Jobs["rare"] == nil || time.Since(h.Jobs["rare"].LastSuccess) > 5*time.Minute {
			t.Error("the last success of the other job is forgotten")
		}
		if events := observer.take(); len(events) > 0 {
			t.Errorf("told %+v, want nothing: it is bounded, not refused", events)
		}
		leave()
		n.close()
	})
}

// moving moves what ended from the ledger to the history right after one of the two was read.
type moving[T any] struct {
	engine.Document[T]
	after func()
}

func (m moving[T]) Read(ctx context.Context) (*T, error) {
	v, err := m.Document.Read(ctx)
	m.after()
	return v, err
}

func TestARunThatMovesToTheHistoryIsAlwaysListed(t *testing.T) {
	store := ledger.NewMemory()
	swap(t, store, ledger.NameLedger, func(l *state.Ledger) {
		l.Finished = []run.Run{{ID: "x", Key: run.Key{Job: "a"}, State: run.StateSucceeded}}
		l.Runs = []run.Run{{ID: "y", Key: run.Key{Job: "a"}, State: run.StateRunning}}
	})
	var once sync.Once
	move := func() {
		once.Do(func() {
			ended := ledgerOf(t, store)
			ended.Runs[0].State = run.StateFailed
			swap(t, store, ledger.NameHistory, func(h *state.History) {
				h.Add(append(ended.Finished, ended.Runs...), nil, func(string) int { return 20 })
			})
			swap(t, store, ledger.NameLedger, func(l *state.Ledger) { *l = state.Ledger{} })
		})
	}
	e, err := engine.New(engine.Options{
		Node: "a", Invoker: &app{},
		Ledger:  moving[state.Ledger]{ledger.NewPort[state.Ledger](store, ledger.NameLedger), move},
		Catalog: ledger.NewPort[state.Catalog](store, ledger.NameCatalog),
		History: moving[state.History]{ledger.NewPort[state.History](store, ledger.NameHistory), move},
	})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := e.Runs(t.Context(), "a", 10)
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]run.State)
	for _, r := range runs {
		got[r.ID] = r.State
	}
	if len(runs) != 2 || got["x"] != run.StateSucceeded || got["y"] != run.StateFailed {
		t.Errorf("runs are %v, want x and y as they ended", got)
	}
}

// A pause needs room in the catalog too.
func TestAPauseMakesRoomInTheCatalog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		bound := func(bytes int) func(*engine.Options) {
			return func(o *engine.Options) {
				o.Catalog = ledger.NewPort[state.Catalog](store, ledger.NameCatalog, ledger.WithMaxBytes(bytes))
			}
		}
		n := start(t, store, "a", &app{}, bound(1<<20))
		_, leave := n.lead()
		for i := range 8 {
			n.engine.Define([]config.Job{job("tick", "rate 1s", func(j *config.Job) { j.Timeout = time.Duration(i+1) * time.Second })})
			time.Sleep(5 * time.Second)
		}
		other := start(t, store, "b", &app{}, bound(3<<10))
		if _, err := other.engine.Pause(t.Context(), run.Key{Job: "tick"}, strings.Repeat("r", 500), time.Time{}); err != nil {
			t.Errorf("Pause() = %v", err)
		}
		before := len(n.app.Calls())
		time.Sleep(time.Minute)
		if calls := len(n.app.Calls()) - before; calls > 1 {
			t.Errorf("%d calls while it was paused", calls)
		}
		var full *run.Error
		if _, err := other.engine.Pause(t.Context(), run.Key{Job: "tick"}, strings.Repeat("r", 5000), time.Time{}); !errors.As(err, &full) || full.Code != run.CodeLedgerFull {
			t.Errorf("Pause() with no room = %v, want %s", err, run.CodeLedgerFull)
		}
		leave()
		n.close()
		other.close()
	})
}

// An edit of anything else does not count a limited trigger anew, however many there are.
func TestALimitedTriggerIsCountedOverAllVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{})
		_, leave := n.lead()
		for i := range 2*state.MaxVersions + 2 {
			n.engine.Define([]config.Job{job("tick", "every 00:00:10 x3", func(j *config.Job) { j.Timeout = time.Duration(i+1) * time.Second })})
			time.Sleep(time.Minute)
		}
		if calls := len(n.app.Calls()); calls != 3 {
			t.Errorf("%d calls, want 3", calls)
		}
		leave()
		n.close()
	})
}
