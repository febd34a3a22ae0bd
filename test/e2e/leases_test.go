package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

type leaseAnswer struct {
	Status int `json:"-"`
	Text   string
	Token  int64
	Code   string
	Detail string
}

// lease asks a sidecar's API for something about a named lease.
func lease(t *testing.T, s *cluster.Sidecar, name, verb, body string) leaseAnswer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.APIAddress()+"/v1/leases/"+name+"/"+verb, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var a leaseAnswer
	if len(bytes.TrimSpace(text)) > 0 {
		if err := json.Unmarshal(text, &a); err != nil {
			t.Fatalf("%s %s: %v\n%s", verb, name, err, text)
		}
	}
	a.Status, a.Text = resp.StatusCode, string(text)
	return a
}

func (a leaseAnswer) want(t *testing.T, status int, words string) leaseAnswer {
	t.Helper()
	if a.Status != status || !strings.Contains(a.Text, words) {
		t.Fatalf("answer = %d, want %d with %q\n%s", a.Status, status, words, a.Text)
	}
	return a
}

func tokenBody(token int64) string {
	body, _ := json.Marshal(map[string]int64{"token": token})
	return string(body)
}

// Whole sidecars with the rights of the example: every replica gives leases, whoever leads; a sidecar
// that was killed and comes back in its pod lets the holder go on; a pod that is gone loses its
// lease to the next one who asks for long enough.
func TestNamedLeases(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), "jobs: []\n")
	settings := func(pod string) (cluster.Settings, func() *cluster.Sidecar) {
		a := cluster.StartApp(t)
		s := c.Settings(a, pod)
		s["!POD_NAME"], s["!POD_UID"] = pod, "uid-of-"+pod
		return s, func() *cluster.Sidecar { return cluster.Start(t, a, s) }
	}
	_, startHere := settings("shop-0")
	_, startThere := settings("shop-1")
	here, there := startHere(), startThere()

	const minute, brief = `{"holder":"worker-0","ttlSeconds":60}`, `{"holder":"worker-1","ttlSeconds":4,"waitSeconds":20}`
	mine := lease(t, here, "rebuild", "acquire", minute).want(t, 200, `"holder":"worker-0"`)
	lease(t, there, "rebuild", "acquire", minute).want(t, 409, "held by worker-0, taken through shop-0")
	lease(t, there, "rebuild", "renew", tokenBody(mine.Token)).want(t, 409, "in that pod only")

	here.Kill()
	here = startHere()
	lease(t, here, "rebuild", "renew", tokenBody(mine.Token)).want(t, 200, `"validMillis"`)
	lease(t, here, "rebuild", "release", tokenBody(mine.Token)).want(t, 204, "")

	mine = lease(t, here, "rebuild", "acquire", `{"holder":"worker-0","ttlSeconds":4}`).want(t, 200, "")
	here.Kill()
	next := lease(t, there, "rebuild", "acquire", brief).want(t, 200, `"holder":"worker-1"`)
	if next.Token <= mine.Token {
		t.Errorf("token %d after %d", next.Token, mine.Token)
	}

	// Without the object it says what to do, and the jobs go on.
	kubetest.DeleteConfigMap(t, c.ControlPlane.AdminConfig(), c.Namespace, "shop-leasecron-leases")
	lease(t, there, "rebuild", "renew", tokenBody(next.Token)).want(t, 503, "shop-leasecron-leases does not exist: ")
	if status, body := there.Get("/readyz?verbose"); status != 200 || !strings.Contains(body, "[!]leases: ") {
		t.Errorf("/readyz = %d\n%s", status, body)
	}
	// With a new one it goes on by itself, and tokens still grow.
	kubetest.ConfigMap(t, c.ControlPlane.AdminConfig(), c.Namespace, "shop-leasecron-leases", nil)
	lease(t, there, "rebuild", "renew", tokenBody(next.Token)).want(t, 409, "nobody holds it")
	if last := lease(t, there, "rebuild", "acquire", brief).want(t, 200, ""); last.Token <= next.Token {
		t.Errorf("token %d after %d and a new object", last.Token, next.Token)
	}
}

// Without a cluster leases live where the ledger does: in a file they survive a restart, and so does
// the holder's right.
func TestNamedLeasesInAFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	jobs := filepath.Join(dir, "jobs.yaml")
	if err := os.WriteFile(jobs, []byte("jobs: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := cluster.StartApp(t)
	settings := cluster.Settings{
		"ELECTION": "standalone", "JOBS_FILE": jobs, "LEDGER_FILE": filepath.Join(dir, "ledger.json"), "TARGET": a.URL(),
	}
	s := cluster.Start(t, a, settings)
	mine := lease(t, s, "rebuild", "acquire", `{"holder":"worker","ttlSeconds":60}`).want(t, 200, "")
	s.Stop(t, 15*time.Second)
	s = cluster.Start(t, a, settings)
	lease(t, s, "rebuild", "acquire", `{"holder":"worker","ttlSeconds":60}`).want(t, 409, "held by worker")
	lease(t, s, "rebuild", "renew", tokenBody(mine.Token)).want(t, 200, "")
	lease(t, s, "rebuild", "release", tokenBody(mine.Token)).want(t, 204, "")
	if next := lease(t, s, "rebuild", "acquire", `{"holder":"worker","ttlSeconds":60}`).want(t, 200, ""); next.Token <= mine.Token {
		t.Errorf("token %d after %d", next.Token, mine.Token)
	}
}

// A damaged file of leases is refused with an advice that works, and keeps no job from its work.
func TestADamagedFileOfLeases(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	jobs, ledgerFile := filepath.Join(dir, "jobs.yaml"), filepath.Join(dir, "ledger.json")
	if err := os.WriteFile(jobs, []byte("jobs: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := cluster.StartApp(t)
	settings := cluster.Settings{"ELECTION": "standalone", "JOBS_FILE": jobs, "LEDGER_FILE": ledgerFile, "TARGET": a.URL()}
	s := cluster.Start(t, a, settings)
	const request = `{"holder":"worker","ttlSeconds":60}`
	lease(t, s, "rebuild", "acquire", request).want(t, 200, "")
	if err := os.Truncate(ledgerFile+".leases", 0); err != nil {
		t.Fatal(err)
	}
	advice := ledgerFile + ".leases, is damaged: put back a copy, or move it away to start with no leases"
	lease(t, s, "rebuild", "acquire", request).want(t, 503, advice)
	s.Stop(t, 15*time.Second)
	s = cluster.Start(t, a, settings)
	lease(t, s, "rebuild", "acquire", request).want(t, 503, advice)
	if err := os.Rename(ledgerFile+".leases", ledgerFile+".damaged"); err != nil {
		t.Fatal(err)
	}
	lease(t, s, "rebuild", "acquire", request).want(t, 200, "")
}
