package manifests

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/leasecron/leasecron/election"
	"github.com/leasecron/leasecron/engine/ledger"
)

// The names that this program gives to its things in others' objects.
const (
	// Container is the name of the sidecar's container, and of its port on the pod network.
	Container = "leasecron"
	// apiPort is the name of the API's port, where it has to be declared.
	apiPort = "leasecron-api"
	// tokenVolume carries a token for the sidecar alone, where the pod mounts none.
	tokenVolume = "leasecron-token"
	managedBy   = "leasecron"
)

// The longest that Kubernetes takes.
const (
	longestLabel = 63
	longestName  = 253
)

var (
	dnsLabel     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	dnsSubdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// checkName checks the name of an object.
func checkName(what, name string) error {
	if len(name) > longestName || !dnsSubdomain.MatchString(name) {
		return fmt.Errorf("%s %q: want at most %d lower-case letters, digits, dashes and dots (DNS-1123 subdomain)", what, name, longestName)
	}
	return nil
}

func checkNamespace(name string) error {
	if len(name) > longestLabel || !dnsLabel.MatchString(name) {
		return fmt.Errorf("namespace %q: want at most %d lower-case letters, digits and dashes (DNS-1123 label)", name, longestLabel)
	}
	return nil
}

// labelValue is a name as the value of a label, which is shorter than a name may be: a longer one keeps its
// beginning, and a hash tells it from others that begin the same.
func labelValue(name string) string {
	if len(name) <= longestLabel {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:longestLabel-9], "-.") + "-" + hex.EncodeToString(sum[:4])
}

// Labels are those of every object of an app's installation.
func Labels(app string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":       labelValue(app),
		"app.kubernetes.io/component":  "scheduler",
		"app.kubernetes.io/managed-by": managedBy,
		election.AppLabel:              labelValue(app),
	}
}

// PodSelector selects the pods into which the sidecar of an app was injected.
func PodSelector(app string) map[string]string {
	return map[string]string{election.AppLabel: labelValue(app)}
}

// roleName is the name of an app's Role and of its binding.
func roleName(app string) string { return app + "-leasecron" }

// documentNames are the ConfigMaps that the sidecars of an app share.
func documentNames(app string) []string {
	var names []string
	for _, name := range ledger.Names() {
		names = append(names, ledger.ConfigMapName(app, name))
	}
	return names
}
