package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The bounds of settings.
const (
	longestApp   = 200 // leaves room for the suffixes of derived object names within longestName
	longestName  = 253 // of a Kubernetes object, so of a pod too
	longestPath  = 4096
	mostHosts    = 100
	mostSecrets  = 4
	mostSlots    = 10_000
	longestLease = 10 * time.Minute
)

var (
	dnsSubdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	dnsLabel     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	configMapKey = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)
	nodeID       = regexp.MustCompile(`^[a-zA-Z0-9][-._a-zA-Z0-9]*$`)
)

// settingsCheck collects problems; its methods check one setting each.
type settingsCheck struct{ problems []*SettingError }

func (c *settingsCheck) fail(variable, value, format string, args ...any) {
	c.problems = append(c.problems, &SettingError{
		Name: SettingPrefix + variable, Value: value, Err: fmt.Errorf(format, args...),
	})
}

// check returns what is wrong with the settings as a whole.
func (s *Settings) check() []*SettingError {
	var c settingsCheck
	c.subdomain("APP", s.App, longestApp)
	if !dnsLabel.MatchString(s.Namespace) || len(s.Namespace) > 63 {
		c.fail("NAMESPACE", s.Namespace, "want a namespace: at most 63 lower-case letters, digits and dashes (DNS-1123 label)")
	}
	c.oneOf("ELECTION", s.Election, ElectionKubernetes, ElectionStandalone)
	c.oneOf("LEDGER", s.Ledger, LedgerKubernetes, LedgerFile, LedgerMemory)
	c.ledger(s)

	if s.JobsConfigMap != s.jobsConfigMap() { // else it follows from APP, and what is wrong with that is said there
		c.subdomain("JOBS_CONFIGMAP", s.JobsConfigMap, longestName)
	}
	if !configMapKey.MatchString(s.JobsKey) || len(s.JobsKey) > 253 || strings.HasPrefix(s.JobsKey, "..") {
		c.fail("JOBS_KEY", s.JobsKey, "want a ConfigMap key: at most 253 letters, digits, dashes, underscores and dots")
	}
	c.path("JOBS_FILE", s.JobsFile)

	listen := c.listen("LISTEN", s.Listen)
	switch {
	case !c.listen("API_LISTEN", s.APIListen):
	case !isLoopbackAddress(s.APIListen):
		c.fail("API_LISTEN", s.APIListen, "want a loopback address such as 127.0.0.1:9471 (access from the pod network needs credentials, which are not supported yet)")
	case listen && samePlace(s.Listen, s.APIListen):
		c.fail("LISTEN", s.Listen, "takes the port of %sAPI_LISTEN (%s): want another one", SettingPrefix, s.APIListen)
	}

	if s.LeaseName != s.leaseName() {
		c.subdomain("LEASE_NAME", s.LeaseName, longestName)
	}
	c.lease(s)
	if !nodeID.MatchString(s.NodeID) || len(s.NodeID) > longestName {
		c.fail("NODE_ID", s.NodeID, "want at most %d letters, digits, dashes, underscores and dots", longestName)
	}
	c.duration("NODE_TIMEOUT", s.NodeTimeout, time.Hour)
	c.integer("MAX_CONCURRENT_RUNS", s.MaxConcurrentRuns, 1, mostSlots)
	c.duration("MISFIRE_GRACE", s.MisfireGrace, longestGrace)
	c.integer("HISTORY_LIMIT", s.HistoryLimit, 1, longestHistory)

	c.hosts(s.AllowedHosts)
	c.secretFiles(s.SigningSecretFiles)
	if target, err := checkTarget(s.Target, s.AllowedHosts); err != nil {
		c.fail("TARGET", redactQuery(s.Target), "%w", err)
	} else {
		s.Target = target
	}
	if s.AppHealthURL != "" {
		if err := checkHealthURL(s.AppHealthURL, s.AllowedHosts); err != nil {
			c.fail("APP_HEALTH_URL", redactQuery(s.AppHealthURL), "%w", err)
		}
	}
	c.duration("SHUTDOWN_GRACE", s.ShutdownGrace, time.Hour)
	c.duration("MAX_CLOCK_SKEW", s.MaxClockSkew, time.Hour)
	c.kubernetesOnly(s)
	if s.LogFormat != "" {
		c.oneOf("LOG_FORMAT", s.LogFormat, "json", "text")
	}
	return c.problems
}

func (c *settingsCheck) subdomain(variable, value string, most int) {
	if !dnsSubdomain.MatchString(value) || len(value) > most {
		c.fail(variable, value, "want at most %d lower-case letters, digits, dashes and dots (DNS-1123 subdomain)", most)
	}
}

func (c *settingsCheck) oneOf(variable, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		c.fail(variable, value, "want %s", strings.Join(allowed, " or "))
	}
}

func (c *settingsCheck) path(variable, value string) {
	if strings.ContainsRune(value, 0) || len(value) > longestPath {
		c.fail(variable, value, "want a path of at most %d bytes", longestPath)
	}
}

