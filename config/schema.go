package config

import (
	"encoding/json"
	"fmt"

	"github.com/invopop/jsonschema"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
)

// SchemaID is where the published schema says that it lives.
const SchemaID = "https://leasecron.github.io/schema/jobs.schema.json"

// Schema returns the JSON Schema (draft 2020-12) of a jobs document, for editors. It knows every
// key, type and closed set of values; what one field means for another, and whether a cron
// expression, a zone or a calendar exists, only [Parse] can tell.
func Schema() ([]byte, error) {
	r := jsonschema.Reflector{
		ExpandedStruct: true,
		Anonymous:      true,
	}
	s := r.Reflect(&documentSpec{})
	s.ID = SchemaID
	s.Title = "leasecron jobs"
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the schema: %w", err)
	}
	return append(text, '\n'), nil
}

// The types below give the schema its shape. Nothing is ever decoded into them: the parser keeps
// the place of each value, which a struct cannot.

type documentSpec struct {
	Defaults  *defaultsSpec `json:"defaults,omitempty" jsonschema_description:"What jobs and triggers start from."`
	Calendars calendarSpecs `json:"calendars,omitempty" jsonschema_description:"Instants to leave out, by name."`
	Jobs      []jobSpec     `json:"jobs" jsonschema:"maxItems=10000" jsonschema_description:"What to call, and when."`
}

// policiesSpec are the keys that a job shares with defaults.
type policiesSpec struct {
	Target       string       `json:"target,omitempty" jsonschema:"minLength=1,maxLength=2048" jsonschema_description:"Base URL of the app: http, https or h2c (HTTP/2 without TLS) with a host that is loopback or listed in LEASECRON_ALLOWED_HOSTS, or unix:///run/app.sock. Default LEASECRON_TARGET."`
	Method       methodSpec   `json:"method,omitempty" jsonschema_description:"HTTP method of the callback. Default POST."`
	Headers      headersSpec  `json:"headers,omitempty" jsonschema_description:"Further headers of the callback."`
	BearerFile   string       `json:"bearerFile,omitempty" jsonschema:"pattern=^/,maxLength=4096" jsonschema_description:"File whose content is sent as a bearer token, read for each attempt."`
	TimeZone     string       `json:"timeZone,omitempty" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"IANA time zone of cron schedules that name none. Default UTC."`
	Timeout      durationSpec `json:"timeout,omitempty" jsonschema_description:"Of one attempt, up to 720h. Default 30s."`
	Deadline     durationSpec `json:"deadline,omitempty" jsonschema_description:"Of all attempts of an occurrence together, from the first start. Default none."`
	Overlap      overlapSpec  `json:"overlap,omitempty" jsonschema_description:"What happens when a job is due while it still runs. Default serial."`
	MaxParallel  int          `json:"maxParallel,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"With overlap parallel: runs at once. Default no limit."`
	Retry        *retrySpec   `json:"retry,omitempty" jsonschema_description:"How often and when a failed attempt is repeated. Default never."`
	Recovery     recoverySpec `json:"recovery,omitempty" jsonschema_description:"What happens to a run whose sidecar died. Default none."`
	HistoryLimit int          `json:"historyLimit,omitempty" jsonschema:"minimum=1,maximum=1000" jsonschema_description:"Finished runs that are kept. Default LEASECRON_HISTORY_LIMIT."`
}

type defaultsSpec struct {
	policiesSpec
	RequireTimeZone bool        `json:"requireTimeZone,omitempty" jsonschema_description:"Refuse cron schedules for which no time zone is named anywhere."`
	Priority        int         `json:"priority,omitempty" jsonschema:"minimum=-1000,maximum=1000" jsonschema_description:"Of triggers that say nothing; larger gets a slot first. Default 5."`
	Misfire         misfireSpec `json:"misfire,omitempty" jsonschema_description:"Of triggers that say nothing. Default run-once."`
}

