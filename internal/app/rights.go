package app

import (
	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/internal/kube"
	"github.com/leasecron/leasecron/internal/rights"
	"github.com/leasecron/leasecron/rbac"
)

// openRights makes the check of what this sidecar may do, and lets it see what cfg's clients are
// refused. Without an API server there is nothing to check.
func (a *App) openRights(cfg *rest.Config) error {
	used := rbac.Rights(rbac.Rules(rbac.For(a.settings)))
	if cfg == nil || len(used) == 0 {
		return nil
	}
	client, err := kube.New(cfg, "rights")
	if err != nil {
		return err
	}
	s := a.settings
	if a.rights, err = rights.New(rights.Options{
		Reviewer: client, App: s.App, Namespace: s.Namespace, PodNamespace: s.Pod.Namespace, Rights: used, Set: roleSettings(s), Logger: a.log,
	}); err != nil {
		return err
	}
	cfg.Wrap(a.rights.Wrap)
	return nil
}

// roleSettings are those by which a Role differs from that of an app without settings.
func roleSettings(s config.Settings) []string {
	var out []string
	if s.LeaseName != s.App+"-leasecron" {
		out = append(out, "LEASE_NAME="+s.LeaseName)
	}
	if s.JobsConfigMap != s.App+"-jobs" {
		out = append(out, "JOBS_CONFIGMAP="+s.JobsConfigMap)
	}
	if s.JobsFile != "" {
		out = append(out, "JOBS_FILE="+s.JobsFile)
	}
	if !s.Events {
		out = append(out, "EVENTS=false")
	}
	if s.LeaderLabel {
		out = append(out, "LEADER_LABEL=true")
	}
	return out
}
