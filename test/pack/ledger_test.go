package pack_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

const tickJobs = "jobs:\n- {name: tick, path: /tick, schedule: rate 1s}\n"

// kept is what must survive of all that the sidecars write.
func kept(t *testing.T, k *kubectl) map[string]any {
	t.Helper()
	out := make(map[string]any)
	list, _ := decode(t, k.run(nil, "get", "configmaps,leases", "-o", "json"))["items"].([]any)
	for _, item := range list {
		o, _ := item.(map[string]any)
		meta, _ := o["metadata"].(map[string]any)
		name, _ := meta["name"].(string)
		if !strings.HasPrefix(name, "shop-leasecron") {
			continue
		}
		annotations, _ := meta["annotations"].(map[string]any)
		out[fmt.Sprint(o["kind"], " ", name)] = map[string]any{
			"data": o["data"], "binaryData": o["binaryData"], "spec": o["spec"], "uid": meta["uid"], "term": annotations["leasecron.io/term"],
		}
	}
	if len(out) != 5 {
		t.Fatalf("%d objects of the sidecars, want the Lease and four ConfigMaps", len(out))
	}
	return out
}

// installed is a namespace in which the packed example was applied as a person would, client-side or server-side.
func installed(t *testing.T, how ...string) (*cluster.Cluster, *kubectl, []byte) {
	t.Helper()
	cp := controlplane.Shared(t)
	c := &cluster.Cluster{ControlPlane: cp, Namespace: cp.Namespace(t)}
	k := newKubectl(t, cp.AdminConfig(), c.Namespace)
	stream := packed(t, "--deployment", exampleWorkload, "-n", c.Namespace)
	k.run(stream, append(append([]string{"apply"}, how...), "-f", "-")...)
	c.Access = cp.TokenFor(t, c.Namespace, cluster.AppName)
	c.Kubeconfig = controlplane.WriteKubeconfig(t, c.Access, c.Namespace)
	c.SetJobs(t, tickJobs)
	return c, k, stream
}

// TestApplyingAgainKeepsTheLedger, however it was applied first and is applied again.
func TestApplyingAgainKeepsTheLedger(t *testing.T) {
	t.Parallel()
	for name, how := range map[string][]string{"client-side": nil, "server-side": {"--server-side"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, k, stream := installed(t, how...)
			s := c.Start(t, "shop-0")
			if _, err := s.App.WaitFor(3, 30*time.Second); err != nil {
				t.Fatal(err)
			}
			s.Stop(t, 15*time.Second)
			before := kept(t, k)
			for _, again := range [][]string{{"apply"}, {"apply", "--server-side", "--force-conflicts"}} {
				// Of the whole; SetJobs has edited the jobs, which this takes back.
				if _, stderr, err := k.try(stream, append(again, "-f", "-")...); err != nil {
					t.Fatalf("%v: %v\n%s", again, err, stderr)
				}
				if diff := cmp.Diff(before, kept(t, k)); diff != "" {
					t.Fatalf("kubectl %v changes what the sidecars wrote (-before +after):\n%s", again, diff)
				}
			}
		})
	}
}

// TestReplaceIsNoticed: kubectl replace empties the ledger. The term is mirrored in the Lease, so planning goes on with a
// higher one, and an error says what happened. DESIGN 5, rule 7.
func TestReplaceIsNoticed(t *testing.T) {
	t.Parallel()
	c, k, _ := installed(t, "--server-side")
	dir := t.TempDir()
	packed(t, "--deployment", exampleWorkload, "-n", c.Namespace, "--out", dir)
	s := c.Start(t, "shop-0")
	calls, err := s.App.WaitFor(3, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	term := *calls[len(calls)-1].Body.Term
	k.run(nil, "replace", "-f", filepath.Join(dir, "component", "ledger.yaml"))
	s.WaitLog(t, "the ledger was empty although a leader has written it before: planning starts now, what was in flight is unknown", 30*time.Second)
	cluster.Eventually(t, 30*time.Second, "a callback with a higher term", func() bool {
		calls := s.App.Calls()
		last := calls[len(calls)-1].Body.Term
		return last != nil && *last > term
	})
	greatest := int64(0)
	for _, call := range s.App.Calls() {
		if got := call.Body.Term; got != nil {
			if *got < greatest {
				t.Errorf("a callback has the term %d after %d", *got, greatest)
			}
			greatest = max(greatest, *got)
		}
	}
}
