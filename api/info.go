package api

import (
	"context"
	"net/http"
	"runtime"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/leasecron/leasecron/engine/plan"
)

// infoTimeout bounds how long a sidecar that does not lead looks for what the documents say; all else it knows.
const infoTimeout = time.Second

// Info says what answers.
type Info struct {
	Version   string `json:"version" doc:"The program's version."`
	Commit    string `json:"commit" doc:"The source that it was built from."`
	GoVersion string `json:"goVersion"`
	ZoneData  string `json:"zoneData" doc:"The version of the time zone data in the program."`
	Namespace string `json:"namespace"`
	App       string `json:"app" doc:"Whose jobs these are."`
	Node      string `json:"node" doc:"This sidecar."`
	Leader    Leader `json:"leader"`
	Paused    *Hold  `json:"pausedBy,omitempty" doc:"The pause of all jobs, where there is one and this sidecar could find out."`
	InFlight  int    `json:"inFlight" doc:"Runs of this sidecar whose request has not ended, or that the app has accepted."`
}

func (s *Server) registerInfo(api huma.API) {
	type output struct{ Body Info }
	huma.Register(api, operation("getInfo", http.MethodGet, "/v1/info", "What this sidecar is"),
		func(ctx context.Context, _ *struct{}) (*output, error) {
			status := s.opts.Engine.Status()
			var paused *Hold
			asking, cancel := context.WithTimeout(ctx, infoTimeout)
			defer cancel()
			if h, err := s.opts.Engine.Everything(asking); err == nil && h != nil {
				paused = &holdsOf([]plan.Hold{*h})[0]
			}
			return &output{Body: Info{
				Version: s.opts.Version, Commit: s.opts.Commit, GoVersion: runtime.Version(),
				ZoneData: s.opts.ZoneData, Namespace: s.opts.Namespace, App: s.opts.App,
				Node: status.Node, Leader: s.leaderNow(), Paused: paused, InFlight: status.InFlight,
			}}, nil
		})
}
