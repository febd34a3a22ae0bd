package config_test

import (
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/leasecron/leasecron/config"
)

func TestSettingsDefaults(t *testing.T) {
	standalone := config.Settings{
		App: "leasecron", Namespace: "default", Election: "standalone", Ledger: "memory",
		JobsConfigMap: "leasecron-jobs", JobsKey: "jobs.yaml", Listen: ":9470", APIListen: "127.0.0.1:9471",
		LeaseName: "leasecron-leasecron", LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second,
		NodeID: "node", NodeTimeout: 30 * time.Second, MaxConcurrentRuns: 32, MisfireGrace: time.Minute,
		HistoryLimit: 20, Target: "http://127.0.0.1:8080", ShutdownGrace: 25 * time.Second, MaxClockSkew: time.Minute, LogLevel: slog.LevelInfo,
	}
	with := func(change func(*config.Settings)) config.Settings {
		s := standalone
		change(&s)
		return s
	}
	tests := map[string]struct {
		environ map[string]string
		want    config.Settings
	}{
		"an empty environment is one instance without Kubernetes": {nil, standalone},
		"a variable that is set but empty counts as not set": {
			map[string]string{"LEASECRON_LISTEN": "", "LEASECRON_MAX_CONCURRENT_RUNS": ""}, standalone,
		},
		"in a cluster the Lease elects and the API server keeps the ledger": {
			map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1", "POD_NAMESPACE": "shop", "POD_NAME": "web-1", "POD_UID": "u", "POD_IP": "10.1.2.3"},
			with(func(s *config.Settings) {
				s.Election, s.Ledger, s.Namespace, s.NodeID = "kubernetes", "kubernetes", "shop", "web-1"
				s.Pod = config.Pod{Name: "web-1", UID: "u", Namespace: "shop", IP: "10.1.2.3"}
				s.Events = true
			}),
		},
		"Events can be switched off, and the label on": {
			map[string]string{"LEASECRON_ELECTION": "kubernetes", "LEASECRON_EVENTS": "false", "LEASECRON_LEADER_LABEL": "true", "POD_NAME": "web-1"},
			with(func(s *config.Settings) {
				s.Election, s.Ledger, s.NodeID, s.LeaderLabel = "kubernetes", "kubernetes", "web-1", true
				s.Pod.Name = "web-1"
			}),
		},
		"names derive from the app": {
			map[string]string{"LEASECRON_APP": "shop", "LEASECRON_NAMESPACE": "prod", "POD_NAMESPACE": "other"},
			with(func(s *config.Settings) {
				s.App, s.Namespace, s.JobsConfigMap, s.LeaseName = "shop", "prod", "shop-jobs", "shop-leasecron"
				s.Pod.Namespace = "other"
			}),
		},
		"a named ledger file makes the ledger a file": {
			map[string]string{"LEASECRON_LEDGER_FILE": "/data/ledger"},
			with(func(s *config.Settings) { s.Ledger, s.LedgerFile = "file", "/data/ledger" }),
		},
		"one instance may keep its ledger in Kubernetes": {
			map[string]string{"LEASECRON_LEDGER": "kubernetes"},
			with(func(s *config.Settings) { s.Ledger = "kubernetes" }),
		},
		"hosts are a list in lower case": {
			map[string]string{"LEASECRON_ALLOWED_HOSTS": "Backend, api.example.com"},
			with(func(s *config.Settings) { s.AllowedHosts = []string{"backend", "api.example.com"} }),
		},
		"variables of a Kubernetes Service are no settings": {
			map[string]string{
				"LEASECRON_PORT": "tcp://10.0.0.7:9470", "LEASECRON_SERVICE_HOST": "10.0.0.7", "LEASECRON_SERVICE_PORT": "9470",
				"LEASECRON_SERVICE_PORT_HTTP": "9470", "LEASECRON_PORT_9470_TCP": "tcp://10.0.0.7:9470",
				"LEASECRON_PORT_9470_TCP_PROTO": "tcp", "LEASECRON_PORT_9470_TCP_PORT": "9470", "LEASECRON_PORT_9470_TCP_ADDR": "10.0.0.7",
				"LEASECRON_METRICS_SERVICE_HOST": "10.0.0.8", "LEASECRON_METRICS_PORT": "tcp://10.0.0.8:1",
			}, standalone,
		},
		"variables of others are nobody's business": {
			map[string]string{"leasecron_x": "1", "LEASECRONX": "1", "PATH": "/bin"}, standalone,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := maps.Clone(tt.environ)
			got, err := config.LoadSettings(tt.environ)
			if err != nil {
				t.Fatalf("LoadSettings(%v): %v", tt.environ, err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("LoadSettings(%v) (-want +got):\n%s", tt.environ, diff)
			}
			if diff := cmp.Diff(before, tt.environ); diff != "" {
				t.Errorf("the environment was changed:\n%s", diff)
			}
		})
	}
}

