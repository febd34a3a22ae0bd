package manifests_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/leasecron/leasecron/manifests"
)

// deployment is a workload with a pod spec, in YAML at the column of its keys.
func deployment(kind, name, spec string) string {
	group := "apps/v1"
	switch kind {
	case "Rollout":
		group = "argoproj.io/v1alpha1"
	case "Job", "CronJob":
		group = "batch/v1"
	}
	return "apiVersion: " + group + "\nkind: " + kind + "\nmetadata:\n  name: " + name + "\nspec:\n  template:\n    spec:\n" + indented(6, spec)
}

func indented(columns int, text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(strings.Repeat(" ", columns) + line)
	}
	return b.String()
}

const app = "containers:\n- name: app\n  image: app:1\n  ports: [{containerPort: 8080}]\n"

func TestInjectRefuses(t *testing.T) {
	tests := map[string]struct {
		stream string
		change func(*manifests.InjectOptions)
		want   string // part of the error
	}{
		"nothing":                     {stream: "# only words\n", want: "no workload in the input"},
		"no YAML":                     {stream: "a: [\n", want: "the input: document 1: yaml: line "},
		"a key twice":                 {stream: deployment("Deployment", "a", app+"containers: []\n"), want: `key "containers" already set`},
		"a list":                      {stream: "- a\n", want: "the input: document 1: is no mapping"},
		"a CronJob":                   {stream: deployment("CronJob", "a", app), want: "CronJob a cannot have the sidecar: its pods come and go"},
		"a Pod":                       {stream: "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec:\n" + indented(2, app), want: "inject into the Deployment"},
		"a Deployment of another API": {stream: strings.Replace(deployment("Deployment", "a", app), "apps/v1", "example.org/v1", 1), want: "no workload in the input"},
		"no template":                 {stream: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {}\n", want: "Deployment a has no spec.template.spec"},
		"no containers":               {stream: deployment("Deployment", "a", "volumes: []\n"), want: "Deployment a has no containers"},
		"a Rollout of a Deployment": {
			stream: "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {name: a}\nspec: {workloadRef: {kind: Deployment, name: b}}\n",
			want:   "takes its pods from another object (spec.workloadRef)",
		},
		"two workloads, none named": {stream: deployment("Deployment", "a", app) + "---\n" + deployment("Deployment", "b", app), want: "several workloads (a, b): say which one with --name"},
		"one that is not there":     {stream: deployment("Deployment", "a", app), change: func(o *manifests.InjectOptions) { o.Names = []string{"b"} }, want: `no workload "b" in the input (it has a)`},
		"one app for all": {
			stream: deployment("Deployment", "a", app) + "---\n" + deployment("Deployment", "b", app),
			change: func(o *manifests.InjectOptions) { o.All, o.App = true, "shop" }, want: "would share one Lease",
		},
		"two of one name": {
			stream: deployment("Deployment", "a", app) + "---\n" + deployment("StatefulSet", "a", app),
			change: func(o *manifests.InjectOptions) { o.All = true }, want: "would share one Lease as app a",
		},
		"a container of that name":      {stream: deployment("Deployment", "a", app+"- {name: leasecron, image: other}\n"), want: `containers has a container "leasecron" that is not the sidecar`},
		"no container of that name":     {stream: deployment("Deployment", "a", app), change: func(o *manifests.InjectOptions) { o.Beside = "web" }, want: `has no container "web" (it has app)`},
		"no image":                      {stream: deployment("Deployment", "a", app), change: func(o *manifests.InjectOptions) { o.Image = "" }, want: "no image is named"},
		"a setting that does not exist": {stream: deployment("Deployment", "a", app), change: set("LEASECRON_LEASE_DURATOIN", "3s"), want: "LEASECRON_LEASE_DURATOIN"},
		"a setting that is wrong":       {stream: deployment("Deployment", "a", app), change: set("LEASECRON_LEASE_DURATION", "3"), want: "LEASECRON_LEASE_DURATION"},
		"a target that is not allowed":  {stream: deployment("Deployment", "a", app), change: func(o *manifests.InjectOptions) { o.Target = "http://example.com" }, want: "LEASECRON_TARGET"},
		"an app that is no name":        {stream: deployment("Deployment", "a", app), change: func(o *manifests.InjectOptions) { o.App = "Shop" }, want: "LEASECRON_APP"},
		"a grace that does not fit (R180)": {
			stream: deployment("Deployment", "a", "terminationGracePeriodSeconds: 30\n"+app), change: set("LEASECRON_SHUTDOWN_GRACE", "26s"),
			want: "does not fit into terminationGracePeriodSeconds: 30: want that at least 5s longer",
		},
		"a port of the app's": {stream: deployment("Deployment", "a", app), change: set("LEASECRON_LISTEN", ":8080"), want: "LEASECRON_LISTEN=:8080: port 8080 is taken, by container app: set another port, as in --set LISTEN=:8082"},
		"a plain container in a Job (R177)": {
			stream: deployment("Job", "a", app), change: func(o *manifests.InjectOptions) { o.Plain = true }, want: "would keep the pod from ending",
		},
		"too much": {stream: strings.Repeat("#", manifests.LargestStream+1), want: "want at most"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			o := manifests.InjectOptions{Sidecar: manifests.Sidecar{Image: image}}
			if tt.change != nil {
				tt.change(&o)
			}
			_, err := manifests.Inject([]byte(tt.stream), o)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Inject() = %v, want %q in it", err, tt.want)
			}
		})
	}
}

