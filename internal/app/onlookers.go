package app

import (
	"cmp"

	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/internal/events"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/leaderlabel"
)

// openOnlookers makes what tells the cluster what happens here, as far as it is switched on.
func (a *App) openOnlookers(identity string, cfg *rest.Config) error {
	s := a.settings
	namespace := cmp.Or(s.Pod.Namespace, s.Namespace)
	if s.LeaderLabel {
		client, err := kube.New(cfg, "leader label")
		if err != nil {
			return err
		}
		if a.label, err = leaderlabel.New(leaderlabel.Options{
			Pods: client, Namespace: namespace, Name: s.Pod.Name, UID: s.Pod.UID, Logger: a.log,
		}); err != nil {
			return err
		}
	}
	if s.Events {
		client, err := kube.New(cfg, "events")
		if err != nil {
			return err
		}
		opts := events.Options{
			Writer: client, Namespace: s.Namespace, Node: identity, Host: cmp.Or(s.Pod.Name, s.NodeID),
			Lease:    events.Object{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Name: s.LeaseName},
			LeaseUID: func() string { return a.elector.Status().LeaseUID },
			Logger:   a.log,
		}
		if namespace == s.Namespace { // the rights are those of one namespace
			opts.Pod = events.Object{APIVersion: "v1", Kind: "Pod", Name: s.Pod.Name, UID: s.Pod.UID}
		}
		if s.JobsFile == "" {
			opts.Jobs = events.Object{APIVersion: "v1", Kind: "ConfigMap", Name: s.JobsConfigMap}
		}
		if a.events, err = events.New(opts); err != nil {
			return err
		}
	}
	return nil
}

// engineObservers are told what happens in the engines.
func (a *App) engineObservers(first ...engine.Observer) observers {
	if a.events != nil {
		return append(first, a.events)
	}
	return first
}

// electionObservers are told what happens in the election.
type electionObservers struct {
	renewals
	app *App
}

// Observe implements [election.Observer].
func (o electionObservers) Observe(event election.Event) {
	o.renewals.Observe(event)
	if o.app.events != nil {
		o.app.events.ObserveElection(event)
		if _, won := event.(election.TermWon); won {
			o.app.tellRefused()
		}
	}
	if o.app.label == nil {
		return
	}
	switch event.(type) {
	case election.TermWon:
		o.app.label.Set(true)
	case election.TermEnded:
		o.app.label.Set(false)
	}
}

// tellRefused makes an Event of definitions that are not in force. Every replica sees them; the leader
// tells, and who becomes the leader tells again.
func (a *App) tellRefused() {
	last := a.defs.latest()
	a.events.JobsSeen(last.UID)
	if last.Err != nil {
		a.events.JobsRefused(last.Origin, last.Err)
	}
}
