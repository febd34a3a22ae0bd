package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
)

// lostAnswer stores one write of the ledger, answers nothing, and then the ledger can be neither read nor written
// for a while.
type lostAnswer struct {
	ledger.Store
	arm   atomic.Bool
	until atomic.Int64
	away  time.Duration
}

func (s *lostAnswer) down() bool { return time.Now().UnixNano() < s.until.Load() }

func (s *lostAnswer) Load(ctx context.Context, name ledger.Name) ([]byte, ledger.Version, error) {
	if name == ledger.NameLedger && s.down() {
		return nil, "", errCut
	}
	return s.Store.Load(ctx, name)
}

func (s *lostAnswer) Replace(ctx context.Context, name ledger.Name, from ledger.Version, data []byte) (ledger.Version, error) {
	if name != ledger.NameLedger {
		return s.Store.Replace(ctx, name, from, data)
	}
	if s.down() {
		return "", errCut
	}
	v, err := s.Store.Replace(ctx, name, from, data)
	if err == nil && s.arm.CompareAndSwap(true, false) {
		s.until.Store(time.Now().Add(s.away).UnixNano())
		return "", ledger.ErrUnknown
	}
	return v, err
}

// A claim is stored, its answer is lost, and the ledger is away for longer than the swap tries. What the leader
// then reads shows a run that it has and has not sent (DESIGN 5.2).
func TestAClaimWhoseAnswerIsLostIsSentAfterAnOutage(t *testing.T) {
	for _, away := range []time.Duration{0, 5 * time.Second, 11 * time.Second, 13 * time.Second} {
		t.Run(away.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &lostAnswer{Store: ledger.NewSharedMemory(), away: away}
				n := start(t, store, "a", &app{})
				n.engine.Define([]config.Job{job("hourly", "rate 1h")})
				_, leave := n.lead()
				time.Sleep(time.Hour - time.Second)
				store.arm.Store(true)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				calls := n.app.Calls()
				if len(calls) != 1 {
					t.Errorf("%d calls five minutes after the instant, want 1", len(calls))
				}
				leave()
				n.close()
			})
		})
	}
}

// Where nothing else is due, no later swap comes to its help.
func TestALoneClaimWhoseAnswerIsLostIsSent(t *testing.T) {
	for _, manual := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := &lostAnswer{Store: ledger.NewSharedMemory(), away: 11 * time.Second}
			n := start(t, store, "a", &app{})
			n.engine.Define([]config.Job{job("o", "once 2000-01-01T01:00:00Z"), job("m", "manual")})
			_, leave := n.lead()
			if manual {
				time.Sleep(5 * time.Minute)
				// the run is asked for at another replica; only the leader's claim is not answered
				b := start(t, store.Store, "b", &app{})
				go func() {
					time.Sleep(time.Millisecond)
					store.arm.Store(true)
				}()
				time.Sleep(2 * time.Millisecond)
				if _, err := b.engine.Enqueue(t.Context(), "m", nil); err != nil {
					t.Fatal(err)
				}
				time.Sleep(40 * time.Minute)
				b.close()
			} else {
				time.Sleep(time.Hour - time.Second)
				store.arm.Store(true)
				time.Sleep(30 * 24 * time.Hour)
			}
			synctest.Wait()
			if len(n.app.Calls()) != 1 || store.arm.Load() {
				l := ledgerOf(t, store.Store)
				t.Errorf("manual %v: %d calls; armed %v; open %d, state %s", manual, len(n.app.Calls()), store.arm.Load(), len(l.Runs), l.Runs[0].State)
			}
			leave()
			n.close()
		})
	}
}

// What asks a run of a replaced instant to end may be the very write that tells its node of it.
func TestWhatIsCanceledBeforeItsNodeKnowsOfItIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &lostAnswer{Store: ledger.NewSharedMemory(), away: 25 * time.Second}
		long := func(run.Attempt) time.Duration { return 10 * time.Minute }
		n := start(t, store, "a", &app{workOf: long}, func(o *engine.Options) { o.LeaseDuration = time.Minute })
		n.engine.Define([]config.Job{job("r", "rate 20s", func(j *config.Job) { j.Overlap, j.Timeout = config.OverlapReplace, time.Hour })})
		_, leave := n.lead()
		time.Sleep(19 * time.Second)
		store.arm.Store(true)
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		for _, c := range n.app.Calls() {
			if late := c.at.Sub(c.Run.ScheduledAt); late > time.Second && c.Run.ScheduledAt.Sub(n.app.Calls()[0].Run.ScheduledAt) > 0 {
				t.Errorf("the run of %s was sent %s late", c.Run.ScheduledAt, late)
			}
		}
		for _, r := range ledgerOf(t, store.Store).Runs {
			if r.Cancel && r.State == run.StatePending && time.Since(r.ScheduledAt) > time.Minute {
				t.Errorf("the run of %s is %s, canceled and not ended", r.ScheduledAt, r.State)
			}
		}
		leave()
		n.stop()
		n.awaitEnd()
	})
}
