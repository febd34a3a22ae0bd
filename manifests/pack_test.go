package manifests_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leasecron/leasecron/manifests"
)

func TestPackRefuses(t *testing.T) {
	shop := []byte(deployment("Deployment", "shop", app))
	tests := map[string]struct {
		o    manifests.PackOptions
		app  string
		want string
	}{
		"nobody's":                   {o: manifests.PackOptions{Namespace: "a"}, want: "say whose jobs these are with --app"},
		"nowhere":                    {app: "shop", want: "say which one with -n"},
		"a namespace that is none":   {o: manifests.PackOptions{Namespace: "a.b"}, app: "shop", want: "LEASECRON_NAMESPACE"},
		"another namespace":          {o: manifests.PackOptions{Namespace: "a", Workload: []byte(strings.Replace(string(shop), "name: shop\n", "name: shop\n  namespace: b\n", 1))}, want: "Deployment shop is in namespace b, not in a"},
		"a kind that is unknown":     {o: manifests.PackOptions{Namespace: "a", Kind: "Job"}, app: "shop", want: "want Deployment, StatefulSet or DaemonSet"},
		"an extra that is unknown":   {o: manifests.PackOptions{Namespace: "a", With: []string{"moon"}}, app: "shop", want: "--with moon: want any of dashboard, networkpolicy"},
		"a policy that shuts out":    {o: manifests.PackOptions{Namespace: "a", With: []string{"networkpolicy"}}, app: "shop", want: "would shut the app off"},
		"a name that is too long":    {o: manifests.PackOptions{Namespace: "a"}, app: strings.Repeat("a", 201), want: "LEASECRON_APP"},
		"jobs that are too large":    {o: manifests.PackOptions{Namespace: "a", Jobs: &manifests.Jobs{Keys: map[string][]byte{"jobs.yaml": make([]byte, 600<<10), "a.ics": make([]byte, 600<<10)}}}, app: "shop", want: "ConfigMap shop-jobs would have 1228814 bytes, more than the 1 MiB"},
		"a service account no name":  {o: manifests.PackOptions{Namespace: "a", Sidecar: manifests.Sidecar{ServiceAccount: "A"}}, app: "shop", want: `service account "A"`},
		"several, and none is named": {o: manifests.PackOptions{Namespace: "a", Workload: append(append(shop, "---\n"...), deployment("Deployment", "b", app)...)}, want: "the input has several workloads (shop, b): say which one with --name; each is an app of its own"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			tt.o.Image = image
			tt.o.App = tt.app
			_, err := manifests.Pack(tt.o)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Pack() = %v, want %q in it", err, tt.want)
			}
		})
	}
}

// One mistake is one line.
func TestPackSaysAMistakeOnce(t *testing.T) {
	for _, app := range []string{strings.Repeat("a", 250), strings.Repeat("a", 201), "Shop"} {
		o := manifests.PackOptions{Namespace: "a"}
		o.App, o.Image = app, image
		if _, err := manifests.Pack(o); err == nil || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), "LEASECRON_APP") {
			t.Errorf("Pack(%s) = %v", app, err)
		}
	}
}

// The Role follows the settings, and two apps share nothing.
func TestPackFollowsTheSettings(t *testing.T) {
	role := func(app string, settings map[string]string) string {
		o := manifests.PackOptions{Namespace: "a"}
		o.App, o.Settings = app, settings
		for _, object := range objects(t, pack(t, o).Stream()) {
			if object.Kind() == "Role" {
				return toJSON(t, object)
			}
		}
		t.Fatal("no Role")
		return ""
	}
	base := role("shop", nil)
	for name, tt := range map[string]struct {
		settings map[string]string
		has      string
		lacks    string
	}{
		"the base":      {has: `"events"`, lacks: `"pods"`},
		"no events":     {settings: map[string]string{"LEASECRON_EVENTS": "false"}, lacks: `"events"`},
		"a label":       {settings: map[string]string{"LEASECRON_LEADER_LABEL": "true"}, has: `"pods"`},
		"jobs in files": {settings: map[string]string{"LEASECRON_JOBS_FILE": "/jobs.yaml"}, lacks: "shop-jobs"},
		"another Lease": {settings: map[string]string{"LEASECRON_LEASE_NAME": "mine"}, has: `"mine"`, lacks: `"shop-leasecron"]`},
	} {
		got := role("shop", tt.settings)
		if !strings.Contains(got, tt.has) || tt.lacks != "" && strings.Contains(got, tt.lacks) {
			t.Errorf("%s: the Role is %s", name, got)
		}
	}
	if other := role("blog", nil); strings.Contains(other, "shop") || strings.ReplaceAll(other, "blog", "shop") != base {
		t.Errorf("the Role of another app is %s", other)
	}
}

