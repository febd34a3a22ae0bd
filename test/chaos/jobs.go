package chaos

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leasecron/leasecron/test/app"
)

// baseJobs have one job for each rule that a fault may break. Graces are short, so that misfires
// happen and what has fallen behind catches up within the run.
const baseJobs = `defaults: {historyLimit: 1000, misfire: {grace: 8s}}
jobs:
  - {name: rate, path: /rate, schedule: rate 1s, timeout: 5s, data: {edit: %d}}
  - {name: cron-1s, path: /cron-1s, schedule: "* * * * * *", timeout: 5s}
  - {name: cron-5s, path: /cron-5s, schedule: "*/5 * * * * *", timeout: 5s}
  - {name: serial, path: /serial, schedule: rate 2s, timeout: 4s}
  - {name: skip, path: /skip, schedule: rate 1s, overlap: skip, timeout: 5s}
  - {name: parallel, path: /parallel, schedule: rate 1s, overlap: parallel, maxParallel: 4, timeout: 5s}
  - {name: replace, path: /replace, schedule: rate 3s, overlap: replace, timeout: 10s}
  - {name: retry, path: /retry, schedule: rate 4s, timeout: 3s, retry: {maxRetries: 4, delay: 500ms, backoff: exponential, maxDelay: 2s, jitter: 0.2}}
  - {name: rerun, path: /rerun, schedule: rate 2s, timeout: 5s, recovery: rerun}
  - {name: delay, path: /delay, schedule: every 2s, timeout: 5s}
  - {name: catch-up, path: /catch-up, timeout: 5s, triggers: [{name: default, schedule: rate 1s, misfire: {policy: catch-up, grace: 2s, limit: 20}}]}
  - {name: late-skip, path: /late-skip, timeout: 5s, triggers: [{name: default, schedule: rate 1s, misfire: {policy: skip, grace: 3s}}]}
  - {name: jitter, path: /jitter, schedule: rate 2s jitter=900ms, timeout: 5s}
  - {name: manual, path: /manual, timeout: 5s, overlap: parallel}
`

// standing are the base jobs that have a schedule, and how often each is due.
var standing = map[string]time.Duration{
	"rate": time.Second, "cron-1s": time.Second, "cron-5s": 5 * time.Second, "serial": 2 * time.Second, "skip": time.Second,
	"parallel": time.Second, "replace": 3 * time.Second, "retry": 4 * time.Second, "rerun": 2 * time.Second, "delay": 2 * time.Second,
	"catch-up": time.Second, "late-skip": time.Second, "jitter": 2 * time.Second,
}

// document is what people edit during a run.
type document struct {
	mu    sync.Mutex
	edits int
	added map[string]time.Duration // jobs beside the base ones, with their interval
}

// text is the document as YAML.
func (d *document) text() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, baseJobs, d.edits)
	for _, name := range slices.Sorted(maps.Keys(d.added)) {
		fmt.Fprintf(&b, "  - {name: %s, path: /%s, schedule: rate %s, timeout: 5s}\n", name, name, d.added[name])
	}
	return b.String()
}

// invalid is the document with a mistake that names no schedule.
func (d *document) invalid() string {
	return d.text() + "  - {name: mistake, path: /mistake, scedule: rate 1s}\n"
}

// edit adds, removes or changes a job, and says what it did.
func (d *document) edit(number int) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.added == nil {
		d.added = make(map[string]time.Duration)
	}
	d.edits++
	name := fmt.Sprintf("added-%d", number%3)
	interval := time.Duration(1+number/3%3) * time.Second
	before, there := d.added[name]
	switch {
	case number%4 == 3:
		return fmt.Sprintf("change the data of rate to %d", d.edits)
	case !there:
		d.added[name] = interval
		return fmt.Sprintf("add %s, rate %s", name, interval)
	case before != interval:
		d.added[name] = interval
		return fmt.Sprintf("change %s from rate %s to %s", name, before, interval)
	default:
		delete(d.added, name)
		return "remove " + name
	}
}

// answer is how the apps take the callbacks of a job while faults last: some slowly, some badly.
// The same seed answers the same attempt of the same occurrence in the same way.
func answer(seed uint64, calm func() bool) app.Behavior {
	return func(a *app.App, w http.ResponseWriter, r *http.Request) {
		if calm() {
			app.Status(http.StatusOK)(a, w, r)
			return
		}
		dice := newDice(seed, r.Header.Get("Ce-Id"), r.Header.Get("Leasecron-Attempt"))
		behave := dice.behavior(strings.TrimPrefix(r.URL.Path, "/"))
		behave(a, w, r)
	}
}

func (d dice) behavior(job string) app.Behavior {
	ok := app.Status(http.StatusOK)
	if job != "retry" {
		switch d.upTo(100) {
		case 0:
			return app.Reset()
		case 1:
			return app.ReadThenClose()
		case 2:
			return app.Status(http.StatusInternalServerError)
		case 3:
			return app.Never()
		}
	}
	switch job {
	case "serial":
		return app.After(d.duration(300*time.Millisecond, 2200*time.Millisecond), ok)
	case "skip":
		return app.After(d.duration(200*time.Millisecond, 1600*time.Millisecond), ok)
	case "parallel":
		return app.After(d.duration(500*time.Millisecond, 2500*time.Millisecond), ok)
	case "replace":
		return app.After(d.duration(time.Second, 5*time.Second), ok)
	case "rerun", "manual", "delay":
		return app.After(d.duration(0, 1200*time.Millisecond), ok)
	case "retry":
		return []app.Behavior{
			ok, ok, ok, app.Status(http.StatusServiceUnavailable), app.Status(http.StatusServiceUnavailable),
			app.Status(http.StatusInternalServerError), app.Reset(), app.ReadThenClose(),
		}[d.upTo(8)]
	}
	return app.After(d.duration(0, 30*time.Millisecond), ok)
}