type jobSpec struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty" jsonschema:"minLength=1,maxLength=1024"`
	Path        string `json:"path" jsonschema:"pattern=^/,maxLength=2048" jsonschema_description:"What is called, below target."`
	policiesSpec
	Data             dataSpec      `json:"data,omitempty" jsonschema_description:"Arrives in the body as data. At most 256 KiB as JSON."`
	Paused           bool          `json:"paused,omitempty" jsonschema_description:"Whether its instants wait."`
	Scope            scopeSpec     `json:"scope,omitempty" jsonschema_description:"Who runs it. Default cluster: one replica."`
	Async            bool          `json:"async,omitempty" jsonschema_description:"Whether the app may answer 202 and say later how the run ended."`
	HeartbeatTimeout durationSpec  `json:"heartbeatTimeout,omitempty" jsonschema_description:"With async: how long the app may be silent between the 202 and the end, from 1s. Default: as long as it likes."`
	Schedule         scheduleSpec  `json:"schedule,omitempty" jsonschema_description:"Shorthand for one trigger named default."`
	Triggers         []triggerSpec `json:"triggers,omitempty" jsonschema:"maxItems=100" jsonschema_description:"When it is due. Without any it runs only when asked for."`
}

// JSONSchemaExtend adds what tags cannot say.
func (jobSpec) JSONSchemaExtend(s *jsonschema.Schema) {
	named(s)
	s.Not = &jsonschema.Schema{Required: []string{"schedule", "triggers"}}
	s.DependentRequired = map[string][]string{"heartbeatTimeout": {"async"}}
}

type triggerSpec struct {
	Name        string       `json:"name"`
	Description string       `json:"description,omitempty" jsonschema:"minLength=1,maxLength=1024"`
	Schedule    scheduleSpec `json:"schedule"`
	TimeZone    string       `json:"timeZone,omitempty" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"IANA time zone, unless the schedule names one."`
	Data        dataSpec     `json:"data,omitempty" jsonschema_description:"Merged over the job's, key by key."`
	Priority    int          `json:"priority,omitempty" jsonschema:"minimum=-1000,maximum=1000" jsonschema_description:"Larger gets a slot first. Default 5."`
	Misfire     misfireSpec  `json:"misfire,omitempty" jsonschema_description:"What becomes of instants that could not be decided in time. Default run-once."`
}

// JSONSchemaExtend adds what tags cannot say.
func (triggerSpec) JSONSchemaExtend(s *jsonschema.Schema) { named(s) }

// named gives the property name its grammar.
func named(s *jsonschema.Schema) {
	if p, ok := s.Properties.Get("name"); ok {
		p.Pattern = run.NamePattern
	}
}

type retrySpec struct {
	MaxRetries int          `json:"maxRetries,omitempty" jsonschema:"minimum=0,maximum=100"`
	Delay      durationSpec `json:"delay,omitempty" jsonschema_description:"Before the first retry. Default 1s."`
	Backoff    backoffSpec  `json:"backoff,omitempty" jsonschema_description:"Whether each delay is the same or twice the one before. Default fixed."`
	MaxDelay   durationSpec `json:"maxDelay,omitempty" jsonschema_description:"No delay is longer, whatever the app asks for."`
	Jitter     float64      `json:"jitter,omitempty" jsonschema:"minimum=0,maximum=1" jsonschema_description:"Part of the delay by which it varies up or down."`
	Statuses   []int        `json:"statuses,omitempty" jsonschema:"minItems=1,maxItems=100" jsonschema_description:"HTTP statuses that are retried. Default 408, 425, 429, and 5xx except 501."`
	Unknown    bool         `json:"unknown,omitempty" jsonschema_description:"Whether attempts with an unknown outcome are retried too, such as timeouts. Default true."`
}

// JSONSchemaExtend adds what tags cannot say.
func (retrySpec) JSONSchemaExtend(s *jsonschema.Schema) {
	if p, ok := s.Properties.Get("statuses"); ok {
		p.Items.Minimum, p.Items.Maximum = "300", "599"
	}
}

