package e2e_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasecron/leasecron/test/app"
	"github.com/leasecron/leasecron/test/cluster"
)

// TestTargets: the ways to say where the app is, through the whole sidecar: settings, document, probe
// and callback. A proxy in the environment is for others.
func TestTargets(t *testing.T) {
	t.Parallel()
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the proxy was asked for %s %s", r.Method, r.URL)
	}))
	defer proxy.Close()
	dir, err := os.MkdirTemp("", "lc") //nolint:usetesting // the path of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	start := func(o app.Options) *app.App {
		a, err := app.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(a.Close)
		return a
	}
	socket, six, h2c := start(app.Options{Address: filepath.Join(dir, "app.sock")}), start(app.Options{Address: "[::1]:0"}), start(app.Options{H2C: true})
	var overTLS atomic.Int64
	secure := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { overTLS.Add(1) }))
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}

	jobs := filepath.Join(dir, "jobs.yaml")
	text := "jobs:\n" +
		"- {name: socket, path: /a?b=c, schedule: rate 1s}\n" +
		"- {name: based, path: /a, target: 'unix://" + socket.Address() + ":/base/', schedule: rate 1s}\n" +
		"- {name: six, path: /a, target: '" + six.URL() + "', schedule: rate 1s}\n" +
		"- {name: h2c, path: /a, target: '" + h2c.URL() + "', schedule: rate 1s}\n" +
		"- {name: tls, path: /a, target: '" + secure.URL + "', schedule: rate 1s}\n"
	if err := os.WriteFile(jobs, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := cluster.Start(t, socket, cluster.Settings{
		"ELECTION": "standalone", "JOBS_FILE": jobs, "TARGET": "unix://" + socket.Address(),
		"APP_HEALTH_URL": "unix://" + socket.Address() + ":/healthz", "!SSL_CERT_FILE": ca,
		"!HTTP_PROXY": proxy.URL, "!HTTPS_PROXY": proxy.URL, "!http_proxy": proxy.URL, "!https_proxy": proxy.URL,
	})
	cluster.Eventually(t, 15*time.Second, "a callback of each job", func() bool {
		paths := map[string]bool{}
		for _, c := range socket.Calls() {
			paths[c.Path] = true
		}
		return paths["/a?b=c"] && paths["/base/a"] && paths["/healthz"] && len(six.Calls()) > 0 && len(h2c.Calls()) > 0 && overTLS.Load() > 0
	})
	s.Stop(t, 10*time.Second)
	if n := strings.Count(s.Log(), "run failed"); n > 0 {
		t.Errorf("%d runs failed:\n%s", n, s.Log())
	}
}