// A name may be longer than a label; then the label is cut, tells long names apart, and is not on the Lease, where the sidecar would
// take it for another app's.
func TestPackLongNames(t *testing.T) {
	long := strings.Repeat("long.", 39) + "names" // 200, which is what a setting may be
	o := manifests.PackOptions{Namespace: strings.Repeat("n", 63), Jobs: jobs(t, jobsText)}
	o.App = long
	other := o
	other.App = strings.Repeat("long.", 39) + "nomes"
	labels := make(map[string]bool)
	for _, o := range []manifests.PackOptions{o, other} {
		for _, object := range objects(t, pack(t, o).Stream()) {
			if len(object.Name()) > 253 || !strings.HasPrefix(object.Name(), o.App) {
				t.Errorf("%s", object)
			}
			all, _ := dig(object, "metadata", "labels").(map[string]any)
			for key, value := range all {
				if len(fmt.Sprint(value)) > 63 {
					t.Errorf("%s: %s has %d characters", object.Kind(), key, len(fmt.Sprint(value)))
				}
			}
			if object.Kind() == "Lease" && (all["leasecron.io/app"] != nil || all["app.kubernetes.io/name"] != nil) {
				t.Errorf("the Lease is labelled %v", all)
			}
			if object.Kind() == "Role" {
				labels[fmt.Sprint(all["leasecron.io/app"])] = true
			}
		}
	}
	if len(labels) != 2 {
		t.Errorf("two long names have the labels %v", labels)
	}
}

// What is packed keeps nothing on a disk. R142.
func TestPackNeedsNoDisk(t *testing.T) {
	for name, stream := range workloads(t) {
		if name == "statefulset" {
			continue // which brings a claim of its own
		}
		o := manifests.PackOptions{Workload: stream, Jobs: jobs(t, jobsText), Namespace: namespaceOf(name)}
		if o.Namespace == "" {
			o.Namespace = "apps"
		}
		if text := string(pack(t, o).Stream()); strings.Contains(text, "PersistentVolume") || strings.Contains(text, "persistentVolume") {
			t.Errorf("%s: packed with a volume:\n%s", name, text)
		}
	}
}

func TestSettingNames(t *testing.T) {
	got, err := manifests.SettingNames(map[string]string{"lease_duration": "30s", "LEASECRON_EVENTS": "false", "OTEL_TRACES_SAMPLER": "always_on"})
	if err != nil || len(got) != 3 || got["OTEL_TRACES_SAMPLER"] != "always_on" || got["LEASECRON_LEASE_DURATION"] != "30s" || got["LEASECRON_EVENTS"] != "false" {
		t.Errorf("SettingNames() = %v, %v", got, err)
	}
	for _, name := range []string{"APP", "namespace", "ELECTION", "LEDGER", "LEASECRON_TARGET"} {
		if _, err := manifests.SettingNames(map[string]string{name: "x"}); err == nil || !strings.Contains(err.Error(), "is not to be set here") {
			t.Errorf("SettingNames(%s) = %v", name, err)
		}
	}
	if _, err := manifests.SettingNames(map[string]string{"EVENTS": "true", "LEASECRON_EVENTS": "false"}); err == nil {
		t.Error("one setting twice is taken")
	}
}

// Everything of one file goes into one namespace: that of the flag, or the workload's.
func TestPackPutsAllIntoTheNamespace(t *testing.T) {
	rest := "---\n# for the app\napiVersion: v1\nkind: Service\nmetadata:\n  name: shop # its name\nspec: {ports: [{port: 80}]}\n" +
		"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: shop}\n" +
		"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop, namespace: elsewhere}\n" +
		"---\napiVersion: example.org/v1\nkind: Thing\nmetadata: {name: shop}\n"
	named := strings.Replace(deployment("Deployment", "shop", app), "name: shop\n", "name: shop\n  namespace: prod\n", 1)
	for name, o := range map[string]manifests.PackOptions{
		"by flag":         {Namespace: "prod", Workload: []byte(deployment("Deployment", "shop", app) + rest)},
		"by the workload": {Workload: []byte(named + rest)},
	} {
		p := pack(t, o)
		got := map[string]string{}
		for _, object := range objects(t, p.Workload) {
			got[object.Kind()] = object.Namespace()
		}
		if want := "map[ClusterRole: ConfigMap:elsewhere Deployment:prod Service:prod Thing:]"; fmt.Sprint(got) != want || p.Namespace != "prod" {
			t.Errorf("%s: namespaces %v, want %s", name, got, want)
		}
		if warnings := strings.Join(p.Warnings, "\n"); !strings.Contains(warnings, "Thing shop names no namespace") || strings.Contains(warnings, "ClusterRole") {
			t.Errorf("%s: warnings %s", name, warnings)
		}
		if text := string(p.Workload); !strings.Contains(text, "# for the app\n") || !strings.Contains(text, "name: shop # its name\n") {
			t.Errorf("%s: comments are gone from\n%s", name, text)
		}
	}
	// Comments that cannot be kept are not lost without a word.
	p := pack(t, manifests.PackOptions{Namespace: "prod", Workload: []byte(deployment("Deployment", "shop", app) + "---\n{\"apiVersion\": \"v1\", \"kind\": \"Service\", \"metadata\": {\"name\": \"shop\"}}\n")})
	if warnings := strings.Join(p.Warnings, "\n"); strings.Count(warnings, "Service shop: written anew") != 1 {
		t.Errorf("warnings %s", warnings)
	}
}
