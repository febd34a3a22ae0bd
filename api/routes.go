package api

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/leasecron/leasecron/api/problem"
	"github.com/leasecron/leasecron/engine/run"
)

// podRoutes are what the pod network may ask for.
func (s *Server) podRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	s.commonRoutes(mux)
	// The old leader-elector sidecars answered here.
	mux.HandleFunc("GET /{$}", strictQuery(s.leader, "require"))
	if s.opts.Metrics != nil {
		mux.Handle("GET /metrics", promptly(promhttp.HandlerFor(s.opts.Metrics, promhttp.HandlerOpts{
			// A series that cannot be read must not hide the others.
			ErrorHandling: promhttp.ContinueOnError,
			// The compressors would keep a megabyte for each scrape, to save a hop
			// inside the cluster a few kilobytes.
			DisableCompression:  true,
			EnableOpenMetrics:   true,
			MaxRequestsInFlight: 4,
			CoalesceGather:      true,
		})))
	}
	return mux
}

// apiRoutes are what programs in the same pod may ask for.
func (s *Server) apiRoutes() *http.ServeMux {
	mux := http.NewServeMux()
	s.commonRoutes(mux)
	mux.HandleFunc("GET /{$}", index)
	s.v1(mux)
	return mux
}

// commonRoutes are served on both addresses.
func (s *Server) commonRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /leader", strictQuery(s.leader, "require"))
	mux.HandleFunc("GET /livez", probe("livez", s.opts.Live))
	mux.HandleFunc("GET /healthz", probe("healthz", s.opts.Live))
	mux.HandleFunc("GET /readyz", probe("readyz", s.opts.Ready))
}

func index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.WriteString(w, `leasecron

/v1/info            what this is
/v1/jobs            the jobs and their next instants
/v1/runs            recent runs
/v1/runs/ID/…       complete, fail, heartbeat: for the app, of what it has accepted
/v1/pause, resume   stop and go on, also for one job: /v1/jobs/NAME/pause
/v1/leases          named leases for the app's own singleton work
/v1/openapi.json    all of the API, as OpenAPI 3.1
/leader             who leads
/drain              how far the drain is; POST begins it
/livez /readyz      probes; ?verbose says more
`)
}

// leader answers who leads, always with 200; with require=self only the leader answers 200,
// so that a probe or a Service can choose it.
func (s *Server) leader(w http.ResponseWriter, r *http.Request) {
	leader := s.leaderNow()
	status := http.StatusOK
	if query := r.URL.Query(); query.Has("require") {
		if query.Get("require") != "self" {
			writeProblem(w, r, problem.New(run.CodeInvalidQuery, `query.require: the only value is "self"`))
			return
		}
		if !leader.IsLeader {
			status = http.StatusServiceUnavailable
		}
	}
	body, err := json.Marshal(leader)
	if err != nil { // a time outside of the years 0 to 9999
		writeProblem(w, r, problem.From(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

func (s *Server) leaderNow() Leader {
	leader := s.opts.Leadership.Leader()
	leader.AcquiredAt = leader.AcquiredAt.UTC()
	leader.RenewedAt = leader.RenewedAt.UTC()
	leader.SeenAt = leader.SeenAt.UTC()
	return leader
}
