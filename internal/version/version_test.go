package version

import (
	"runtime/debug"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Inside the package, because the linker sets what it tests.
func TestFill(t *testing.T) {
	built := func(version, revision, modified string) *debug.BuildInfo {
		b := &debug.BuildInfo{Main: debug.Module{Version: version}}
		if revision != "" {
			b.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: modified}}
		}
		return b
	}
	tests := map[string]struct {
		linked Info
		built  *debug.BuildInfo
		want   Info
	}{
		"what the linker set rules":                 {Info{Version: "v1.2.3", Commit: "abc"}, built("v9.9.9", "def", "true"), Info{Version: "v1.2.3", Commit: "abc"}},
		"go install records the version":            {Info{}, built("v1.2.3", "", ""), Info{Version: "v1.2.3"}},
		"go build in a checkout records the commit": {Info{}, built("(devel)", "def", "false"), Info{Commit: "def"}},
		"a changed checkout is told":                {Info{}, built("(devel)", "def", "true"), Info{Commit: "def-dirty"}},
		"nothing is known":                          {Info{}, built("(devel)", "", ""), Info{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := tt.linked
			got.fill(tt.built)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("fill (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGetNeverLeavesAFieldEmpty(t *testing.T) {
	info := Get()
	if info.Version == "" || info.Commit == "" || info.GoVersion == "" || info.Platform == "" {
		t.Errorf("Get() = %+v", info)
	}
}
