package config

import (
	"cmp"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"
)

// SettingPrefix starts the name of every environment variable that is a setting.
const SettingPrefix = "LEASECRON_"

// Settings are what one sidecar process was told by its environment. They never change while it
// runs. The zero value is not usable; see [LoadSettings].
type Settings struct {
	App       string `env:"APP" default:"leasecron" kind:"name" doc:"whose jobs these are; the names of Lease and ledger derive from it"`
	Namespace string `env:"NAMESPACE" default:"POD_NAMESPACE, else the service account's, else default" kind:"name" doc:"Kubernetes namespace of jobs, Lease and ledger"`

	Election string `env:"ELECTION" default:"kubernetes in a cluster, else standalone" kind:"kubernetes | standalone" doc:"how the leader is found"`

	Ledger     string `env:"LEDGER" default:"kubernetes with that election, else file if LEDGER_FILE is set, else memory" kind:"kubernetes | file | memory" doc:"where decisions are kept"`
	LedgerFile string `env:"LEDGER_FILE" kind:"path" doc:"file of the file ledger"`

	JobsConfigMap string `env:"JOBS_CONFIGMAP" default:"<app>-jobs" kind:"name" doc:"ConfigMap that holds the job definitions"`
	JobsKey       string `env:"JOBS_KEY" envDefault:"jobs.yaml" kind:"key" doc:"key of the jobs document in that ConfigMap"`
	JobsFile      string `env:"JOBS_FILE" kind:"path" doc:"file with the job definitions; wins over the ConfigMap"`

	Listen    string `env:"LISTEN" envDefault:":9470" kind:"address" doc:"pod network: /leader, /metrics, /livez, /readyz"`
	APIListen string `env:"API_LISTEN" envDefault:"127.0.0.1:9471" kind:"address" doc:"loopback: API"`

	LeaseName     string        `env:"LEASE_NAME" default:"<app>-leasecron" kind:"name" doc:"name of the Lease that the replicas compete for"`
	LeaseDuration time.Duration `env:"LEASE_DURATION" envDefault:"15s" doc:"how long a silent leader stays leader; whole seconds, renewed every third of it"`
	RenewDeadline time.Duration `env:"RENEW_DEADLINE" default:"two thirds of LEASE_DURATION: 10s" doc:"how long a leader tries to renew before it steps down; less than LEASE_DURATION, more than a third of it"`

	NodeID      string        `env:"NODE_ID" default:"POD_NAME, else the host's name" kind:"name" doc:"name of this process in runs and logs; a random suffix is always added"`
	NodeTimeout time.Duration `env:"NODE_TIMEOUT" envDefault:"30s" doc:"how long a node may be silent before its runs count as lost"`

	MaxConcurrentRuns int           `env:"MAX_CONCURRENT_RUNS" envDefault:"32" doc:"slots of this instance: runs in flight at once"`
	MisfireGrace      time.Duration `env:"MISFIRE_GRACE" envDefault:"60s" doc:"default of triggers that say nothing: later than this is a misfire"`
	HistoryLimit      int           `env:"HISTORY_LIMIT" envDefault:"20" doc:"default of jobs that say nothing: finished runs kept per job"`

	Target        string        `env:"TARGET" envDefault:"http://127.0.0.1:8080" kind:"URL" doc:"base URL of the app beside this sidecar, for jobs and documents that name no target"`
	AppHealthURL  string        `env:"APP_HEALTH_URL" default:"a TCP connect to the default target" kind:"URL" doc:"answers 2xx while the app can take callbacks; this sidecar leads only then"`
	ShutdownGrace time.Duration `env:"SHUTDOWN_GRACE" envDefault:"25s" doc:"how long a drain or a stop waits for runs in flight; what is open then is lost, but not what a living app has accepted with 202"`

	AllowedHosts []string `env:"ALLOWED_HOSTS" kind:"list of hosts" doc:"hosts, besides loopback, that jobs may call; separated by commas"`

	SigningSecretFiles []string `env:"SIGNING_SECRET_FILES" kind:"list of paths" doc:"files with a whsec_ secret each: callbacks are signed by Standard Webhooks, with two files (during a rotation) twice; re-read when they change; separated by commas"`

	MaxClockSkew time.Duration `env:"MAX_CLOCK_SKEW" envDefault:"1m" doc:"a clock further off than this from the API server's must not decide"`

	Events      bool `env:"EVENTS" default:"true with the kubernetes election, else false" doc:"whether Kubernetes Events tell of changed leadership, failed and lost runs, missed instants and refused definitions"`
	LeaderLabel bool `env:"LEADER_LABEL" envDefault:"false" doc:"whether the leader's Pod is labelled leasecron.io/leader=true, so that a Service can select it; needs POD_NAME"`

	LogLevel  slog.Level `env:"LOG_LEVEL" envDefault:"info" kind:"debug | info | warn | error" doc:"least level that is logged"`
	LogFormat string     `env:"LOG_FORMAT" default:"json, text on a terminal" kind:"json | text" doc:"form of the log lines"`

	// Pod is what the downward API told; empty outside of a pod.
	Pod Pod `env:"-"`
}