func set(name, value string) func(*manifests.InjectOptions) {
	return func(o *manifests.InjectOptions) { o.Settings = map[string]string{name: value} }
}

// the returns the sidecar's container as JSON, in which parts can be looked for.
func the(t *testing.T, out *manifests.InjectResult) (container, pod string) {
	t.Helper()
	spec := dig(out.Workloads[0].After, "spec", "template", "spec")
	for _, list := range []string{"initContainers", "containers"} {
		all, _ := dig(spec, list).([]any)
		for _, c := range all {
			if dig(c, "name") == manifests.Container {
				container = toJSON(t, c)
			}
		}
	}
	return container, toJSON(t, spec)
}

func dig(tree any, path ...string) any {
	for _, key := range path {
		if o, ok := tree.(manifests.Object); ok {
			tree = map[string]any(o)
		}
		m, _ := tree.(map[string]any)
		tree = m[key]
	}
	return tree
}

func toJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestInjectDecides(t *testing.T) {
	env := func(name, value string) string { return fmt.Sprintf(`{"name":%q,"value":%q}`, name, value) }
	tests := map[string]struct {
		kind     string
		spec     string
		change   func(*manifests.InjectOptions)
		has      []string // in the container
		lacks    []string
		pod      []string // in the pod
		warnings []string
	}{
		"the target is the app's port":           {spec: app, has: []string{env("LEASECRON_TARGET", "http://127.0.0.1:8080")}},
		"the port called http, not the first":    {spec: "containers: [{name: app, ports: [{containerPort: 1}, {name: http-api, containerPort: 2}]}]\n", has: []string{env("LEASECRON_TARGET", "http://127.0.0.1:2")}},
		"of several ports the first, with doubt": {spec: "containers: [{name: app, ports: [{containerPort: 1, protocol: UDP}, {containerPort: 2}, {containerPort: 3}]}]\n", has: []string{env("LEASECRON_TARGET", "http://127.0.0.1:2")}, warnings: []string{"port 2 of container app; if that is wrong"}},
		"no port at all":                         {spec: "containers: [{name: app}]\n", lacks: []string{"LEASECRON_TARGET"}, warnings: []string{"declares no port"}},
		"a target by flag":                       {spec: "containers: [{name: app}]\n", change: func(o *manifests.InjectOptions) { o.Target = "http://127.0.0.1:9" }, has: []string{env("LEASECRON_TARGET", "http://127.0.0.1:9")}},
		"a container by flag":                    {spec: app + "- {name: web, ports: [{containerPort: 7}]}\n", change: func(o *manifests.InjectOptions) { o.Beside = "web" }, has: []string{env("LEASECRON_TARGET", "http://127.0.0.1:7")}},
		"the only container with a port":         {spec: "containers:\n- {name: logger}\n- {name: web, ports: [{containerPort: 3000}]}\n", has: []string{env("LEASECRON_TARGET", "http://127.0.0.1:3000")}},
		"also where it is the first":             {spec: app + "- {name: web}\n", has: []string{env("LEASECRON_TARGET", "http://127.0.0.1:8080")}},
		"several with ports, with doubt":         {spec: "containers:\n- {name: logger}\n- {name: app, ports: [{containerPort: 8080}]}\n- {name: web, ports: [{containerPort: 3000}]}\n", has: []string{env("LEASECRON_TARGET", "http://127.0.0.1:8080")}, warnings: []string{"of container app; if that is wrong"}},

		"a port that the app has is left to it":       {spec: "containers: [{name: app, ports: [{containerPort: 9470}]}]\n", has: []string{env("LEASECRON_LISTEN", ":9472"), `"containerPort":9472`, env("LEASECRON_TARGET", "http://127.0.0.1:9470")}, lacks: []string{"API_LISTEN"}, warnings: []string{"port :9470 is taken, by container app: the sidecar listens on :9472 instead"}},
		"so is one where it only listens":             {spec: "containers: [{name: app}]\n", change: func(o *manifests.InjectOptions) { o.Target = "http://127.0.0.1:9471" }, has: []string{env("LEASECRON_API_LISTEN", "127.0.0.1:9473")}, warnings: []string{"taken, by the app, which listens at http://127.0.0.1:9471"}},
		"one of another sidecar too":                  {spec: app + "initContainers:\n- {name: proxy, restartPolicy: Always, ports: [{containerPort: 9470}]}\n- {name: once, ports: [{containerPort: 9472}]}\n", has: []string{env("LEASECRON_LISTEN", ":9472")}, warnings: []string{"by container proxy"}},
		"nor do its own two share one":                {spec: app, change: set("LEASECRON_LISTEN", ":9471"), has: []string{env("LEASECRON_LISTEN", ":9471"), env("LEASECRON_API_LISTEN", "127.0.0.1:9473")}, warnings: []string{"by the sidecar's LEASECRON_LISTEN"}},
		"the same number of another protocol is free": {spec: app + "- {name: dns, ports: [{containerPort: 9470, protocol: UDP}]}\n", lacks: []string{"LEASECRON_LISTEN"}},

		"grace 30 fits as it is (R180)":  {spec: "terminationGracePeriodSeconds: 30\n" + app, lacks: []string{"SHUTDOWN_GRACE"}},
		"no grace named is grace 30":     {spec: app, lacks: []string{"SHUTDOWN_GRACE"}},
		"grace 5 leaves 2 s (R180)":      {spec: "terminationGracePeriodSeconds: 5\n" + app, has: []string{env("LEASECRON_SHUTDOWN_GRACE", "2s")}, warnings: []string{"terminationGracePeriodSeconds is 5"}},
		"grace 0 leaves the least":       {spec: "terminationGracePeriodSeconds: 0\n" + app, has: []string{env("LEASECRON_SHUTDOWN_GRACE", "1s")}, warnings: []string{"terminationGracePeriodSeconds is 0"}},
		"a longer grace by setting fits": {spec: "terminationGracePeriodSeconds: 120\n" + app, change: set("LEASECRON_SHUTDOWN_GRACE", "100s"), has: []string{env("LEASECRON_SHUTDOWN_GRACE", "100s")}},

		"no readiness of its own (R182)":                  {spec: app, has: []string{"livenessProbe"}, lacks: []string{"readinessProbe", "startupProbe"}},
		"readiness by flag (R182)":                        {spec: app, change: func(o *manifests.InjectOptions) { o.Readiness = true }, has: []string{`"readinessProbe":{"failureThreshold":3,"httpGet":{"path":"/readyz"`}},
		"the hook only starts the hand-over (R178, R179)": {spec: app, has: []string{`"lifecycle":{"preStop":{"exec":{"command":["/sidecar","drain"]}}}`, `"restartPolicy":"Always"`}},
		"a plain one needs no hook":                       {spec: app, change: func(o *manifests.InjectOptions) { o.Plain = true }, lacks: []string{"lifecycle", "restartPolicy"}},
		"a Job gets a native one (R177)":                  {kind: "Job", spec: app, has: []string{`"restartPolicy":"Always"`}, pod: []string{`"initContainers":[{`}, warnings: []string{"jobs fire only while this Job runs"}},
		"a DaemonSet, with a word":                        {kind: "DaemonSet", spec: app, warnings: []string{"each node gets a sidecar"}},
		"nothing is mounted by a subPath (R167)":          {spec: app, lacks: []string{"subPath", "volumeMounts"}},

		"a secret file wants a mount": {spec: app, change: set("LEASECRON_SIGNING_SECRET_FILES", "/etc/x/secret,/etc/y/secret"), warnings: []string{"LEASECRON_SIGNING_SECRET_FILES names /etc/x/secret, where no volume is mounted", "/etc/y/secret"}},
		"so does a jobs file":         {spec: app, change: set("LEASECRON_JOBS_FILE", "/jobs/jobs.yaml"), warnings: []string{"LEASECRON_JOBS_FILE names /jobs/jobs.yaml"}},
		"and a socket":                {spec: app, change: func(o *manifests.InjectOptions) { o.Target = "unix:///run/app/app.sock" }, has: []string{env("LEASECRON_TARGET", "unix:///run/app/app.sock")}, warnings: []string{"LEASECRON_TARGET names /run/app/app.sock, where"}},
		"what is mounted is fine": {
			spec:   app + "initContainers:\n- {name: leasecron, image: x, env: [{name: LEASECRON_APP, value: shop}], volumeMounts: [{name: s, mountPath: /etc/x/}]}\n",
			change: set("LEASECRON_SIGNING_SECRET_FILES", "/etc/x/secret"), has: []string{`"volumeMounts":[{"mountPath":"/etc/x/","name":"s"}]`},
		},
		"traces are a setting": {spec: app, change: set("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), has: []string{env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318")}},

		"quality of service is kept":           {spec: "containers: [{name: app, ports: [{containerPort: 1}], resources: {limits: {cpu: 1, memory: 1Gi}}}]\n", has: []string{`"resources":{"limits":{"cpu":"50m","memory":"128Mi"},"requests":{"cpu":"50m","memory":"128Mi"}}`}},
		"and not made up":                      {spec: "containers: [{name: app, ports: [{containerPort: 1}], resources: {limits: {memory: 1Gi}}}]\n", has: []string{`"requests":{"cpu":"10m","memory":"32Mi"}`}},
		"a service account that is there":      {spec: "serviceAccountName: robot\n" + app, pod: []string{`"serviceAccountName":"robot"`}},
		"the old name of the field":            {spec: "serviceAccount: robot\n" + app, pod: []string{`"serviceAccount":"robot"`}},
		"another service account is not taken": {spec: "serviceAccountName: robot\n" + app, change: func(o *manifests.InjectOptions) { o.ServiceAccount = "x" }, pod: []string{`"serviceAccountName":"robot"`}, warnings: []string{"x is not used"}},
		"a listener nobody reaches":            {spec: app, change: set("LEASECRON_LISTEN", "127.0.0.1:9470"), lacks: []string{"livenessProbe", "containerPort"}, warnings: []string{"no probe is set"}},
		"another port":                         {spec: app, change: set("LEASECRON_LISTEN", ":9999"), has: []string{`"containerPort":9999`}},
		"the host's network, ports by choice": {spec: "hostNetwork: true\n" + app, change: func(o *manifests.InjectOptions) {
			o.Settings = map[string]string{"LEASECRON_LISTEN": ":9001", "LEASECRON_API_LISTEN": "127.0.0.1:9002"}
		}, has: []string{`"hostPort":9001`, `"hostPort":9002`}, warnings: []string{"hostNetwork: the sidecar listens on the node's addresses"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			kind := tt.kind
			if kind == "" {
				kind = "Deployment"
			}
			out := inject(t, []byte(deployment(kind, "shop", tt.spec)), tt.change)
			container, pod := the(t, out)
			for _, part := range tt.has {
				if !strings.Contains(container, part) {
					t.Errorf("the container lacks %s:\n%s", part, container)
				}
			}
			for _, part := range tt.lacks {
				if strings.Contains(container, part) {
					t.Errorf("the container has %s:\n%s", part, container)
				}
			}
			for _, part := range tt.pod {
				if !strings.Contains(pod, part) {
					t.Errorf("the pod lacks %s:\n%s", part, pod)
				}
			}
			if len(out.Warnings) != len(tt.warnings) && !(len(tt.warnings) > 0 && strings.HasPrefix(tt.warnings[0], "hostNetwork")) {
				t.Errorf("warnings %q, want %q", out.Warnings, tt.warnings)
			}
			for i, part := range tt.warnings {
				if i >= len(out.Warnings) || !strings.Contains(out.Warnings[i], part) {
					t.Errorf("warnings %q, want %q", out.Warnings, part)
				}
			}
		})
	}
}

