package config

import (
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/leasecron/leasecron/engine/schedule"
)

// lowestPriority bounds priorities on both sides of 0.
const lowestPriority = 1_000

// The words that fields with a closed set of values take.
var (
	methods         = []string{http.MethodPost, http.MethodPut, http.MethodPatch}
	overlaps        = []Overlap{OverlapSerial, OverlapSkip, OverlapParallel, OverlapReplace}
	recoveries      = []Recovery{RecoveryNone, RecoveryRerun, RecoveryReview}
	scopes          = []Scope{ScopeCluster, ScopeInstance}
	backoffs        = []Backoff{BackoffFixed, BackoffExponential}
	misfirePolicies = []MisfirePolicy{MisfireRunOnce, MisfireSkip, MisfireCatchUp}
)

// job reads one item of jobs.
func (d *decoder) job(n *node, at place, def defaults) Job {
	if m, ok := n.get("name"); ok && checkName(m.value.text) == nil {
		at.job = m.value.text
	}
	o := d.object(n, at)
	job := def.job
	job.Name = o.name()
	job.Description, _, _ = o.text("description", longestDescription)
	job.Path = d.path(o)
	d.policies(o, &job)
	job.Data = d.data(o)
	job.Paused, _ = o.boolean("paused")
	d.asynchronous(o, &job)
	if scope, ok := word(o, "scope", scopes...); ok {
		job.Scope = scope
	}
	if job.Scope == ScopeInstance {
		if o.has("recovery") && job.Recovery != RecoveryNone {
			d.fail(o.placeOf("recovery"), "has no meaning with scope instance, whose runs end with their replica (want no recovery)")
		}
		job.Recovery = RecoveryNone // and the defaults' does not apply
	}
	for _, key := range pendingKeys {
		if o.has(key) {
			o.take(key)
			d.fail(o.placeOf(key), "is not supported yet")
		}
	}
	def.timeZone = o.timeZone(def.timeZone)
	d.triggers(o, &job, def)
	o.done()
	return job
}

// policies reads the keys that a job and defaults share, over what job already holds.
func (d *decoder) policies(o *object, job *Job) {
	if raw, at, ok := o.text("target", longestURL); ok {
		target, err := checkTarget(raw, d.opts.AllowedHosts)
		if err != nil {
			d.fail(at, "%w", err)
		} else {
			job.Target = target
		}
	}
	if v, ok := word(o, "method", methods...); ok {
		job.Method = v
	}
	if v := d.headers(o); v != nil {
		job.Headers = v
	}
	if v, at, ok := o.text("bearerFile", longestPath); ok {
		if !path.IsAbs(v) || path.Clean(v) != v {
			d.fail(at, "%s is no absolute path (want one such as /var/run/secrets/app/token)", quote(v))
		} else {
			job.BearerFile = v
		}
	}
	if job.BearerFile != "" {
		for name := range job.Headers {
			if strings.EqualFold(name, "Authorization") {
				d.fail(o.at, "has both bearerFile and a header %s (want one)", name)
			}
		}
	}
	if v, ok := o.duration("timeout", time.Millisecond, longestWait); ok {
		job.Timeout = v
	}
	if v, ok := o.duration("deadline", time.Millisecond, longestWait); ok {
		job.Deadline = v
	}
	d.overlap(o, job)
	job.Retry = d.retry(o, job.Retry)
	if v, ok := word(o, "recovery", recoveries...); ok {
		job.Recovery = v
	}
	if v, ok := o.integer("historyLimit", 1, longestHistory); ok {
		job.HistoryLimit = v
	}
}

func (d *decoder) path(o *object) string {
	v, at, ok := o.text("path", longestURL)
	if !ok {
		if !o.has("path") && o.valid {
			d.fail(o.at, "path is missing (want one such as /jobs/report)")
		}
		return ""
	}
	u, err := url.ParseRequestURI(v)
	if err != nil || !strings.HasPrefix(v, "/") || strings.HasPrefix(v, "//") || u.Host != "" || strings.ContainsAny(v, "# \\") {
		d.fail(at, "%s is no path (want one such as /jobs/report)", quote(v))
		return ""
	}
	return v
}