// Pod describes the pod that the process runs in, from the variables POD_NAME, POD_UID,
// POD_NAMESPACE and POD_IP that the downward API fills.
type Pod struct {
	Name, UID, Namespace, IP string
}

// The values of the settings Election and Ledger.
const (
	ElectionKubernetes = "kubernetes"
	ElectionStandalone = "standalone"

	LedgerKubernetes = "kubernetes"
	LedgerFile       = "file"
	LedgerMemory     = "memory"
)

// LoadSettings reads the settings from environment variables, fills in the defaults and checks
// all of it. The error joins a [*SettingError] for each problem, in the order of the variables.
//
// A variable that is set but empty counts as not set. One that starts with [SettingPrefix] and is
// no setting is an error, except for the ones that Kubernetes injects for a Service whose name
// starts with "leasecron". The caller fills POD_NAMESPACE from the service account's namespace
// file, and HOSTNAME from the system, where they are missing.
func LoadSettings(environ map[string]string) (Settings, error) {
	environ = maps.Clone(environ)
	maps.DeleteFunc(environ, func(_, value string) bool { return value == "" })

	var s Settings
	problems := unknownSettings(environ)
	err := env.ParseWithOptions(&s, env.Options{Environment: environ, Prefix: SettingPrefix})
	bad, err := parseProblems(err, environ)
	if err != nil {
		return Settings{}, err
	}
	problems = append(problems, bad...)
	s.derive(environ)

	// A variable that could not be read holds no value that is worth checking.
	unread := make(map[string]bool)
	for _, p := range bad {
		unread[p.Name] = true
	}
	for _, p := range s.check() {
		if !unread[p.Name] {
			problems = append(problems, p)
		}
	}
	if len(problems) > 0 {
		return Settings{}, joinSettingErrors(problems)
	}
	return s, nil
}

// derive fills in the defaults that depend on other settings or on the pod.
func (s *Settings) derive(environ map[string]string) {
	s.Pod = Pod{
		Name: environ["POD_NAME"], UID: environ["POD_UID"],
		Namespace: environ["POD_NAMESPACE"], IP: environ["POD_IP"],
	}
	inCluster := environ["KUBERNETES_SERVICE_HOST"] != ""

	s.App = cmp.Or(s.App, "leasecron")
	s.Namespace = cmp.Or(s.Namespace, s.Pod.Namespace, "default")
	s.JobsConfigMap = cmp.Or(s.JobsConfigMap, s.jobsConfigMap())
	s.LeaseName = cmp.Or(s.LeaseName, s.leaseName())
	if s.RenewDeadline == 0 {
		s.RenewDeadline = s.LeaseDuration * 2 / 3
	}
	s.NodeID = cmp.Or(s.NodeID, s.Pod.Name, strings.ToLower(environ["HOSTNAME"]), "node")
	if s.Election == "" {
		s.Election = ElectionStandalone
		if inCluster {
			s.Election = ElectionKubernetes
		}
	}
	if environ[SettingPrefix+"EVENTS"] == "" {
		s.Events = s.Election == ElectionKubernetes
	}
	if s.Ledger == "" {
		switch {
		case s.Election == ElectionKubernetes:
			s.Ledger = LedgerKubernetes
		case s.LedgerFile != "":
			s.Ledger = LedgerFile
		default:
			s.Ledger = LedgerMemory
		}
	}
}

// The names that follow from APP where they are not set.
func (s *Settings) jobsConfigMap() string { return s.App + "-jobs" }
func (s *Settings) leaseName() string     { return s.App + "-leasecron" }

// parseProblems translates the errors of the env package, which name fields of the struct, into
// ones that name variables.
func parseProblems(err error, environ map[string]string) ([]*SettingError, error) {
	if err == nil {
		return nil, nil
	}
	var all env.AggregateError
	if !errors.As(err, &all) {
		return nil, err
	}
	var problems []*SettingError
	for _, one := range all.Errors {
		var parse env.ParseError
		if !errors.As(one, &parse) {
			return nil, one
		}
		field, ok := reflect.TypeFor[Settings]().FieldByName(parse.Name)
		if !ok {
			return nil, one
		}
		name := SettingPrefix + field.Tag.Get("env")
		problems = append(problems, &SettingError{
			Name: name, Value: environ[name], Err: errors.New("want " + wanted(field)),
		})
	}
	return problems, nil
}

// wanted describes what a value of the field looks like.
func wanted(field reflect.StructField) string {
	switch kind := settingKind(field); kind {
	case kindDuration:
		return "a duration such as 15s or 2m"
	case kindInteger:
		return "a whole number"
	case kindBoolean:
		return "true or false"
	default:
		return kind
	}
}
