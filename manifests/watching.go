package manifests

import "github.com/leasecron/leasecron/manifests/monitoring"

// watching are the options of what an installation is watched with.
func watching(inst Installation) monitoring.Options {
	return monitoring.Options{
		App: inst.App, Namespace: inst.Namespace, Labels: inst.Labels, PodSelector: inst.PodSelector, Port: Container,
	}
}

func podMonitor(inst Installation) ([]Object, error) {
	if _, reachable := port(inst.Settings.Listen); !reachable {
		return nil, unreachable(inst)
	}
	return []Object{objectOf(monitoring.PodMonitor(watching(inst)))}, nil
}

func prometheusRule(inst Installation) ([]Object, error) {
	return []Object{objectOf(monitoring.Rules(watching(inst)))}, nil
}

func grafanaDashboard(inst Installation) ([]Object, error) {
	dashboard, err := monitoring.Dashboard(watching(inst))
	if err != nil {
		return nil, err
	}
	return []Object{objectOf(dashboard)}, nil
}
