package plan

import (
	"slices"

	"github.com/leasecron/leasecron/engine/state"
)

// DropVersions makes room in a catalog: of each job it keeps the newest versions, at most that many, beside
// those that are still needed: by a run that is open or not yet in the history, or by an instant that
// is not decided. It reports how many it dropped.
func DropVersions(c *state.Catalog, l *state.Ledger, most int) int {
	type version struct {
		job    string
		number int
	}
	named := make(map[version]bool)
	for i := range l.Runs {
		named[version{l.Runs[i].Key.Job, l.Runs[i].Version}] = true
	}
	for i := range l.Finished {
		named[version{l.Finished[i].Key.Job, l.Finished[i].Version}] = true
	}
	definitions := Compile(c)
	dropped := 0
	for name, record := range c.Jobs {
		if record == nil || len(record.Versions) <= most {
			continue
		}
		kept := record.Versions[len(record.Versions)-max(most, 1):][0].Number
		for _, track := range definitions.Jobs[name].tracks {
			remembered := l.Triggers[track.Key]
			if _, s, ok := track.first(from(remembered, l.Watermark), remembered); ok {
				kept = min(kept, s.version)
			}
		}
		before := len(record.Versions)
		record.Versions = slices.DeleteFunc(record.Versions, func(v state.Version) bool {
			return v.Number < kept && !named[version{name, v.Number}]
		})
		dropped += before - len(record.Versions)
	}
	return dropped
}
