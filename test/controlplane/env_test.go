package controlplane_test

import (
	"strings"
	"testing"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/test/controlplane"
)

// In the shell of bin/controlplane run a sidecar is started as anywhere else, and refuses what looks like a setting.
func TestTheEnvironmentOfASharedControlPlaneIsNoSidecarsSetting(t *testing.T) {
	if _, err := config.LoadSettings(map[string]string{controlplane.Env: "/x", "KUBECONFIG": "/x"}); err != nil {
		t.Errorf("a sidecar beside %s does not start: %v", controlplane.Env, err)
	}
	if strings.HasPrefix(controlplane.Env, config.SettingPrefix) {
		t.Errorf("%s begins as settings do", controlplane.Env)
	}
}
