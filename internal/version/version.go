// Package version says which program this is. The values are set by the linker
//
//	-ldflags "-X github.com/leasecron/leasecron/internal/version.version=v1.2.3
//	          -X github.com/leasecron/leasecron/internal/version.commit=<full hash>"
//
// and otherwise taken from what the Go tool recorded in the binary.
package version

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// Set by the linker; empty in a plain "go build".
var (
	version string
	commit  string
)

// Info says which program this is.
type Info struct {
	Version   string `json:"version"`   // as released, or "devel"
	Commit    string `json:"commit"`    // hash of the source, or "unknown"; "-dirty" follows where it was changed
	GoVersion string `json:"goVersion"` // that it was built with
	Platform  string `json:"platform"`  // operating system and architecture
}

// Get returns the program's own version. It never changes while the program runs.
func Get() Info { return get() }

var get = sync.OnceValue(func() Info {
	info := Info{
		Version: version, Commit: commit,
		GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
	if built, ok := debug.ReadBuildInfo(); ok {
		info.fill(built)
	}
	info.Version = cmp.Or(info.Version, "devel")
	info.Commit = cmp.Or(info.Commit, "unknown")
	return info
})

// fill takes what the linker did not set from the record of the Go tool.
func (i *Info) fill(built *debug.BuildInfo) {
	if i.Version == "" && built.Main.Version != "(devel)" {
		i.Version = built.Main.Version
	}
	if i.Commit != "" {
		return
	}
	dirty := false
	for _, s := range built.Settings {
		switch s.Key {
		case "vcs.revision":
			i.Commit = s.Value
		case "vcs.modified":
			dirty = s.Value == "true"
		}
	}
	if i.Commit != "" && dirty {
		i.Commit += "-dirty"
	}
}

// String is the version on one line.
func (i Info) String() string {
	return fmt.Sprintf("leasecron %s (commit %s, %s, %s)", i.Version, i.Commit, i.GoVersion, i.Platform)
}
