package manifests_test

import (
	"strings"
	"testing"

	"github.com/leasecron/leasecron/manifests"
)

// A workload that has no name to call its app after is refused, not given a sidecar that cannot start.
func TestTheAppOfAWorkload(t *testing.T) {
	tests := map[string]struct {
		metadata, app string
		want          string // LEASECRON_APP
		err           string
	}{
		"the workload's name":       {metadata: "name: web", want: "web"},
		"another one":               {metadata: "name: web", app: "shop", want: "shop"},
		"a generated name":          {metadata: "generateName: web-", app: "shop", want: "shop"},
		"a number in quotes":        {metadata: `name: "123"`, want: `"123"`},
		"no name":                   {metadata: "generateName: web-", err: "Deployment without a name: has no metadata.name, after which the app is called: name it, or say --app"},
		"an empty name":             {metadata: `name: ""`, err: "has no metadata.name"},
		"null":                      {metadata: "name: null", err: "has no metadata.name"},
		"a number":                  {metadata: "name: 123", err: `metadata.name is "123", which YAML does not read as text: write it in quotes`},
		"a number, which no app is": {metadata: "name: 007", app: "shop", err: `metadata.name is "7", which`},
		"a list":                    {metadata: "name: [web]", err: "metadata.name is"},
		"two lines":                 {metadata: `name: "a\nb"`, err: `Deployment "a\nb": LEASECRON_APP="a\nb"`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			stream := strings.Replace(deployment("Deployment", "NAME", app), "name: NAME", tt.metadata, 1)
			result, err := manifests.Inject([]byte(stream), manifests.InjectOptions{Sidecar: manifests.Sidecar{Image: image, App: tt.app}})
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), "a\nb") {
					t.Errorf("Inject() = %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if text := string(result.Text); !strings.Contains(text, "- name: LEASECRON_APP\n") || !strings.Contains(text, "value: "+tt.want+"\n") {
				t.Errorf("no LEASECRON_APP with the value %s in:\n%s", tt.want, text)
			}
		})
	}
}