type misfireMapping struct {
	Policy misfirePolicySpec `json:"policy,omitempty"`
	Grace  durationSpec      `json:"grace,omitempty" jsonschema_description:"Later than this is a misfire, 1s to 60s. Default LEASECRON_MISFIRE_GRACE."`
	Window durationSpec      `json:"window,omitempty" jsonschema_description:"Older than this is skipped. Default 24h for catch-up, else unlimited."`
	Limit  int               `json:"limit,omitempty" jsonschema:"minimum=1,maximum=100" jsonschema_description:"With catch-up: runs a second. Default 10."`
}

type scheduleMapping struct {
	Cron      string       `json:"cron,omitempty" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"5 fields, or 6 with seconds first, or 7 with the year last."`
	Rate      string       `json:"rate,omitempty" jsonschema:"minLength=1" jsonschema_description:"Fixed rate, such as 60s."`
	Every     string       `json:"every,omitempty" jsonschema:"minLength=1" jsonschema_description:"Fixed delay from the end of one run to the next, such as 10m."`
	Once      string       `json:"once,omitempty" jsonschema:"minLength=1" jsonschema_description:"One instant, such as 2026-11-01T00:00:00Z."`
	TimeZone  string       `json:"timeZone,omitempty" jsonschema:"minLength=1,maxLength=64"`
	Start     string       `json:"start,omitempty" jsonschema:"minLength=1" jsonschema_description:"No instant is earlier."`
	End       string       `json:"end,omitempty" jsonschema:"minLength=1" jsonschema_description:"Every instant is earlier."`
	Calendar  string       `json:"calendar,omitempty" jsonschema_description:"Calendar of the instants to leave out."`
	Ambiguous string       `json:"ambiguous,omitempty" jsonschema:"enum=auto,enum=first,enum=both" jsonschema_description:"A wall time that a clock change repeats. Default auto."`
	Gap       string       `json:"gap,omitempty" jsonschema:"enum=skip,enum=next" jsonschema_description:"A wall time that a clock change skips. Default skip."`
	Jitter    durationSpec `json:"jitter,omitempty" jsonschema_description:"Upper bound of a delay of the sending."`
	Count     int          `json:"count,omitempty" jsonschema:"minimum=1,maximum=1000000000" jsonschema_description:"With every: how often it fires."`
}

// JSONSchemaExtend asks for exactly one kind.
func (scheduleMapping) JSONSchemaExtend(s *jsonschema.Schema) {
	s.OneOf = exactlyOne([]string{"cron"}, []string{"rate"}, []string{"every"}, []string{"once"})
	if p, ok := s.Properties.Get("calendar"); ok {
		p.Pattern = run.NamePattern
	}
}

type calendarMapping struct {
	Dates    []string `json:"dates,omitempty" jsonschema:"maxItems=10000" jsonschema_description:"Whole days, as 2026-12-25."`
	Weekdays []string `json:"weekdays,omitempty" jsonschema:"maxItems=7" jsonschema_description:"Whole days, as SAT. None: SAT and SUN."`
	From     string   `json:"from,omitempty" jsonschema:"minLength=1" jsonschema_description:"Begin of a daily span, as 22:00, inclusive."`
	To       string   `json:"to,omitempty" jsonschema:"minLength=1" jsonschema_description:"Its end, exclusive. Before from: it crosses midnight."`
	Cron     string   `json:"cron,omitempty" jsonschema:"minLength=1,maxLength=256" jsonschema_description:"The seconds that match."`
	ICS      string   `json:"ics,omitempty" jsonschema:"minLength=1" jsonschema_description:"Another key of the ConfigMap, or a file beside this one, in iCalendar form."`
	Any      []string `json:"any,omitempty" jsonschema_description:"Other calendars: what one of them leaves out."`
	TimeZone string   `json:"timeZone,omitempty" jsonschema:"minLength=1,maxLength=64" jsonschema_description:"IANA time zone. Default the trigger's."`
}

