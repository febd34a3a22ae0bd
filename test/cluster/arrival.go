package cluster

import (
	"net/http"
	"slices"
	"time"

	"github.com/leasecron/leasecron/test/app"
)

// Arrival is one callback, wherever it arrived.
type Arrival struct {
	app.Call
	App *app.App
}

// Lateness is how long after its instant the callback arrived.
func (a Arrival) Lateness() time.Duration { return a.At.Sub(*a.Body.ScheduledAt) }

// Arrivals lists the callbacks of one job, or of all where job is empty, in the order in which
// they came.
func Arrivals(job string, apps ...*app.App) []Arrival {
	var out []Arrival
	for _, a := range apps {
		for _, c := range a.Calls() {
			if c.Method == http.MethodPost && c.Body.ScheduledAt != nil && (job == "" || c.Body.Job == job) {
				out = append(out, Arrival{c, a})
			}
		}
	}
	slices.SortFunc(out, func(a, b Arrival) int { return a.At.Compare(b.At) })
	return out
}
