package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
)

func TestReplacingWhatWasNotSentTakesItsPlaceAtOnce(t *testing.T) {
	w := newWorld(t, noon, job("a", "* * * * *", overlap(config.OverlapReplace, 0)))
	w.maxRuns = 0 // no slot: it waits
	w.plan(noon)
	w.plan(noon.Add(time.Minute))
	if diff := cmp.Diff([]string{"Queued 1m0s until 2m0s"}, story(w.ledger.Runs, nil)); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"Canceled 0s until 1m0s"}, story(w.ledger.Finished, nil)); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
}

func TestCatchingUpReplacesNothingBeforeItsTurn(t *testing.T) {
	// The rate of catch-up holds under replace as well: each run has its time before the next ends it.
	w := newWorld(t, noon.Add(-10*time.Minute), job("a", "* * * * *", overlap(config.OverlapReplace, 0),
		misfire(config.Misfire{Policy: config.MisfireCatchUp, Limit: 2})))
	res := w.plan(noon)
	if len(w.ledger.Runs) != 1 || len(w.ledger.Finished) != 0 || w.ledger.Runs[0].Cancel {
		t.Fatalf("open %v, ended %v, want one run that is left alone", story(w.ledger.Runs, nil), story(w.ledger.Finished, nil))
	}
	if want := noon.Add(500 * time.Millisecond); !res.Next.Equal(want) {
		t.Errorf("next look at %s, want %s", offset(res.Next), offset(want))
	}
	w.plan(noon.Add(500 * time.Millisecond))
	if !w.ledger.Runs[0].Cancel {
		t.Error("the next one does not replace it")
	}
}
