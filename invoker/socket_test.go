package invoker_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasecron/leasecron/invoker"
	"github.com/leasecron/leasecron/test/app"
)

// socketPath is a path that is short enough for a socket, which those of t.TempDir may not be.
func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lc") //nolint:usetesting // its path is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "app.sock")
}

func TestUnixSocket(t *testing.T) {
	target := startApp(t, app.Options{Address: socketPath(t), Raw: true})
	other := startApp(t, app.Options{Address: socketPath(t)})
	client := newClient(t, invoker.Options{})
	for range 3 { // the last two over the connection of the first
		var q ask
		checkOutcome(t, invoke(client, q.on(attempt(target.URL()+"/jobs/report?full=1"))), succeeded, "")
		if asked, started := q.counts(); asked != 1 || started != 1 {
			t.Errorf("MayStart asked %d times, Started told %d times, want 1 and 1", asked, started)
		}
		checkOutcome(t, invoke(client, attempt(other.URL()+"/x")), succeeded, "")
	}
	calls := target.Calls()
	if len(calls) != 3 || len(other.Calls()) != 3 {
		t.Fatalf("%d and %d requests arrived, want 3 at each socket", len(calls), len(other.Calls()))
	}
	if calls[0].Path != "/jobs/report?full=1" || !strings.Contains(calls[0].Raw, "\r\nHost: localhost\r\n") {
		t.Errorf("path %s of:\n%s", calls[0].Path, calls[0].Raw)
	}
	q := ask{answers: []error{errLeaseOver}}
	checkOutcome(t, invoke(client, q.on(attempt(target.URL()+"/"))), refused, "lease is over")
}

func TestUnixSocketThatCannotBeReached(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	listener, err := net.Listen("unix", path+"2")
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = listener.Close() // leaves a socket that nobody listens at
	tests := map[string]struct{ url, message string }{
		"missing":             {"unix://" + path + ":/", "no socket at " + path + ": is the app up, and its folder mounted into both containers?"},
		"nobody listens":      {"unix://" + path + "2:/", "connection refused by the socket " + path + "2"},
		"not a socket at all": {"unix:///dev/null:/", "/dev/null is a file, not a socket: check the path in the job's target"},
		"a folder":            {"unix://" + filepath.Dir(path) + ":/", filepath.Dir(path) + " is a folder, not a socket"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := attempt(tt.url)
			a.Timeout = 300 * time.Millisecond
			got := invoke(newClient(t, invoker.Options{}), a)
			checkOutcome(t, got, unreached, tt.message)
		})
	}
}

// An app that opens its socket a little late costs no run.
func TestUnixSocketThatComesLate(t *testing.T) {
	t.Parallel()
	path := socketPath(t)
	late := make(chan *app.App, 1)
	time.AfterFunc(300*time.Millisecond, func() {
		target, err := app.Start(app.Options{Address: path})
		if err != nil {
			t.Error(err)
		}
		late <- target
	})
	checkOutcome(t, invoke(newClient(t, invoker.Options{}), attempt("unix://"+path+":/")), succeeded, "")
	target := <-late
	defer target.Close()
	checkOnceEach(t, target.Calls(), 1)
}

func TestUnixSocketThatIsNone(t *testing.T) {
	for _, url := range []string{"unix:run/app.sock", "unix://run/app.sock:/", "unix:///run/../app.sock:/", "unix:///run/app.sock:jobs", "unix:///run/app.sock:/%zz"} {
		checkOutcome(t, invoke(newClient(t, invoker.Options{}), attempt(url)), forbidden, "target ")
	}
	// The form in which a socket is kept within cannot come from outside.
	checkOutcome(t, invoke(newClient(t, invoker.Options{AllowedHosts: []string{"2f72"}}), attempt("http://unix@2f72/")), forbidden, "credentials")
}

func TestProbeOfAUnixSocket(t *testing.T) {
	target := startApp(t, app.Options{Address: socketPath(t)})
	target.Script("/health", app.Status(200))
	h2c := startApp(t, app.Options{H2C: true})
	for name, o := range map[string]invoker.ProbeOptions{
		"by a connection":           {Target: target.URL()},
		"by its health URL":         {HealthURL: target.URL() + "/health"},
		"HTTP/2: by a connection":   {Target: h2c.URL()},
		"HTTP/2: by its health URL": {HealthURL: h2c.URL() + "/health"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := invoker.NewProbe(o)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { _ = p.Run(ctx) })
			eventually(t, "the app to be reachable", p.Reachable)
			cancel()
			wg.Wait()
		})
	}
	missing, err := invoker.NewProbe(invoker.ProbeOptions{Target: "unix://" + socketPath(t) + ":"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = missing.Run(ctx) })
	eventually(t, "the reason", func() bool { return strings.Contains(missing.Err().Error(), "no socket at ") })
	cancel()
	wg.Wait()
}
