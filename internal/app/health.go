package app

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasecron/leasecron/api"
	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/config/source"
	"github.com/leasecron/leasecron/engine"
)

// stuck is how long a loop may make no progress before it counts as wedged. It is generous: a
// restart helps only a process that is broken, not one that waits for an API server.
const stuck = 2 * time.Minute

// liveness says that the loops make progress, which a living process alone does not prove.
func (a *App) liveness() []api.Check {
	progress := func(last func() time.Time) func() (string, error) {
		return func() (string, error) {
			age := time.Since(last())
			if age > stuck {
				return "", fmt.Errorf("no turn for %s", age.Round(time.Second))
			}
			return fmt.Sprintf("last turn %s ago", age.Round(time.Millisecond)), nil
		}
	}
	return []api.Check{
		{Name: "engine", Probe: progress(func() time.Time { return a.engines.cluster.Status().LastTurn })},
		{Name: "instance-engine", Probe: progress(func() time.Time { return a.engines.instance.Status().LastTurn })},
		{Name: "election", Probe: progress(func() time.Time { return a.elector.Status().LastTurn })},
	}
}

// readiness says that the process is up. What is merely missing is told and fails nothing: a
// sidecar's readiness is its whole pod's.
func (a *App) readiness() []api.Check {
	checks := []api.Check{
		{Name: "engine", Probe: func() (string, error) { return "", nil }},
		{Name: "definitions", Informational: true, Probe: a.defs.check},
		{Name: "app-reachable", Informational: true, Probe: func() (string, error) {
			if a.probe.Reachable() {
				return "", nil
			}
			return "", a.probe.Err()
		}},
		{Name: "ledger", Informational: true, Probe: a.trouble(func(s engine.Status) string { return s.LedgerError })},
		{Name: "catalog", Informational: true, Probe: a.trouble(func(s engine.Status) string { return s.CatalogError })},
		{Name: "history", Informational: true, Probe: a.trouble(func(s engine.Status) string { return s.HistoryError })},
		{Name: "format", Informational: true, Probe: func() (string, error) { return "", a.engines.cluster.FormatError() }},
		{Name: "pause", Informational: true, Probe: a.pauseCheck},
		{Name: "drain", Informational: true, Probe: a.drainCheck},
		{Name: "leases", Informational: true, Probe: func() (string, error) { return "", a.leases.Trouble() }},
		{Name: "leadership", Informational: true, Probe: func() (string, error) {
			s := a.elector.Status()
			switch {
			case s.Leading && s.Term == 0:
				return "", errors.New("holds the lease, has not taken over in the ledger yet")
			case s.Leading:
				return fmt.Sprintf("leading, term %d", s.Term), nil
			case s.Holder != "":
				return fmt.Sprintf("following %s, as of %s ago", s.Holder, time.Since(s.SeenAt).Round(time.Millisecond)), nil
			default:
				return "", errors.New("nobody leads: " + s.Waiting)
			}
		}},
	}
	if a.settings.Ledger == config.LedgerKubernetes {
		checks = append(checks, api.Check{Name: "watches", Informational: true, Probe: a.watches.check})
	}
	if a.rights != nil {
		checks = append(checks, api.Check{Name: "rights", Informational: true, Probe: a.rights.Probe})
	}
	if a.signer != nil {
		checks = append(checks, api.Check{Name: "signing-secrets", Informational: true, Probe: func() (string, error) {
			if err := a.signer.Err(); err != nil {
				return "", fmt.Errorf("the last good secret stays in use: %w", err)
			}
			return "", nil
		}})
	}
	return checks
}

// pauseCheck tells on the leader that everything is paused: then nothing fires, and nothing is wrong.
func (a *App) pauseCheck() (string, error) {
	h := a.engines.cluster.Status().Everything
	if h == nil {
		return "", nil
	}
	text := "every job is paused since " + h.Since.UTC().Format(time.RFC3339)
	if !h.Until.IsZero() {
		text += ", until " + h.Until.UTC().Format(time.RFC3339)
	}
	if h.Reason != "" {
		text += fmt.Sprintf(" (%q)", h.Reason)
	}
	return "", errors.New(text + ": POST /v1/resume ends that")
}

// drainCheck tells that this sidecar does not lead any more, which its pod may well outlive.
func (a *App) drainCheck() (string, error) {
	switch s := a.DrainStatus(); s.State {
	case api.DrainDraining:
		return "", fmt.Errorf("draining since %s, %d runs left: it does not lead again until it is restarted", s.Since.UTC().Format(time.RFC3339), s.Runs)
	case api.DrainDrained:
		return "", fmt.Errorf("drained at %s: it does not lead again until it is restarted", s.EndedAt.UTC().Format(time.RFC3339))
	default:
		return "", nil
	}
}

// definitions remembers what the source last said.
type definitions struct {
	mu     sync.Mutex
	last   source.Update
	loaded bool // some document was accepted
}

func (d *definitions) note(u source.Update) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = u
	d.loaded = d.loaded || u.Err == nil
}

// latest is what the source last said; zero before it said anything.
func (d *definitions) latest() source.Update {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

func (d *definitions) check() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.last.At.IsZero():
		return "", errors.New("no job definitions yet")
	case d.last.Err != nil && d.loaded:
		return "", fmt.Errorf("refused %s, the last good ones stay in force: %w", d.last.Origin, d.last.Err)
	case d.last.Err != nil:
		return "", fmt.Errorf("no job definitions from %s: %w", d.last.Origin, d.last.Err)
	}
	return fmt.Sprintf("%d jobs from %s, loaded %s", len(d.last.Document.Jobs), d.last.Origin, d.last.At.UTC().Format(time.RFC3339)), nil
}

// trouble makes a probe of what the engine of the cluster's jobs says is wrong.
func (a *App) trouble(of func(engine.Status) string) func() (string, error) {
	return func() (string, error) {
		if text := of(a.engines.cluster.Status()); text != "" {
			return "", errors.New(text)
		}
		return "", nil
	}
}