// JSONSchemaExtend asks for exactly one kind.
func (calendarMapping) JSONSchemaExtend(s *jsonschema.Schema) {
	s.OneOf = exactlyOne([]string{"dates"}, []string{"weekdays"}, []string{"from", "to"}, []string{"cron"}, []string{"ics"}, []string{"any"})
}

func exactlyOne(kinds ...[]string) []*jsonschema.Schema {
	var all []*jsonschema.Schema
	for _, keys := range kinds {
		all = append(all, &jsonschema.Schema{Required: keys})
	}
	return all
}

type calendarSpecs map[string]calendarMapping

// JSONSchemaExtend gives the names their grammar.
func (calendarSpecs) JSONSchemaExtend(s *jsonschema.Schema) {
	s.PropertyNames = &jsonschema.Schema{Pattern: run.NamePattern}
	limit := uint64(schedule.MaxCalendars)
	s.MaxProperties = &limit
}

type headersSpec map[string]string

// JSONSchema is that of text by header name.
func (headersSpec) JSONSchema() *jsonschema.Schema {
	least, most, headers := uint64(1), uint64(longestHeader), uint64(mostHeaders)
	return &jsonschema.Schema{
		Type: "object", MaxProperties: &headers,
		PropertyNames:        &jsonschema.Schema{Pattern: headerName.String()},
		AdditionalProperties: &jsonschema.Schema{Type: "string", MinLength: &least, MaxLength: &most},
	}
}

type dataSpec string

// JSONSchema is that of any mapping.
func (dataSpec) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "object"} }

type durationSpec string

// JSONSchema is that of a duration as Go writes it.
func (durationSpec) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{
		Type:     "string",
		Pattern:  `^\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`,
		Examples: []any{"30s", "5m", "2h"},
	}
}

type scheduleSpec string

// JSONSchema is that of the text form or the mapping.
func (scheduleSpec) JSONSchema() *jsonschema.Schema {
	return either(&jsonschema.Schema{
		Type: "string", Examples: []any{"0 3 * * *", "rate 60s", "every 10m", "once 2026-11-01T00:00:00Z", "manual"},
	}, scheduleMapping{})
}

type misfireSpec string

// JSONSchema is that of a policy or the mapping.
func (misfireSpec) JSONSchema() *jsonschema.Schema {
	return either(misfirePolicySpec("").JSONSchema(), misfireMapping{})
}

// either is a text or a mapping, which is written in place: a custom schema cannot refer to others.
func either(text *jsonschema.Schema, mapping any) *jsonschema.Schema {
	r := jsonschema.Reflector{DoNotReference: true, Anonymous: true}
	object := r.Reflect(mapping)
	object.Version = ""
	return &jsonschema.Schema{OneOf: []*jsonschema.Schema{text, object}}
}

type (
	methodSpec        string
	overlapSpec       string
	recoverySpec      string
	scopeSpec         string
	backoffSpec       string
	misfirePolicySpec string
)

// JSONSchema lists the words.
func (methodSpec) JSONSchema() *jsonschema.Schema { return oneWord("method", methods) }

// JSONSchema lists the words.
func (overlapSpec) JSONSchema() *jsonschema.Schema { return oneWord("overlap", overlaps) }

// JSONSchema lists the words.
func (recoverySpec) JSONSchema() *jsonschema.Schema { return oneWord("recovery", recoveries) }

// JSONSchema lists the words.
func (scopeSpec) JSONSchema() *jsonschema.Schema { return oneWord("scope", scopes) }

// JSONSchema lists the words.
func (backoffSpec) JSONSchema() *jsonschema.Schema { return oneWord("backoff", backoffs) }

// JSONSchema lists the words.
func (misfirePolicySpec) JSONSchema() *jsonschema.Schema { return oneWord("policy", misfirePolicies) }

func oneWord[T ~string](key string, words []T) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, w := range supported(key, words) {
		s.Enum = append(s.Enum, w)
	}
	return s
}
