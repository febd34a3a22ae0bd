package engine_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
)

const oddRun = `"occurrence":"o","key":"bad/default","version":1,"cause":"schedule","attempt":1,` +
	`"scheduledAt":"2000-01-01T00:00:00Z","dueAt":"2000-01-01T00:00:00Z","decidedAt":"2000-01-01T00:00:00Z"`

// One record that cannot be read spoils its own job at most, wherever it stands, and is kept and told of
// (rule 4).
func TestARecordThatCannotBeReadStopsItsJobAlone(t *testing.T) {
	head := `{"format":1,"writeId":"x",`
	tests := map[string]struct {
		document ledger.Name
		text     string
		kept     string // of the record, in the end
		stands   bool   // its job stands still, with an error
	}{
		"a state that is unknown":   {ledger.NameLedger, `"term":3,"watermark":"2000-01-01T00:00:00Z","runs":[{"id":"r1","state":"Paused",` + oddRun + `}]}`, `"state":"Paused"`, true},
		"a run that has ended":      {ledger.NameLedger, `"term":3,"watermark":"2000-01-01T00:00:00Z","runs":[{"id":"r1","state":"Lost",` + oddRun + `}]}`, `"state":"Lost"`, true},
		"a run of no key":           {ledger.NameLedger, `"term":3,"watermark":"2000-01-01T00:00:00Z","runs":[{"id":"r1","key":"Bad?","state":"Queued"}]}`, `"key":"Bad?"`, false},
		"a trigger's entry":         {ledger.NameLedger, `"term":3,"watermark":"2000-01-01T00:00:00Z","triggers":{"bad/default":{"cursor":12}}}`, `{"cursor":12}`, true},
		"what has finished":         {ledger.NameLedger, `"term":3,"watermark":"2000-01-01T00:00:00Z","finished":[{"id":"f","state":"Odd","key":"bad/default"}]}`, `"state":"Odd"`, false},
		"what was skipped":          {ledger.NameLedger, `"term":3,"watermark":"2000-01-01T00:00:00Z","skipped":[{"occurrence":"x","key":"bad/default","count":"many"}]}`, `"count":"many"`, false},
		"a job of the catalog":      {ledger.NameCatalog, `"revision":1,"jobs":{"bad":{"firstSeen":"yesterday","versions":[]}}}`, `"firstSeen":"yesterday"`, true},
		"a pause of the catalog":    {ledger.NameCatalog, `"revision":1,"pauses":{"bad":{"at":"yesterday"}}}`, `"at":"yesterday"`, false},
		"a pause that is no object": {ledger.NameCatalog, `"revision":1,"pauses":{"bad":12}}`, `"bad":12`, false},
		"a run of the history":      {ledger.NameHistory, `"jobs":{"bad":{"runs":[{"id":7}]}}}`, `{"id":7}`, false},
		"a job of the history":      {ledger.NameHistory, `"jobs":{"bad":[1,2,3]}}`, `[1,2,3]`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, events := ledger.NewSharedMemory(), &observed{}
				put(t, store, tt.document, head+tt.text)
				n := start(t, store, "a", &app{}, func(o *engine.Options) { o.Observer = events })
				n.engine.Define([]config.Job{job("bad", "rate 1s"), job("good", "rate 1s")})
				l, leave := n.lead()
				time.Sleep(45 * time.Second)
				if got := callsOf("good", n.app); got < 43 || l.Check() != nil {
					t.Errorf("%d calls of the other job within 45 s, lease %v", got, l.Check())
				}
				paused := strings.Contains(name, "pause")
				if got := callsOf("bad", n.app); (got > 0) == (tt.stands || paused) {
					t.Errorf("%d calls of the job itself", got)
				}
				if got := n.jobStatus("bad").Error; (got != "") != tt.stands {
					t.Errorf("its error is %q", got)
				}
				told := eventsOf[engine.Unreadable](events)
				if len(told) != 1 || told[0].Document != string(tt.document) || len(told[0].Records) != 1 {
					t.Errorf("told %v, want the one record of the %s, once", told, tt.document)
				}
				if got := n.engine.Status().Unreadable[string(tt.document)]; got != 1 {
					t.Errorf("%d records are counted, want 1", got)
				}
				data, _, err := store.Load(t.Context(), tt.document)
				if err != nil || strings.Count(string(data), tt.kept) != 1 {
					t.Errorf("%s is there %d times (%v), want once: %s", tt.kept, strings.Count(string(data), tt.kept), err, data)
				}
				if paused {
					time.Sleep(15 * time.Second)
					if _, err := n.engine.Resume(t.Context(), run.Key{Job: "bad"}, false); err != nil {
						t.Error(err)
					}
					time.Sleep(15 * time.Second)
					if callsOf("bad", n.app) == 0 {
						t.Error("it stands still after it was resumed")
					}
				}
				leave()
				n.close()
			})
		})
	}
}