// What a person has changed of the container stays through an upgrade.
func TestInjectKeepsWhatWasTuned(t *testing.T) {
	first := inject(t, []byte(deployment("Deployment", "shop", app)), func(o *manifests.InjectOptions) {
		o.Settings = map[string]string{"LEASECRON_LEASE_DURATION": "30s"}
	})
	tuned := strings.NewReplacer(
		"memory: 128Mi", "memory: 1Gi", "runAsUser: 65532", "runAsUser: 1234", "periodSeconds: 20", "periodSeconds: 60",
		"        - name: GOMEMLIMIT", "        - name: MINE\n          value: kept\n        - name: GOMEMLIMIT",
	).Replace(string(first.Text))
	again := inject(t, []byte(tuned), func(o *manifests.InjectOptions) { o.Image = "leasecron:v2" })
	want := strings.NewReplacer("leasecron:v1", "leasecron:v2", "value: 115MiB", "value: 921MiB").Replace(tuned) // a tenth less than the limit
	if string(again.Text) != want {
		t.Errorf("got\n%s\nwant\n%s", again.Text, want)
	}
	if again.Workloads[0].Settings.LeaseDuration.String() != "30s" {
		t.Errorf("the lease duration is %s", again.Workloads[0].Settings.LeaseDuration)
	}
}

