package manifests

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/leasecron/leasecron/config"
)

// Sidecar says what container to add to a workload. The zero value of each field is a good default.
type Sidecar struct {
	// App is whose jobs these are; empty: the workload's name.
	App string
	// Image is required where a workload does not have the sidecar yet.
	Image string
	// Plain makes it an ordinary container, for clusters before 1.29.
	Plain bool
	// Target is the app's base URL; empty: a port of the app's container.
	Target string
	// Beside is the app's container, where there are several; empty: the first that declares a port.
	Beside string
	// ServiceAccount is what pods run as that name none; empty: the app's name.
	ServiceAccount string
	// Readiness lets the sidecar's readiness count for the pod's.
	Readiness bool
	// Settings are LEASECRON_ variables for the container, by their whole names.
	Settings map[string]string
}

// The names of settings that this package sets itself.
const (
	settingApp       = config.SettingPrefix + "APP"
	settingNamespace = config.SettingPrefix + "NAMESPACE"
	settingElection  = config.SettingPrefix + "ELECTION"
	settingLedger    = config.SettingPrefix + "LEDGER"
	settingTarget    = config.SettingPrefix + "TARGET"
	settingListen    = config.SettingPrefix + "LISTEN"
	settingAPIListen = config.SettingPrefix + "API_LISTEN"
	settingGrace     = config.SettingPrefix + "SHUTDOWN_GRACE"
)

// chosen are settings that have a better place than a list of settings.
var chosen = map[string]string{
	settingApp:       "name the app itself",
	settingNamespace: "it is the pod's",
	settingElection:  "what is packed elects through Kubernetes",
	settingLedger:    "what is packed keeps its ledger in Kubernetes",
	settingTarget:    "name the target itself",
}

// SettingNames turns what people write, with or without the prefix, into names of variables, and refuses what
// has a better place.
func SettingNames(given map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(given))
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		full := strings.ToUpper(name)
		if !strings.HasPrefix(full, config.SettingPrefix) {
			full = config.SettingPrefix + full
		}
		if why, ok := chosen[full]; ok {
			problems = append(problems, fmt.Errorf("setting %s is not to be set here: %s", full, why))
		}
		if _, ok := out[full]; ok {
			problems = append(problems, fmt.Errorf("setting %s is given twice", full))
		}
		out[full] = given[name]
	}
	return out, errors.Join(problems...)
}

// loadSettings reads settings as the container will, so that what it would refuse is refused here.
func loadSettings(app, namespace, target string, variables map[string]string) (config.Settings, error) {
	environ := map[string]string{
		"KUBERNETES_SERVICE_HOST": "in-cluster", "POD_NAMESPACE": namespace, "POD_NAME": app,
		settingApp: app, settingTarget: target,
	}
	maps.Copy(environ, variables)
	return config.LoadSettings(environ)
}

// port is that of an address to listen on, and whether the pod's network reaches it.
func port(address string) (number int32, reachable bool) {
	host, p, err := net.SplitHostPort(address)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(p, 10, 32)
	if err != nil {
		return 0, false
	}
	ip := net.ParseIP(host)
	return int32(n), n > 0 && host != "localhost" && (ip == nil || !ip.IsLoopback())
}

// JobsSettings are the settings that a jobs document is judged by.
func JobsSettings(variables map[string]string) (config.Settings, error) {
	return loadSettings("app", "default", "", variables)
}
