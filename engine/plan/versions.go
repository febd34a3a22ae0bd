package plan

import (
	"maps"
	"slices"

	"github.com/leasecron/leasecron/engine/state"
)

// DropVersions makes room in a catalog: of each job it keeps the newest versions, at most that many, beside
// those that are still needed: by a run that is open or not yet in the history, or by an instant that
// is not decided. Of those that runs need it keeps [state.MostVersions]; runs whose version is gone go on by
// the newest one. It reports how many it dropped.
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
	many := maps.Clone(c.Jobs)
	maps.DeleteFunc(many, func(_ string, j *state.Job) bool { return j == nil || len(j.Versions) <= most })
	definitions := Compile(&state.Catalog{Jobs: many})
	dropped := 0
	for name, record := range many {
		kept := record.Versions[len(record.Versions)-max(most, 1):][0].Number
		for _, track := range definitions.Jobs[name].tracks {
			remembered := l.Triggers[track.Key]
			if _, s, ok := track.first(from(remembered, l.Watermark), remembered); ok {
				kept = min(kept, s.version)
			}
		}
		before := len(record.Versions)
		oldest := max(0, before-state.MostVersions)
		ends := endsOf(record.Versions)
		for i := range record.Versions {
			if v := &record.Versions[i]; v.Number < kept {
				v.Until = ends[i] // it decides no more than it did when what follows it is dropped
			}
		}
		number := record.Versions[oldest].Number
		record.Versions = slices.DeleteFunc(record.Versions, func(v state.Version) bool {
			return v.Number < kept && (v.Number < number || !named[version{name, v.Number}])
		})
		dropped += before - len(record.Versions)
	}
	return dropped
}