func (d *decoder) headers(o *object) map[string]string {
	n, at, ok := o.take("headers")
	if !ok {
		return nil
	}
	ho := d.object(n, at)
	if len(ho.n.fields) > mostHeaders {
		d.fail(at, "has %d headers (want at most %d)", len(ho.n.fields), mostHeaders)
		return nil
	}
	headers := make(map[string]string)
	seen := make(map[string]string)
	for _, m := range ho.n.fields {
		hat := at.child(m)
		value, _, ok := ho.text(m.key, longestHeader)
		if !ok {
			continue
		}
		canonical := http.CanonicalHeaderKey(m.key)
		switch {
		case !headerName.MatchString(m.key):
			d.fail(hat, "%s is no header name", quote(m.key))
		case reservedHeader(canonical):
			d.fail(hat, "is set by the sidecar or the connection (want another header)")
		case seen[canonical] != "":
			d.fail(hat, "is the same header as %s", seen[canonical])
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			d.fail(hat, "holds a line break or another control character (want none)")
		default:
			seen[canonical] = m.key
			headers[canonical] = value
		}
	}
	return headers
}

// reservedHeader reports whether a header belongs to the callback's contract or to HTTP itself.
func reservedHeader(canonical string) bool {
	switch canonical {
	case "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Idempotency-Key",
		"Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Traceparent", "Tracestate", "Transfer-Encoding", "Upgrade":
		return true
	}
	for _, prefix := range []string{"Ce-", "Leasecron-", "Webhook-"} {
		if strings.HasPrefix(canonical, prefix) {
			return true
		}
	}
	return false
}

func (d *decoder) overlap(o *object, job *Job) {
	if v, ok := word(o, "overlap", overlaps...); ok {
		job.Overlap = v
	}
	v, ok := o.integer("maxParallel", 1, 1_000)
	switch {
	case ok && job.Overlap != OverlapParallel:
		d.fail(o.placeOf("maxParallel"), "has a meaning only with overlap: parallel")
	case ok:
		job.MaxParallel = v
	case job.Overlap != OverlapParallel:
		job.MaxParallel = 0 // the defaults' limit, for another policy than theirs
	}
}

// retry reads retry over base, key by key.
func (d *decoder) retry(o *object, base Retry) Retry {
	n, at, ok := o.take("retry")
	if !ok {
		return base
	}
	ro := d.object(n, at)
	r := base
	if v, ok := ro.integer("maxRetries", 0, 100); ok {
		r.MaxRetries = v
	} else if !ro.has("maxRetries") && base.MaxRetries == 0 && ro.valid {
		d.fail(at, "maxRetries is missing: without it nothing is retried (want 1 to 100)")
	}
	if v, ok := ro.duration("delay", time.Millisecond, longestWait); ok {
		r.Delay = v
	}
	if v, ok := word(ro, "backoff", backoffs...); ok {
		r.Backoff = v
	}
	if v, ok := ro.duration("maxDelay", time.Millisecond, longestWait); ok {
		r.MaxDelay = v
	}
	if v, ok := ro.number("jitter", 0, 1); ok {
		r.Jitter = v
	}
	if items, listAt, ok := ro.list("statuses", mostStatuses); ok {
		r.Statuses = nil
		for i, item := range items {
			if v, ok := d.integer(item, listAt.item(i, item), 300, 599); ok {
				r.Statuses = append(r.Statuses, v)
			}
		}
		if len(items) == 0 {
			d.fail(listAt, "is empty (want statuses such as 503, or no such key; maxRetries: 0 retries nothing)")
		}
	}
	if v, ok := ro.boolean("unknown"); ok {
		r.NoUnknown = !v
	}
	ro.done()
	if r.MaxRetries == 0 {
		return Retry{} // exactly one request: nothing else about it means anything
	}
	if r.Delay == 0 {
		r.Delay = time.Second
	}
	if r.Backoff == "" {
		r.Backoff = BackoffFixed
	}
	if r.MaxDelay != 0 && r.MaxDelay < r.Delay {
		d.fail(at, "maxDelay (%s) is less than delay (%s)", shortDuration(r.MaxDelay), shortDuration(r.Delay))
	}
	return r
}

