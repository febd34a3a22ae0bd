package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/internal/kube"
)

// Documents are the three that the cluster's sidecars share, as they were at one moment.
type Documents struct {
	Ledger  *state.Ledger
	Catalog *state.Catalog
	History *state.History
}

// Documents reads them as the administrator. They are read one after the other, the ledger first:
// what moved on meanwhile is in two of them, and nothing is in none.
func (c *Cluster) Documents(ctx context.Context) (Documents, error) {
	var d Documents
	client, err := kube.New(c.ControlPlane.AdminConfig(), "test")
	if err != nil {
		return d, err
	}
	store, err := ledger.NewKubernetes(ledger.KubernetesOptions{Client: client, Namespace: c.Namespace, App: AppName})
	if err != nil {
		return d, err
	}
	if d.Ledger, err = ledger.NewPort[state.Ledger](store, ledger.NameLedger).Read(ctx); err != nil {
		return d, err
	}
	if d.Catalog, err = ledger.NewPort[state.Catalog](store, ledger.NameCatalog).Read(ctx); err != nil {
		return d, err
	}
	d.History, err = ledger.NewPort[state.History](store, ledger.NameHistory).Read(ctx)
	return d, err
}

// Record is all that the cluster knows of one trigger's instants.
type Record struct {
	Runs  []run.Run
	Skips []run.Skip
}

// Recorded reads ledger and history. What ended is first added to the history and then removed
// from the ledger, so a record that is in both counts once.
func (c *Cluster) Recorded(t testing.TB) map[run.Key]Record {
	t.Helper()
	d, err := c.Documents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d.recorded()
}

func (d Documents) recorded() map[run.Key]Record {
	out := make(map[run.Key]Record)
	seen := make(map[string]bool)
	add := func(runs []run.Run, skips []run.Skip) {
		for _, r := range runs {
			if rec := out[r.Key]; !seen[r.ID] {
				seen[r.ID] = true
				rec.Runs = append(rec.Runs, r)
				out[r.Key] = rec
			}
		}
		for _, s := range skips {
			if rec, id := out[s.Key], s.Occurrence+"/"+string(s.Reason); !seen[id] {
				seen[id] = true
				rec.Skips = append(rec.Skips, s)
				out[s.Key] = rec
			}
		}
	}
	add(d.Ledger.Runs, nil)
	add(d.Ledger.Finished, d.Ledger.Skipped)
	for _, j := range d.History.Jobs {
		add(j.Runs, j.Skips)
	}
	return out
}

// Covers reports whether an instant is part of what was decided.
func (r Record) Covers(instant time.Time) bool {
	for _, x := range r.Runs {
		if RunCovers(x, instant) {
			return true
		}
	}
	for _, s := range r.Skips {
		if SkipCovers(s, instant) {
			return true
		}
	}
	return false
}

// RunCovers reports whether a run stands for an instant of its trigger.
func RunCovers(r run.Run, instant time.Time) bool {
	return instant.Equal(r.ScheduledAt) || (r.Coalesced > 1 && within(instant, r.ScheduledAt, r.CoveredUntil))
}

// SkipCovers reports whether an instant of the trigger was passed over with others.
func SkipCovers(s run.Skip, instant time.Time) bool {
	return s.Covers(instant)
}

func within(instant, from, until time.Time) bool {
	return !instant.Before(from) && instant.Before(until)
}

// Describe prints runs for a failure message.
func Describe(runs []run.Run) string {
	var b strings.Builder
	for _, r := range runs {
		fmt.Fprintf(&b, "%s %s attempt %d %s coalesced=%d node=%s term=%d %s\n",
			r.ScheduledAt.Format("15:04:05.000"), r.Key, r.Attempt, r.State, r.Coalesced, r.Node, r.Term, r.Message)
	}
	return b.String()
}
