package engine_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine/ledger"
)

func TestAPausedJobThatIsEditedAllTheTimeLosesNoInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{})
		edited := func(edit int, paused bool) []config.Job {
			return []config.Job{job("a", "rate 1h", func(j *config.Job) {
				j.Description, j.Paused = fmt.Sprint(edit), paused
				j.Triggers[0].Misfire = config.Misfire{Policy: config.MisfireCatchUp, Grace: time.Second, Limit: 10, Window: 100 * time.Hour}
			}), job("tick", "rate 10m")}
		}
		n.engine.Define(edited(0, true))
		_, leave := n.lead()
		const edits = 25
		for i := range edits {
			time.Sleep(time.Hour)
			n.engine.Define(edited(i+1, true))
		}
		n.engine.Define(edited(-1, false))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := callsOf("a", n.app); got != edits {
			t.Errorf("%d runs on resume, want the %d instants of the pause", got, edits)
		}
		leave()
		n.close()
	})
}

func TestALimitOutlivesEditsAndAbsence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t, ledger.NewMemory(), "a", &app{})
		tick := job("tick", "rate 1m")
		n.engine.Define([]config.Job{job("a", "every 1m x3"), tick})
		_, leave := n.lead()
		time.Sleep(90 * time.Second)
		for i := range 12 {
			n.engine.Define([]config.Job{job("a", "every 1m x3 jitter=1s", func(j *config.Job) { j.Description = fmt.Sprint(i) }), tick})
			time.Sleep(2 * time.Minute)
		}
		n.engine.Define([]config.Job{tick})
		time.Sleep(5 * time.Minute)
		n.engine.Define([]config.Job{job("a", "every 1m x3"), tick})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := callsOf("a", n.app); got != 3 {
			t.Errorf("%d runs, want 3 of x3 through 12 edits and an absence", got)
		}
		leave()
		n.close()
	})
}
