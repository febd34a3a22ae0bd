package chaos

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
	"github.com/leasecron/leasecron/test/faultproxy"
)

// exitWithin is how long a process may take to end after SIGTERM: its grace of 10 s and what a
// busy machine adds.
const exitWithin = 30 * time.Second

// sidecar is one pod's place: an app, a proxy before the API server, and one process after another.
type sidecar struct {
	name     string
	app      *app.App
	proxy    *faultproxy.Proxy
	settings cluster.Settings
	logs     string      // folder for the logs of its processes
	unwell   atomic.Bool // the app is up and says that it cannot work

	appMu   sync.Mutex
	appDown int // how many faults have the app down

	mu      sync.Mutex
	process *cluster.Sidecar // nil while there is none
	busy    bool             // a fault has its hands on the process
	lives   int
	stopped []span // when it stood still
	// unordered are ends that nobody asked for, unclean those with another exit code than 0 after
	// SIGTERM, or with none in time.
	unordered, unclean []string
}

// span is a stretch of time; its end is zero while it lasts.
type span struct{ From, Until time.Time }

func (s span) overlaps(from, until time.Time) bool {
	return s.From.Before(until) && (s.Until.IsZero() || s.Until.After(from))
}

func newSidecar(t testing.TB, c *cluster.Cluster, name, logs string, behavior app.Behavior) *sidecar {
	t.Helper()
	address, err := app.FreeAddress() // one that is still free after the app was down
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.Start(app.Options{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	s := &sidecar{name: name, app: a, logs: logs, proxy: faultproxy.Start(t, c.Access)}
	s.app.Script("*", behavior)
	s.app.Script("/health", func(a *app.App, w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		if s.unwell.Load() {
			status = http.StatusServiceUnavailable
		}
		app.Status(status)(a, w, r)
	})
	s.settings = c.Settings(s.app, name)
	s.settings["!KUBECONFIG"] = controlplane.WriteKubeconfig(t, s.proxy.ConfigFor(c.Access), c.Namespace)
	t.Cleanup(s.end)
	return s
}

// start starts the next process, if there is none.
func (s *sidecar) start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process != nil {
		return nil
	}
	p, err := cluster.Launch(s.app, s.settings)
	if err != nil {
		return err
	}
	s.process = p
	s.lives++
	life := s.lives
	go func() {
		<-p.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keepLog(p, life)
		if s.process == p {
			s.process = nil
			code, _ := p.ExitCode(0)
			s.unordered = append(s.unordered, fmt.Sprintf("%s, process %d, exit code %d", s.name, life, code))
		}
	}()
	return nil
}

// keepLog writes the log of a process to a file. The caller holds mu.
func (s *sidecar) keepLog(p *cluster.Sidecar, life int) {
	path := filepath.Join(s.logs, fmt.Sprintf("%s.%d.log", s.name, life))
	_ = os.WriteFile(path, []byte(p.Log()), 0o600) // evidence is welcome, and no reason to fail
}

// claim gives a fault the process to itself; nil where there is none, or another fault has it.
// release gives it back.
func (s *sidecar) claim() *cluster.Sidecar {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy || s.process == nil {
		return nil
	}
	s.busy = true
	return s.process
}

func (s *sidecar) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
}

// forget says that the end of the process is wanted.
func (s *sidecar) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = nil
}

// terminate ends a claimed process as Kubernetes does, and waits until it has ended.
func (s *sidecar) terminate(p *cluster.Sidecar) {
	s.forget()
	_ = p.Signal(syscall.SIGTERM) // it may have ended by itself, which is noted elsewhere
	code, err := p.ExitCode(exitWithin)
	if err != nil {
		p.Kill()
	}
	if err != nil || code != 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.unclean = append(s.unclean, fmt.Sprintf("%s, process %d, exit code %d, %v", s.name, s.lives, code, err))
	}
}

// takeApp takes the app down, and returns how many connections that broke. returnApp brings it back, unless
// another fault still has it down.
func (s *sidecar) takeApp() (broken int) {
	s.appMu.Lock()
	defer s.appMu.Unlock()
	s.appDown++
	return s.app.Down()
}

func (s *sidecar) returnApp() error {
	s.appMu.Lock()
	defer s.appMu.Unlock()
	if s.appDown--; s.appDown > 0 {
		return nil
	}
	return s.app.Up()
}

// stop freezes a claimed process, cont lets it go on. It fails where the process has ended by itself,
// which is noted elsewhere.
func (s *sidecar) stop(p *cluster.Sidecar) error {
	s.mu.Lock()
	s.stopped = append(s.stopped, span{From: time.Now()})
	s.mu.Unlock()
	return p.Signal(syscall.SIGSTOP)
}

func (s *sidecar) cont(p *cluster.Sidecar) {
	_ = p.Signal(syscall.SIGCONT) // it may have ended
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped[len(s.stopped)-1].Until = time.Now()
}

// end kills what is left, at the end of the run.
func (s *sidecar) end() {
	s.mu.Lock()
	p := s.process
	s.process = nil
	s.mu.Unlock()
	if p != nil {
		p.Kill()
	}
}

// running is the current process, or nil.
func (s *sidecar) running() *cluster.Sidecar {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}