// Documents in styles that cannot be edited line by line come out right all the same, and say what was lost.
func TestInjectWritesAnewWhereItHasTo(t *testing.T) {
	block := deployment("Deployment", "shop", app)
	object, err := manifests.ParseObject([]byte(block))
	if err != nil {
		t.Fatal(err)
	}
	want := objects(t, inject(t, []byte(block), nil).Text)
	for name, text := range map[string]string{
		"JSON":   toJSON(t, object),
		"anchor": strings.Replace(block, "image: app:1", "image: &i app:1\n        env: [{name: I, value: *i}]", 1),
	} {
		out := inject(t, []byte(text), nil)
		got := objects(t, out.Text)
		if name == "JSON" && toJSON(t, got) != toJSON(t, want) {
			t.Errorf("%s: got %v", name, got)
		}
		if c, _ := the(t, out); c == "" {
			t.Errorf("%s: no sidecar in\n%s", name, out.Text)
		}
		if name == "JSON" && (len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0], "written anew without its comments")) {
			t.Errorf("%s: warnings %q", name, out.Warnings)
		}
	}
}

// Lists, as kubectl get prints them, and separators with comments.
func TestInjectInStreams(t *testing.T) {
	list := "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Service\n  metadata: {name: shop}\n- " +
		strings.TrimPrefix(indented(2, deployment("Deployment", "shop", app)), "  ")
	for name, stream := range map[string]string{
		"a list":                   list,
		"a separator first":        "---\n" + deployment("Deployment", "shop", app),
		"separators with comments": "--- # one\n# nothing\n--- # two\n" + deployment("Deployment", "shop", app) + "---\n",
		"line ends of Windows":     strings.ReplaceAll(deployment("Deployment", "shop", app), "\n", "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			out := inject(t, []byte(stream), nil)
			if len(out.Warnings) > 0 {
				t.Errorf("warnings %q", out.Warnings)
			}
			rest := string(out.Text)
			for line := range strings.Lines(stream) {
				_, after, ok := strings.Cut(rest, line)
				if !ok {
					t.Fatalf("the line %q is gone from\n%s", line, out.Text)
				}
				rest = after
			}
			if twice := inject(t, out.Text, nil); string(twice.Text) != string(out.Text) {
				t.Errorf("twice is not once:\n%s", twice.Text)
			}
		})
	}
	all := inject(t, []byte(deployment("Deployment", "a", app)+"---\n"+deployment("StatefulSet", "b", app)), func(o *manifests.InjectOptions) { o.All = true })
	if len(all.Workloads) != 2 || all.Workloads[0].App != "a" || all.Workloads[1].App != "b" {
		t.Errorf("all: %v", all.Workloads)
	}
}
