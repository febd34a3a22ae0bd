package api

import (
	"errors"
	"net/http"

	"github.com/leasecron/leasecron/api/problem"
	"github.com/leasecron/leasecron/engine/run"
)

// How many requests of a kind may be under way at once on a listener. Together they leave room among
// its [maxConnections] for what is answered from memory: probes, the leader, metrics, a drain's begin.
const (
	maxUrgent   = 96 // that an app must get through, lest it lose its run or lease
	maxOrdinary = 80 // everything else
	maxAcquires = 32 // of the ordinary ones: acquisitions that wait
	maxDrains   = 16 // requests that wait for the end of a drain
)

// retryAfter is how long to stay away after a refusal, in seconds.
const retryAfter = "1"

// slots bound how many of something happen at once.
type slots chan struct{}

func (s slots) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s slots) give() { <-s }

// fromMemory are the routes that wait for nothing, or bound that themselves.
var fromMemory = map[string]bool{
	"GET /livez": true, "GET /readyz": true, "GET /healthz": true, "GET /leader": true, "GET /{$}": true,
	"GET /metrics": true, "GET /drain": true, "POST /drain": true,
}

// urgentRoutes ask the ledger, or the store of the leases, and cannot wait for others.
var urgentRoutes = map[string]bool{
	"POST /v1/runs/{id}/complete": true, "POST /v1/runs/{id}/fail": true, "POST /v1/runs/{id}/heartbeat": true,
	"POST /v1/leases/{name}/renew": true, "POST /v1/leases/{name}/release": true,
}

// admission bounds the requests that are under way on one listener. Beyond, they are refused at once:
// a queue would keep connections, and the work of clients that have gone.
type admission struct{ urgent, ordinary slots }

func newAdmission() *admission {
	return &admission{urgent: make(slots, maxUrgent), ordinary: make(slots, maxOrdinary)}
}

// serve answers a request of a route, or refuses it. One that brings a body is admitted when that has
// come: until then it is its client's turn.
func (a *admission) serve(mux *http.ServeMux, pattern string, w http.ResponseWriter, r *http.Request) {
	if fromMemory[pattern] {
		mux.ServeHTTP(w, r)
		return
	}
	kind := a.ordinary
	if urgentRoutes[pattern] {
		kind = a.urgent
	}
	taken := false
	defer func() {
		if taken {
			kind.give()
		}
	}()
	take := func() bool {
		taken = taken || kind.take()
		return taken
	}
	if body, ok := r.Body.(*trackedBody); ok && r.Method == http.MethodPost { // which all read theirs
		body.admit = take
	} else if !take() {
		w.Header().Set("Retry-After", retryAfter)
		writeProblem(w, r, busy(errBusy.Error()))
		return
	}
	mux.ServeHTTP(w, r)
}

// errBusy reports that there is too much to do already.
var errBusy = errors.New("too many requests at once")

// busy is the problem of a request that was refused because of others.
func busy(what string) *problem.Problem {
	return problem.New(run.CodeTooBusy, what+"; nothing was done, ask again in a second")
}