// Two listeners may share a port where their addresses differ, and the system's choice is never one.
func TestListenersBesideEachOther(t *testing.T) {
	for _, listen := range []string{":9470", "127.0.0.2:9471", "[::1]:9471", "10.0.0.7:9471"} {
		if _, err := config.LoadSettings(map[string]string{"LEASECRON_LISTEN": listen}); err != nil {
			t.Errorf("LEASECRON_LISTEN=%s: %v", listen, err)
		}
	}
	for _, listen := range []string{"0.0.0.0:9471", "[::]:9471", "127.0.0.1:9471"} {
		if _, err := config.LoadSettings(map[string]string{"LEASECRON_LISTEN": listen}); err == nil {
			t.Errorf("LEASECRON_LISTEN=%s is accepted beside an API on 127.0.0.1:9471", listen)
		}
	}
	if _, err := config.LoadSettings(map[string]string{"LEASECRON_LISTEN": ":0", "LEASECRON_API_LISTEN": "127.0.0.1:0"}); err != nil {
		t.Errorf("port 0 twice: %v", err)
	}
}

func TestSettingsRefused(t *testing.T) {
	tests := map[string]struct {
		environ map[string]string
		want    string // the whole error
	}{
		"a mistyped name": {
			map[string]string{"LEASECRON_LEASE_DURATON": "15s"},
			`LEASECRON_LEASE_DURATON: no such setting (did you mean LEASECRON_LEASE_DURATION?)`,
		},
		"an unknown name does not show its value, which may be a secret": {
			map[string]string{"LEASECRON_PASSWORD_OF_SOMETHING": "hunter2"},
			`LEASECRON_PASSWORD_OF_SOMETHING: no such setting (see sidecar run --help)`,
		},
		"a name with a letter too many": {
			map[string]string{"LEASECRON_LISTENS": "80"},
			`LEASECRON_LISTENS: no such setting (did you mean LEASECRON_LISTEN?)`,
		},
		"a setting of a feature to come": {
			map[string]string{"LEASECRON_API_TOKENS_FILE": "/x"},
			`LEASECRON_API_TOKENS_FILE: is not supported yet`,
		},
		"a duration without a unit": {
			map[string]string{"LEASECRON_LEASE_DURATION": "15"},
			`LEASECRON_LEASE_DURATION="15": want a duration such as 15s or 2m`,
		},
		"a word for a switch": {
			map[string]string{"LEASECRON_EVENTS": "on"},
			`LEASECRON_EVENTS="on": want true or false`,
		},
		"what only a cluster has": {
			map[string]string{"LEASECRON_EVENTS": "true", "LEASECRON_LEADER_LABEL": "true"},
			`LEASECRON_EVENTS="true": has no meaning without LEASECRON_ELECTION=kubernetes` + "\n" +
				`LEASECRON_LEADER_LABEL="true": has no meaning without LEASECRON_ELECTION=kubernetes`,
		},
		"a label without a Pod": {
			map[string]string{"LEASECRON_ELECTION": "kubernetes", "LEASECRON_LEADER_LABEL": "true"},
			`LEASECRON_LEADER_LABEL="true": needs to know the Pod: set POD_NAME, and POD_UID, from the downward API`,
		},
		"a word for a number": {
			map[string]string{"LEASECRON_MAX_CONCURRENT_RUNS": "many"},
			`LEASECRON_MAX_CONCURRENT_RUNS="many": want a whole number`,
		},
		"a number out of range": {
			map[string]string{"LEASECRON_MAX_CONCURRENT_RUNS": "0"},
			`LEASECRON_MAX_CONCURRENT_RUNS="0": want 1 to 10000`,
		},
		"a duration out of range": {
			map[string]string{"LEASECRON_MISFIRE_GRACE": "61s"},
			`LEASECRON_MISFIRE_GRACE="1m1s": want 1s to 1m`,
		},
		"a renew deadline that is no less than the lease's duration": {
			map[string]string{"LEASECRON_RENEW_DEADLINE": "15s"},
			`LEASECRON_RENEW_DEADLINE="15s": want less than LEASECRON_LEASE_DURATION (15s) and more than a third of it`,
		},
		"a lease of broken seconds": {
			map[string]string{"LEASECRON_LEASE_DURATION": "15500ms"},
			`LEASECRON_LEASE_DURATION="15.5s": want whole seconds (a Lease holds nothing finer)`,
		},
		"an app that cannot name objects": {
			map[string]string{"LEASECRON_APP": "Shop_1"},
			"LEASECRON_APP=\"Shop_1\": want at most 200 lower-case letters, digits, dashes and dots (DNS-1123 subdomain)",
		},
		"an app that leaves no room for the names of its objects, once": {
			map[string]string{"LEASECRON_APP": strings.Repeat("a", 201), "POD_NAME": strings.Repeat("p", 253)},
			"LEASECRON_APP=\"" + strings.Repeat("a", 80) + "\"…: want at most 200 lower-case letters, digits, dashes and dots (DNS-1123 subdomain)",
		},
		"names that cannot be those of objects": {
			map[string]string{"LEASECRON_JOBS_CONFIGMAP": "Shop", "LEASECRON_LEASE_NAME": strings.Repeat("l", 254), "LEASECRON_NODE_ID": strings.Repeat("n", 254)},
			"LEASECRON_JOBS_CONFIGMAP=\"Shop\": want at most 253 lower-case letters, digits, dashes and dots (DNS-1123 subdomain)\n" +
				"LEASECRON_LEASE_NAME=\"" + strings.Repeat("l", 80) + "\"…: want at most 253 lower-case letters, digits, dashes and dots (DNS-1123 subdomain)\n" +
				"LEASECRON_NODE_ID=\"" + strings.Repeat("n", 80) + "\"…: want at most 253 letters, digits, dashes, underscores and dots",
		},
		"a file ledger beside an elected leader": {
			map[string]string{"LEASECRON_ELECTION": "kubernetes", "LEASECRON_LEDGER": "file", "LEASECRON_LEDGER_FILE": "/x"},
			`LEASECRON_LEDGER="file": want kubernetes: replicas that elect a leader through Kubernetes must share one ledger (or set LEASECRON_ELECTION=standalone)`,
		},
		"a file ledger without a file": {
			map[string]string{"LEASECRON_LEDGER": "file"},
			`LEASECRON_LEDGER_FILE: is missing: LEASECRON_LEDGER=file needs the path of a file`,
		},
		"a file that no ledger would write": {
			map[string]string{"LEASECRON_LEDGER": "memory", "LEASECRON_LEDGER_FILE": "/x"},
			`LEASECRON_LEDGER_FILE="/x": has no meaning with a memory ledger: want it unset, or LEASECRON_LEDGER=file`,
		},
		"an address without a port": {
			map[string]string{"LEASECRON_LISTEN": "localhost"},
			`LEASECRON_LISTEN="localhost": want host:port, such as :9470 or 127.0.0.1:9470`,
		},
		"an API on the pod network without credentials": {
			map[string]string{"LEASECRON_API_LISTEN": ":9471"},
			`LEASECRON_API_LISTEN=":9471": want a loopback address such as 127.0.0.1:9471 (access from the pod network needs credentials, which are not supported yet)`,
		},
		"both listeners on one port": {
			map[string]string{"LEASECRON_LISTEN": ":9471"},
			`LEASECRON_LISTEN=":9471": takes the port of LEASECRON_API_LISTEN (127.0.0.1:9471): want another one`,
		},
		"both listeners on one address, written in two ways": {
			map[string]string{"LEASECRON_LISTEN": "[::ffff:127.0.0.1]:80", "LEASECRON_API_LISTEN": "localhost:80"},
			`LEASECRON_LISTEN="[::ffff:127.0.0.1]:80": takes the port of LEASECRON_API_LISTEN (localhost:80): want another one`,
		},
		"a signing secret instead of its file": {
			map[string]string{"LEASECRON_SIGNING_SECRET_FILES": "whsec_aHVudGVyMg=="},
			`LEASECRON_SIGNING_SECRET_FILES: holds a secret itself: want the paths of files, which a mounted Secret provides`,
		},
		"the same signing secret file twice": {
			map[string]string{"LEASECRON_SIGNING_SECRET_FILES": "/s/a, /s/a"},
			`LEASECRON_SIGNING_SECRET_FILES="/s/a": is listed twice`,
		},
		"a signing secret file without a name": {
			map[string]string{"LEASECRON_SIGNING_SECRET_FILES": "/s/a,"},
			`LEASECRON_SIGNING_SECRET_FILES: names a file without a name: want paths separated by commas`,
		},
		"many signing secret files": {
			map[string]string{"LEASECRON_SIGNING_SECRET_FILES": "/1,/2,/3,/4,/5"},
			`LEASECRON_SIGNING_SECRET_FILES: lists 5 files: want one, or two during a rotation (at most 4)`,
		},
		"a cloud's metadata service as an allowed host": {
			map[string]string{"LEASECRON_ALLOWED_HOSTS": "169.254.169.254"},
			`LEASECRON_ALLOWED_HOSTS="169.254.169.254": is a link-local, metadata or unspecified address, which jobs may never call`,
		},
		"a health URL on a foreign host, without its query": {
			map[string]string{"LEASECRON_APP_HEALTH_URL": "http://example.com/health?token=secret"},
			`LEASECRON_APP_HEALTH_URL="http://example.com/health": host "example.com" is not loopback (want 127.0.0.1, ::1 or localhost, or list it in LEASECRON_ALLOWED_HOSTS)`,
		},
		"all that is wrong, in the order of the settings, unknown names last": {
			map[string]string{"LEASECRON_LOG_LEVEL": "loud", "LEASECRON_ELECTION": "raft", "LEASECRON_HISTORY_LIMIT": "x", "LEASECRON_ZZZ": "1"},
			"LEASECRON_ELECTION=\"raft\": want kubernetes or standalone\n" +
				"LEASECRON_HISTORY_LIMIT=\"x\": want a whole number\n" +
				"LEASECRON_LOG_LEVEL=\"loud\": want debug | info | warn | error\n" +
				"LEASECRON_ZZZ: no such setting (see sidecar run --help)",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := config.LoadSettings(tt.environ)
			if err == nil {
				t.Fatalf("LoadSettings(%v) succeeded, want an error", tt.environ)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("LoadSettings(%v) (-want +got):\n%s", tt.environ, diff)
			}
		})
	}
}