// What was set aside is read once it can be: after a repair, or by the program that knows it.
func TestARecordThatWasRepairedCountsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		put(t, store, ledger.NameLedger, `{"format":1,"writeId":"x","term":3,"watermark":"2000-01-01T00:00:00Z","runs":[{"id":"r1","state":"Paused",`+oddRun+`}]}`)
		n := start(t, store, "a", &app{})
		n.engine.Define([]config.Job{job("bad", "rate 1h")})
		_, leave := n.lead()
		time.Sleep(5 * time.Second)
		leave()
		data, _, _ := store.Load(t.Context(), ledger.NameLedger)
		put(t, store, ledger.NameLedger, strings.ReplaceAll(strings.Replace(string(data), `"writeId":"`, `"writeId":"z`, 1), `"Paused"`, `"Queued"`))
		_, leave = n.lead()
		time.Sleep(time.Minute)
		if calls := n.app.Calls(); len(calls) != 1 || calls[0].Run.ID != "r1" {
			t.Errorf("%d calls, want that of the run alone, once", len(calls))
		}
		if l := ledgerOf(t, store); len(l.Runs)+len(l.Unreadable) != 0 {
			t.Errorf("open %v, unreadable %s: want none", l.Runs, l.Unreadable)
		}
		leave()
		n.close()
	})
}

// What a newer program has written into a run goes where the run goes, and that of the runs beside one that
// cannot be read stays (rule 3).
func TestUnknownMembersOfARunGoWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		good := strings.ReplaceAll(oddRun, "bad/default", "good/default")
		waits := strings.ReplaceAll(strings.ReplaceAll(oddRun, "bad/default", "later/default"), `"dueAt":"2000-01-01`, `"dueAt":"2000-01-02`)
		put(t, store, ledger.NameLedger, `{"format":1,"writeId":"x","term":3,"watermark":"2000-01-01T00:00:00Z","tomorrow":{"a":1},"runs":[`+
			`{"id":"r1","state":"Odd",`+oddRun+`},`+
			`{"id":"r2","state":"Queued","shard":{"of":"<7>"},`+good+`},`+
			`{"id":"r3","state":"Queued","shard":9,`+waits+`}]}`)
		n := start(t, store, "a", &app{work: 3 * time.Second})
		n.engine.Define([]config.Job{job("good", "rate 1h"), job("later", "rate 1h")})
		_, leave := n.lead()
		has := func(name ledger.Name, when string, texts ...string) {
			t.Helper()
			data, _, err := store.Load(t.Context(), name)
			for _, text := range texts {
				if err != nil || strings.Count(string(data), text) != 1 {
					t.Errorf("%s: %s is in the %s %d times, want once (%v): %s", when, text, name, strings.Count(string(data), text), err, data)
				}
			}
		}
		time.Sleep(time.Second)
		has(ledger.NameLedger, "in flight", `"shard":{"of":"<7>"}`, `"shard":9`, `"tomorrow":{"a":1}`, `"Odd"`)
		time.Sleep(4 * time.Second)
		has(ledger.NameLedger, "finished", `"shard":{"of":"<7>"}`, `"shard":9`, `"tomorrow":{"a":1}`, `"Odd"`)
		time.Sleep(30 * time.Second)
		has(ledger.NameHistory, "in the history", `"shard":{"of":"<7>"}`)
		has(ledger.NameLedger, "in the end", `"shard":9`, `"tomorrow":{"a":1}`, `"Odd"`)
		leave()
		n.close()
	})
}

func TestNothingIsSentBesideARunThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := ledger.NewSharedMemory()
		put(t, store, ledger.NameLedger, `{"format":1,"writeId":"x","term":3,"watermark":"2000-01-01T00:00:00Z","runs":[{"id":"r1","state":"Suspended",`+oddRun+`},`+
			`{"id":"r2","state":"Queued","cause":"schedule","occurrence":"o2","key":"bad/default","version":1,"attempt":1,"scheduledAt":"2000-01-01T00:00:00Z","dueAt":"2000-01-01T00:00:00Z","decidedAt":"2000-01-01T00:00:00Z"}]}`)
		n := start(t, store, "a", &app{})
		n.engine.Define([]config.Job{job("bad", "rate 1h")})
		_, leave := n.lead()
		time.Sleep(5 * time.Second)
		if got := callsOf("bad", n.app); got != 0 {
			t.Errorf("%d calls beside a run of the same serial job that may be in flight", got)
		}
		leave()
		n.close()
	})
}