// ledger refuses stores that the replicas of an elected leader would not share, and files that
// nobody would write.
func (c *settingsCheck) ledger(s *Settings) {
	c.path("LEDGER_FILE", s.LedgerFile)
	switch {
	case s.Election == ElectionKubernetes && (s.Ledger == LedgerFile || s.Ledger == LedgerMemory):
		c.fail("LEDGER", s.Ledger, "want kubernetes: replicas that elect a leader through Kubernetes must share one ledger (or set %sELECTION=standalone)", SettingPrefix)
	case s.Ledger == LedgerFile && s.LedgerFile == "":
		c.fail("LEDGER_FILE", "", "is missing: %sLEDGER=file needs the path of a file", SettingPrefix)
	case s.Ledger != LedgerFile && s.LedgerFile != "":
		c.fail("LEDGER_FILE", s.LedgerFile, "has no meaning with a %s ledger: want it unset, or %sLEDGER=file", s.Ledger, SettingPrefix)
	case s.LedgerFile != "" && filepath.Base(s.LedgerFile) != filepath.Base(filepath.Clean(s.LedgerFile)):
		c.fail("LEDGER_FILE", s.LedgerFile, "want the path of a file")
	}
}

// kubernetesOnly refuses what has no meaning outside of a cluster.
func (c *settingsCheck) kubernetesOnly(s *Settings) {
	const needs = "has no meaning without " + SettingPrefix + "ELECTION=kubernetes"
	if s.Election != ElectionKubernetes {
		if s.Events {
			c.fail("EVENTS", "true", needs)
		}
		if s.LeaderLabel {
			c.fail("LEADER_LABEL", "true", needs)
		}
		return
	}
	if s.LeaderLabel && s.Pod.Name == "" {
		c.fail("LEADER_LABEL", "true", "needs to know the Pod: set POD_NAME, and POD_UID, from the downward API")
	}
}

func (c *settingsCheck) lease(s *Settings) {
	if !c.duration("LEASE_DURATION", s.LeaseDuration, longestLease) {
		return
	}
	if s.LeaseDuration%time.Second != 0 {
		c.fail("LEASE_DURATION", s.LeaseDuration.String(), "want whole seconds (a Lease holds nothing finer)")
	}
	if s.RenewDeadline >= s.LeaseDuration || s.RenewDeadline <= s.LeaseDuration/3 {
		c.fail("RENEW_DEADLINE", s.RenewDeadline.String(), "want less than %sLEASE_DURATION (%s) and more than a third of it",
			SettingPrefix, s.LeaseDuration)
	}
}

// duration wants 1s to most.
func (c *settingsCheck) duration(variable string, value, most time.Duration) bool {
	if value < time.Second || value > most {
		c.fail(variable, value.String(), "want 1s to %s", shortDuration(most))
		return false
	}
	return true
}

func (c *settingsCheck) integer(variable string, value, least, most int) {
	if value < least || value > most {
		c.fail(variable, strconv.Itoa(value), "want %d to %d", least, most)
	}
}

// listen accepts host:port with an IP address, localhost or nothing as the host. Port 0 lets the
// system choose.
func (c *settingsCheck) listen(variable, value string) bool {
	if err := checkListen(value); err != nil {
		c.fail(variable, value, "%w", err)
		return false
	}
	return true
}

func checkListen(value string) error {
	want := errors.New("want host:port, such as :9470 or 127.0.0.1:9470")
	host, port, err := net.SplitHostPort(value)
	if err != nil {
		return want
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return want
	}
	if host != "" && host != "localhost" {
		if _, err := netip.ParseAddr(host); err != nil {
			return want
		}
	}
	return nil
}

// samePlace reports whether two addresses cannot both be listened on. One that names no host, or the
// unspecified one, is every address of the host, of both families ([net.Listen]).
func samePlace(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	if portA != portB || portA == "0" {
		return false
	}
	ipA, ipB := listenIP(hostA), listenIP(hostB)
	return ipA.IsUnspecified() || ipB.IsUnspecified() || ipA == ipB
}

// listenIP is the address that a checked host stands for.
func listenIP(host string) netip.Addr {
	switch host {
	case "":
		return netip.IPv6Unspecified()
	case "localhost":
		host = "127.0.0.1"
	}
	ip, _ := netip.ParseAddr(host)
	return ip.Unmap()
}

func isLoopbackAddress(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && isLoopback(host)
}

func (c *settingsCheck) hosts(hosts []string) {
	const variable = "ALLOWED_HOSTS"
	if len(hosts) > mostHosts {
		c.fail(variable, "", "lists %d hosts: want at most %d", len(hosts), mostHosts)
		return
	}
	for i, host := range hosts {
		host = strings.ToLower(strings.TrimSpace(host))
		hosts[i] = host
		switch {
		case isForbidden(host):
			c.fail(variable, host, "is a link-local, metadata or unspecified address, which jobs may never call")
		case !isHost(host):
			c.fail(variable, host, "want host names or IP addresses without scheme, port or wildcard, separated by commas")
		}
	}
}

// secretFiles looks at the paths only: what the files hold is the invoker's to read.
func (c *settingsCheck) secretFiles(paths []string) {
	const variable = "SIGNING_SECRET_FILES"
	if len(paths) > mostSecrets {
		c.fail(variable, "", "lists %d files: want one, or two during a rotation (at most %d)", len(paths), mostSecrets)
		return
	}
	seen := make(map[string]bool, len(paths))
	for i, path := range paths {
		path = strings.TrimSpace(path)
		paths[i] = path
		switch {
		case strings.HasPrefix(path, "whsec_"): // never repeat it
			c.fail(variable, "", "holds a secret itself: want the paths of files, which a mounted Secret provides")
		case path == "":
			c.fail(variable, "", "names a file without a name: want paths separated by commas")
		case seen[path]:
			c.fail(variable, path, "is listed twice")
		default:
			c.path(variable, path)
		}
		seen[path] = true
	}
}

// redactQuery drops what may hold a secret.
func redactQuery(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		before, _, _ := strings.Cut(raw, "?")
		return before
	}
	u.RawQuery, u.User, u.Fragment = "", nil, ""
	return u.String()
}