// misfire reads misfire over base: a policy alone, or a mapping.
func (d *decoder) misfire(o *object, base Misfire) Misfire {
	n, at, ok := o.take("misfire")
	if !ok {
		return base.normal()
	}
	m := base
	if n.kind == kindString {
		if v, ok := decodeWord(d, n, at, "misfire", misfirePolicies...); ok {
			m.Policy = v
		}
		return m.inherit(base).normal()
	}
	mo := d.object(n, at)
	if v, ok := word(mo, "policy", misfirePolicies...); ok {
		m.Policy = v
	}
	m = m.inherit(base)
	if v, ok := mo.duration("grace", shortestGrace, longestGrace); ok {
		m.Grace = v
	}
	if v, ok := mo.integer("limit", 1, 100); ok {
		m.Limit = v
		if m.Policy != MisfireCatchUp {
			d.fail(mo.placeOf("limit"), "has a meaning only with policy: catch-up")
		}
	}
	if v, ok := mo.duration("window", time.Second, longestWait); ok {
		m.Window = v
	}
	if m.Window != 0 && m.Window < m.Grace {
		d.fail(at, "window (%s) is less than grace (%s)", shortDuration(m.Window), shortDuration(m.Grace))
	}
	mo.done()
	return m.normal()
}

// inherit drops what another policy's defaults said.
func (m Misfire) inherit(base Misfire) Misfire {
	if m.Policy != base.Policy {
		m.Window, m.Limit = 0, 0
	}
	return m
}

// normal fills in what the policy leaves open.
func (m Misfire) normal() Misfire {
	if m.Policy != MisfireCatchUp {
		m.Limit = 0
		return m
	}
	if m.Limit == 0 {
		m.Limit = 10
	}
	if m.Window == 0 {
		m.Window = 24 * time.Hour
	}
	return m
}

// triggers reads triggers, or schedule as the shorthand for one trigger named "default".
func (d *decoder) triggers(o *object, job *Job, def defaults) {
	key := func(trigger string) string { return job.Name + "/" + trigger }
	n, at, short := o.take("schedule")
	items, listAt, long := o.list("triggers", mostTriggers)
	if short && o.has("triggers") {
		d.fail(at, "stands beside triggers (want one of the two)")
		return
	}
	if short {
		s, ok := d.schedule(n, at, scheduleContext{key: key("default"), defaults: def, manual: true}, job)
		if ok && s.Kind != schedule.KindManual {
			job.Triggers = []Trigger{{Name: "default", Schedule: s, Priority: def.priority, Misfire: def.misfire.normal()}}
		}
		return
	}
	if !long {
		return
	}
	lines := make(map[string]int)
	for i, item := range items {
		at := listAt.item(i, item)
		to := d.object(item, at)
		t := Trigger{Priority: def.priority}
		t.Name = to.name()
		t.Description, _, _ = to.text("description", longestDescription)
		t.Data = d.data(to)
		if v, ok := to.integer("priority", -lowestPriority, lowestPriority); ok {
			t.Priority = v
		}
		t.Misfire = d.misfire(to, def.misfire)
		tdef := def
		tdef.timeZone = to.timeZone(def.timeZone)
		if n, at, ok := to.take("schedule"); ok {
			t.Schedule, _ = d.schedule(n, at, scheduleContext{key: key(t.Name), defaults: tdef}, job)
		} else if !to.has("schedule") && to.valid {
			d.fail(at, "schedule is missing")
		}
		to.done()
		if first, ok := lines[t.Name]; ok && t.Name != "" {
			d.fail(at.named(item), "duplicate name %s (first on line %d)", quote(t.Name), first)
		} else {
			lines[t.Name] = at.named(item).line
		}
		if merged, err := MergeData(job.Data, t.Data, nil); err != nil {
			d.fail(to.placeOf("data"), "%w", err)
		} else if len(merged) > LargestData {
			d.fail(to.placeOf("data"), "merged with the job's data has %d bytes (want at most %d)", len(merged), LargestData)
		}
		job.Triggers = append(job.Triggers, t)
	}
}

// data reads data as JSON, numbers as they were written.
func (d *decoder) data(o *object) json.RawMessage {
	n, at, ok := o.take("data")
	if !ok {
		return nil
	}
	if n.kind != kindMap {
		d.fail(at, "is %s (want a mapping)", shown(n))
		return nil
	}
	w := &dataWriter{d: d}
	if err := w.write(n, at); err != nil {
		d.fail(at, "%w", err)
		return nil
	}
	return json.RawMessage(w.out)
}
