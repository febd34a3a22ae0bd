package manifests_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/manifests"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file under testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./manifests -update writes it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; go test ./manifests -update writes it anew):\n%s", path, diff)
	}
}

// workloads are typical ones, by name.
func workloads(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/workloads/*.yaml")
	if err != nil || len(paths) < 7 {
		t.Fatalf("workloads in testdata: %v, %v", paths, err)
	}
	out := make(map[string][]byte)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out[strings.TrimSuffix(filepath.Base(path), ".yaml")] = text
	}
	return out
}

const image = "leasecron:v1"

func inject(t *testing.T, stream []byte, change func(*manifests.InjectOptions)) *manifests.InjectResult {
	t.Helper()
	o := manifests.InjectOptions{Sidecar: manifests.Sidecar{Image: image}}
	if change != nil {
		change(&o)
	}
	out, err := manifests.Inject(stream, o)
	if err != nil {
		t.Fatalf("Inject: %v", err)
	}
	return out
}

func TestInjectGolden(t *testing.T) {
	for name, stream := range workloads(t) {
		t.Run(name, func(t *testing.T) {
			out := inject(t, stream, nil)
			warnings := ""
			for _, w := range out.Warnings {
				warnings += "# warning: " + w + "\n"
			}
			golden(t, "inject/"+name+".yaml", append([]byte(warnings), out.Text...))
		})
	}
}

// Everything that was there stays, line by line and in its order, so comments and blank lines too.
func TestInjectKeepsWhatIsThere(t *testing.T) {
	for name, stream := range workloads(t) {
		t.Run(name, func(t *testing.T) {
			// What may change is that a label comes into braces.
			rest := label.ReplaceAllString(string(inject(t, stream, nil).Text), "}")
			for line := range strings.Lines(string(stream)) {
				_, after, ok := strings.Cut(rest, line)
				if !ok {
					t.Fatalf("the line %q is gone, or has moved up", line)
				}
				rest = after
			}
		})
	}
}

var label = regexp.MustCompile(`, leasecron\.io/app: [-a-z]+}`)

func TestInjectTwiceIsOnce(t *testing.T) {
	for name, stream := range workloads(t) {
		t.Run(name, func(t *testing.T) {
			once := inject(t, stream, nil)
			if diff := cmp.Diff(string(once.Text), string(inject(t, once.Text, nil).Text)); diff != "" {
				t.Errorf("a second time changes (-once +twice):\n%s", diff)
			}
			upgraded := inject(t, once.Text, func(o *manifests.InjectOptions) { o.Image = "leasecron:v2" })
			want := bytes.ReplaceAll(once.Text, []byte("image: leasecron:v1"), []byte("image: leasecron:v2"))
			if diff := cmp.Diff(string(want), string(upgraded.Text)); diff != "" {
				t.Errorf("an upgrade of the image changes more than that (-want +got):\n%s", diff)
			}
			plain := inject(t, once.Text, func(o *manifests.InjectOptions) { o.Plain = true })
			direct := inject(t, stream, func(o *manifests.InjectOptions) { o.Plain = true })
			if diff := cmp.Diff(objects(t, direct.Text), objects(t, plain.Text)); diff != "" {
				t.Errorf("made plain is not injected plain (-direct +by way of native):\n%s", diff)
			}
		})
	}
}

func objects(t *testing.T, stream []byte) []manifests.Object {
	t.Helper()
	out, err := manifests.ParseStream(stream)
	if err != nil {
		t.Fatalf("%v in\n%s", err, stream)
	}
	return out
}

const jobsText = "jobs:\n- {name: cleanup, path: /cleanup, schedule: \"0 3 * * *\"}\n"

func jobs(t *testing.T, text string) *manifests.Jobs {
	t.Helper()
	doc, _, err := config.Parse("jobs.yaml", []byte(text), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return &manifests.Jobs{Document: doc, Keys: map[string][]byte{"jobs.yaml": []byte(text)}}
}

func pack(t *testing.T, o manifests.PackOptions) *manifests.Package {
	t.Helper()
	o.Image = image
	p, err := manifests.Pack(o)
	if err != nil {
		t.Fatalf("Pack: %v", err)
	}
	return p
}

func namespaceOf(name string) string {
	return map[string]string{"several-containers": "front", "service-account": "prod"}[name]
}

func TestPackGolden(t *testing.T) {
	for name, stream := range workloads(t) {
		t.Run(name, func(t *testing.T) {
			o := manifests.PackOptions{Workload: stream, Jobs: jobs(t, jobsText), Namespace: namespaceOf(name), With: []string{"networkpolicy", "pdb"}}
			if o.Namespace == "" {
				o.Namespace = "apps"
			}
			p := pack(t, o)
			golden(t, "pack/"+name+".yaml", p.Stream())
			var patch []byte
			for _, f := range p.Files() {
				if f.Name == "component/patch.yaml" {
					patch = f.Content
				}
			}
			golden(t, "pack/"+name+".patch.yaml", patch)
		})
	}
	t.Run("not shown", func(t *testing.T) {
		o := manifests.PackOptions{Namespace: "apps", Jobs: jobs(t, jobsText)}
		o.App = "shop"
		var all bytes.Buffer
		for _, f := range pack(t, o).Files() {
			all.WriteString("# file " + f.Name + "\n")
			all.Write(f.Content)
		}
		golden(t, "pack/not-shown.txt", all.Bytes())
	})
	t.Run("watched", func(t *testing.T) {
		o := manifests.PackOptions{Namespace: "apps", With: []string{"prometheusrule", "podmonitor", "dashboard"}}
		o.App = "shop"
		for _, f := range pack(t, o).Objects {
			switch f.Name {
			case "podmonitor.yaml":
				golden(t, "pack/watched.yaml", f.Content)
			case "prometheusrule.yaml", "dashboard.yaml": // the golden files of their package show what is in them
				if object, err := manifests.ParseObject(f.Content); err != nil || object.Namespace() != "apps" || !strings.HasPrefix(object.Name(), "shop-leasecron") {
					t.Errorf("%s has %v %v", f.Name, object, err)
				}
			}
		}
	})
}

func TestSameInputSameBytes(t *testing.T) {
	for name, stream := range workloads(t) {
		o := manifests.PackOptions{Workload: stream, Jobs: jobs(t, jobsText), Namespace: namespaceOf(name), With: []string{"pdb", "networkpolicy"}}
		if o.Namespace == "" {
			o.Namespace = "apps"
		}
		first := pack(t, o).Files()
		for range 5 {
			if diff := cmp.Diff(first, pack(t, o).Files()); diff != "" {
				t.Fatalf("%s: packed twice (-first +second):\n%s", name, diff)
			}
		}
	}
}
