package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/schedule"
)

// Document is a jobs document: checked, with every default filled in.
type Document struct {
	Jobs []Job // ordered by name
	// Target is the document's default target; empty where it names none, so that each sidecar
	// calls the app beside it as its own settings say.
	Target    string
	Calendars map[string]schedule.CalendarSpec
}

// Options are what a document is judged by besides its own text.
type Options struct {
	// AllowedHosts are the hosts, in lower case, that targets may name besides loopback.
	AllowedHosts []string
	// HistoryLimit is the default of jobs that say nothing; 0 means 20.
	HistoryLimit int
	// MisfireGrace is the default of triggers that say nothing; 0 means 60 s.
	MisfireGrace time.Duration
	// Now is the time by which a schedule counts as over. The zero time warns of none.
	Now time.Time
	// Resolve returns what an `ics:` key names: another key of the same ConfigMap, or a file
	// beside the document. Nil: there is nothing to be found.
	Resolve func(key string) ([]byte, error)
}

// OptionsOf returns the options that a process with these settings reads documents by.
func OptionsOf(s Settings) Options {
	return Options{AllowedHosts: s.AllowedHosts, HistoryLimit: s.HistoryLimit, MisfireGrace: s.MisfireGrace}
}

// The bounds of a document's parts.
const (
	mostJobs      = 10_000
	mostTriggers  = 100    // of a job
	allTriggers   = 50_000 // of a document
	mostCalendars = schedule.MaxCalendars
	mostHeaders   = 64
	mostStatuses  = 100

	longestDescription = 1_024
	longestURL         = 2_048
	longestICS         = 256 << 10
	longestHeader      = 8_192
	longestWait        = 30 * 24 * time.Hour
	longestHistory     = 1_000
	shortestGrace      = time.Second
	longestGrace       = 60 * time.Second
)

// Parse reads a jobs document, YAML or JSON. name is what errors call it.
//
// The error joins one [*FieldError] for each problem, ordered by position; the document is then
// refused whole. The warnings are worth showing to whoever wrote the document.
func Parse(name string, data []byte, opts Options) (Document, []Warning, error) {
	root, problems := parseTree(name, data)
	if root == nil {
		return Document{}, nil, joinFieldErrors(problems)
	}
	if opts.HistoryLimit == 0 {
		opts.HistoryLimit = 20
	}
	if opts.MisfireGrace == 0 {
		opts.MisfireGrace = longestGrace
	}
	d := &decoder{file: name, opts: opts, problems: problems}
	doc := d.document(root)
	if err := joinFieldErrors(d.problems); err != nil {
		return Document{}, nil, err
	}
	return doc, d.warnings, nil
}

func (d *decoder) document(root *node) Document {
	at := place{line: root.line, col: root.col}
	if root.kind == kindNull {
		d.fail(at, "the document is empty (want `jobs:`; write `jobs: []` for none)")
		return Document{}
	}
	o := d.object(root, at)
	if d.manifest(o) {
		return Document{}
	}
	def := d.defaults(o)
	def.calendars = d.calendars(o)

	items, listAt, _ := o.list("jobs", mostJobs)
	if !o.has("jobs") && o.valid {
		d.fail(at, "jobs is missing (write `jobs: []` for none)")
	}
	jobs := make([]Job, 0, len(items))
	triggers := 0
	lines := make(map[string]int)
	for i, item := range items {
		at := listAt.item(i, item)
		job := d.job(item, at, def)
		if triggers += len(job.Triggers); triggers > allTriggers {
			d.fail(at, "the document has more than %d triggers (want at most that)", allTriggers)
			break
		}
		if job.Name == "" {
			continue
		}
		if first, ok := lines[job.Name]; ok {
			d.fail(at.named(item), "duplicate name %s (first on line %d)", quote(job.Name), first)
			continue
		}
		lines[job.Name] = at.named(item).line
		jobs = append(jobs, job)
	}
	o.done()
	slices.SortFunc(jobs, func(a, b Job) int { return strings.Compare(a.Name, b.Name) })
	return Document{Jobs: jobs, Target: def.job.Target, Calendars: def.calendars.specs}
}

// named is the place of an item's name.
func (p place) named(n *node) place {
	if m, ok := n.get("name"); ok {
		return p.child(m)
	}
	return p
}

// name reads the name of a job or a trigger, empty where it has none that is valid.
func (o *object) name() string {
	if !o.has("name") {
		o.take("name")
		if o.valid {
			o.d.fail(o.at, "name is missing")
		}
		return ""
	}
	name, at, ok := o.text("name", longestURL)
	if !ok {
		return ""
	}
	if err := checkName(name); err != nil {
		o.d.fail(at, "%w", err)
		return ""
	}
	return name
}

func checkName(name string) error {
	if !run.ValidName(name) {
		return fmt.Errorf("%s is no name (want 1 to 128 of a-z, 0-9, dot, dash and underscore, starting with a letter or digit)", quote(name))
	}
	return nil
}

// defaults are what jobs and triggers start from.
type defaults struct {
	job             Job // only the fields of [decoder.policies] are filled
	timeZone        string
	requireTimeZone bool
	priority        int
	misfire         Misfire
	calendars       calendars
}

func (d *decoder) defaults(o *object) defaults {
	def := defaults{
		job: Job{
			Method: "POST", Timeout: defaultTimeout,
			Overlap: OverlapSerial, Recovery: RecoveryNone, Scope: ScopeCluster,
			HistoryLimit: d.opts.HistoryLimit,
		},
		priority: 5,
		misfire:  Misfire{Policy: MisfireRunOnce, Grace: d.opts.MisfireGrace},
	}
	n, at, ok := o.take("defaults")
	if !ok {
		return def
	}
	do := d.object(n, at)
	d.policies(do, &def.job)
	def.timeZone = do.timeZone("")
	def.requireTimeZone, _ = do.boolean("requireTimeZone")
	if v, ok := do.integer("priority", -lowestPriority, lowestPriority); ok {
		def.priority = v
	}
	def.misfire = d.misfire(do, def.misfire)
	do.done()
	return def
}

var headerName = regexp.MustCompile("^[-!#$%&'*+.^_`|~0-9A-Za-z]{1,128}$")
