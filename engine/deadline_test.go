package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
)

func TestTheDeadlineCountsFromAnAttemptThatCouldNotBeSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{answer: func(run.Attempt) run.Outcome {
			return run.Outcome{State: run.StateFailed, Code: run.CodeFailed, NotSent: true, Retryable: true, EndedAt: time.Now()}
		}})
		n.engine.Define([]config.Job{job("a", "rate 24h start=2000-01-01T00:10:00Z", func(j *config.Job) {
			j.Retry = config.Retry{MaxRetries: 100, Delay: 5 * time.Minute}
			j.Deadline = 30 * time.Minute
		})})
		_, leave := n.lead()
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if got := len(n.app.Calls()); got < 5 || got > 7 {
			t.Errorf("%d attempts, 5 minutes apart, within a deadline of 30: want 6 or so", got)
		}
		leave()
		n.close()
	})
}