// A pod, and so a process, may be called as Kubernetes allows, and so may what follows from the longest APP.
func TestTheLongestNames(t *testing.T) {
	app, pod := strings.Repeat("a", 200), strings.Repeat("p", 253)
	s, err := config.LoadSettings(map[string]string{"LEASECRON_APP": app, "POD_NAME": pod})
	if err != nil {
		t.Fatal(err)
	}
	if s.LeaseName != app+"-leasecron" || s.JobsConfigMap != app+"-jobs" || s.NodeID != pod {
		t.Errorf("names %q, %q, %q, want those that follow from APP and the pod", s.LeaseName, s.JobsConfigMap, s.NodeID)
	}
}

func TestFlagsWinOverVariables(t *testing.T) {
	set := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags := config.BindFlags(set)
	if err := set.Parse([]string{"--jobs-file", "b.yaml", "--lease-duration=1x"}); err != nil {
		t.Fatal(err)
	}
	_, err := flags.Load(map[string]string{"LEASECRON_JOBS_FILE": "a.yaml"})
	if want := `--lease-duration="1x": want a duration such as 15s or 2m`; err == nil || err.Error() != want {
		t.Errorf("Load() = %v, want %s", err, want)
	}
	if err := set.Set("lease-duration", "30s"); err != nil {
		t.Fatal(err)
	}
	s, err := flags.Load(map[string]string{"LEASECRON_JOBS_FILE": "a.yaml", "LEASECRON_LEASE_DURATION": "20s"})
	if err != nil || s.JobsFile != "b.yaml" || s.LeaseDuration != 30*time.Second {
		t.Errorf("Load() = %q, %s, %v; want the flags' values", s.JobsFile, s.LeaseDuration, err)
	}
}

// The table in the manual is the one that the program prints.
func TestDocumentationListsEverySetting(t *testing.T) {
	const path = "../docs/configuration.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, doc := range config.Usage() {
		def := doc.Default
		if def == "" {
			def = "–"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", doc.Variable, strings.ReplaceAll(doc.Type, "|", `\|`), def, doc.Meaning)
	}
	rows := regexp.MustCompile("(?m)(^\\| `LEASECRON_[A-Z_]+` \\|.*\n)+")
	golden(t, path, []byte(rows.ReplaceAllLiteralString(string(text), table.String())))
}
