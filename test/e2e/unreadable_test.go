package e2e_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/leasecron/leasecron/internal/kube/kubetest"
	"github.com/leasecron/leasecron/test/cluster"
	"github.com/leasecron/leasecron/test/controlplane"
)

// TestRecordsThatCannotBeReadAreTold: a run in a state that only a newer program knows, and a history and a
// catalog with damaged records, stop one job and no other, and are told.
func TestRecordsThatCannotBeReadAreTold(t *testing.T) {
	t.Parallel()
	c := cluster.New(t, controlplane.Shared(t), "jobs:\n- {name: good, path: /good, schedule: rate 1s}\n- {name: bad, path: /bad, schedule: rate 1s}\n")
	admin := c.ControlPlane.AdminConfig()
	for document, text := range map[string]string{
		"ledger":  `{"format":1,"writeId":"x","term":3,"watermark":"2026-01-01T00:00:00Z","runs":[{"id":"r1","key":"bad/default","state":"Paused"}]}`,
		"catalog": `{"format":1,"writeId":"x","term":3,"jobs":{"gone":{"firstSeen":7}}}`,
		"history": `{"format":1,"writeId":"x","jobs":{"good":{"runs":[{"id":7}]}}}`,
	} {
		patch := fmt.Sprintf(`{"data":{"ledger.json":%q}}`, text)
		if document != "ledger" { // the others are kept compressed
			var small bytes.Buffer
			z := gzip.NewWriter(&small)
			_, _ = z.Write([]byte(text))
			_ = z.Close()
			patch = fmt.Sprintf(`{"binaryData":{"%s.json.gz":"%s"}}`, document, base64.StdEncoding.EncodeToString(small.Bytes()))
		}
		kubetest.PatchConfigMap(t, admin, c.Namespace, "shop-leasecron-"+document, patch)
	}
	uid := addPod(t, c, "shop-0", nil)
	a := cluster.StartApp(t)
	settings := c.Settings(a, "shop-0")
	settings["!POD_NAME"], settings["!POD_UID"], settings["!POD_NAMESPACE"] = "shop-0", uid, c.Namespace
	s := cluster.Start(t, a, settings)
	cluster.Eventually(t, 20*time.Second, "the other job runs", func() bool { return len(cluster.Arrivals("good", a)) > 3 })
	if came := cluster.Arrivals("bad", a); len(came) > 0 {
		t.Errorf("%d callbacks of the job whose run cannot be read", len(came))
	}
	for _, document := range []string{"ledger", "catalog", "history"} {
		if got := s.Metric(`leasecron_unreadable_records{document="` + document + `"}`); got != "1" {
			t.Errorf("%s unreadable records of the %s, want 1", got, document)
		}
	}
	if got := s.Metric(`leasecron_job_error{job_name="bad"}`); got != "1" {
		t.Errorf("leasecron_job_error of it is %q, want 1", got)
	}
	cluster.Eventually(t, 15*time.Second, "an Event says so", func() bool {
		list, _ := eventsOf(t, c)
		return slices.Contains(list, "Lease RecordsUnreadable")
	})
}
