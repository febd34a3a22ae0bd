package manifests

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/leasecron/leasecron/config"
)

// Sidecar says what container to add to a workload. The zero value of each field is a good default.
type Sidecar struct {
	// App is whose jobs these are; empty: the workload's name.
	App string
	// Image is that of the container; empty: the one that the workload's sidecar has already.
	Image string
	// DefaultImage is for a workload that has no sidecar yet where Image is empty; it is taken with a warning.
	DefaultImage string
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
	// Settings are LEASECRON_ variables for the container, by their whole names, and OTEL_ variables.
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

// tracingPrefix is that of OpenTelemetry's variables, which say where traces go.
const tracingPrefix = "OTEL_"

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
		if !strings.HasPrefix(full, config.SettingPrefix) && !strings.HasPrefix(full, tracingPrefix) {
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
		"KUBERNETES_SERVICE_HOST": "in-cluster", "POD_NAMESPACE": namespace, "POD_NAME": "pod",
		settingApp: app, settingTarget: target,
	}
	maps.Copy(environ, variables)
	return config.LoadSettings(environ)
}

// imageReference is how a container image is written: registry/path:tag@digest, of which only a path is needed.
var imageReference = regexp.MustCompile(`^(?:(?:[a-zA-Z0-9](?:[-.a-zA-Z0-9]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/)?` +
	`[a-z0-9]+(?:(?:[._]|__|-+|/)[a-z0-9]+)*(?::[\w][-.\w]{0,127})?(?:@[A-Za-z][-_+.A-Za-z0-9]*:[0-9a-fA-F]{32,})?$`)

// imageOf decides which image a container gets.
func (s Sidecar) imageOf(in *Injected, before string) (string, error) {
	image := cmp.Or(s.Image, before)
	if image == "" && s.DefaultImage != "" {
		image = s.DefaultImage
		in.warn("no image is named: a cluster finds %s only where somebody has loaded it into its nodes; push it and name it with --image", image)
	}
	if image == "" {
		return "", errors.New("no image is named")
	}
	if s.Image != "" && (len(image) > longestImage || !imageReference.MatchString(image)) {
		return "", fmt.Errorf("image %q: want a reference such as registry.example/leasecron:v1", image)
	}
	return image, nil
}

const longestImage = 1024

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
