package election_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/leasecron/leasecron/election/electiontest"
	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/faultproxy"
)

// lines is a log that a test reads.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// With a Role written by hand on the one named Lease, each of whose verbs is missing in turn: what can
// go on does, and what is missing is said. All other tests have get, update, list and watch; nothing
// needs patch or create.
func TestWithoutOneOfTheRights(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		missing []string
		leads   bool
		says    string // in the log, and where it does not lead in Status
	}{
		"get":            {[]string{"get"}, true, ""}, // until a write has no answer
		"list":           {[]string{"list"}, true, "the Lease may not be watched"},
		"watch":          {[]string{"watch"}, true, "the Lease may not be watched"},
		"list and watch": {[]string{"list", "watch"}, true, "the Lease may not be watched"},
		"update":         {[]string{"update"}, false, "may not be used"},
		"all":            {[]string{"get", "update", "list", "watch"}, false, "may not be used"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			role := leastRole()
			role.Verbs = slices.DeleteFunc(role.Verbs, func(verb string) bool { return slices.Contains(tt.missing, verb) })
			if len(role.Verbs) == 0 {
				role.Resources, role.Verbs = []string{"configmaps"}, []string{"get"}
			}
			a := openWithoutLease(t, role)
			kubetest.Lease(t, a.admin, a.ns, leaseName, nil)
			p := faultproxy.Start(t, a.cfg)
			log := new(lines)
			opts := a.options(t, "pod-a", p.Config())
			opts.Logger = slog.New(slog.NewTextHandler(log, nil))
			c := a.Start(t, elector(t, opts))

			said := func() bool {
				text := log.String()
				return tt.says == "" || strings.Contains(text, tt.says) && strings.Contains(text, "forbidden") &&
					strings.Contains(text, "grant get, update, list and watch on this one Lease")
			}
			if !tt.leads {
				electiontest.Until(t, "Status says what is missing", func() bool {
					return strings.Contains(c.Elector.Status().Waiting, tt.says) && said()
				})
				electiontest.Quiet(t, interval, c)
				if !strings.Contains(log.String(), "level=ERROR") {
					t.Errorf("the log says nothing of it as an error:\n%s", log)
				}
				return
			}
			term := c.Lead(t)
			renewed(t, c)
			electiontest.Until(t, "the log says what is missing", said)
			if err := term.Lease.Check(); err != nil {
				t.Errorf("Check after a renewal = %v", err)
			}
			if strings.Contains(log.String(), "level=ERROR") {
				t.Errorf("the log has an error though it leads:\n%s", log)
			}
			next := a.candidate(t, "pod-b")
			c.Stop(t)
			next.Lead(t)
			for _, verb := range []string{"create", "patch", "delete", "deletecollection"} {
				if n := p.Count(faultproxy.Verb(verb)); n > 0 {
					t.Errorf("%d requests to %s the Lease", n, verb)
				}
			}
		})
	}
}
