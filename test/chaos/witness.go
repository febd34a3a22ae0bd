package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/leasecron/leasecron/engine/ledger"
	"github.com/leasecron/leasecron/engine/run"
	"github.com/leasecron/leasecron/engine/state"
	"github.com/leasecron/leasecron/test/cluster"
)

// testimony is all that was ever recorded during a run, whatever the documents keep of it.
type testimony struct {
	Runs  map[string]run.Run  // by ID, as last seen
	Skips map[string]run.Skip // as the ledger had them
	// Ranges are skips as the history has them: those in a row are one.
	Ranges map[string]run.Skip
	// Busy says of a skip, by its [skipID], whether its job had an open run in the very version of the
	// ledger that introduced it. It says nothing of those whose appearance was not seen.
	Busy     map[string]bool
	Versions map[string]map[int]state.Version // by job and number
	Terms    map[int64]term
	// Ledger is the latest version that was seen.
	Ledger *state.Ledger
	// Watched counts the versions of the ledger that were seen, Bytes is the largest.
	Watched, Bytes int
}

// term is what was seen of one leadership.
type term struct {
	Holder string
	// Claimed is when a run was first seen that was given to a node under the term: its commit
	// lies a moment before.
	Claimed time.Time
}

// witness gathers the testimony, past the fault proxies. It watches the ledger, and reads all
// documents now and then, since what it does not see of the ledger while the API server is away
// has then moved on to the history.
type witness struct {
	cluster *cluster.Cluster
	copies  io.Writer // takes each version of the ledger, a line each

	mu sync.Mutex
	t  testimony
}

// readEvery is how often the documents are read; they keep what happens for much longer.
const readEvery = 3 * time.Second

func newWitness(c *cluster.Cluster, copies io.Writer) *witness {
	return &witness{cluster: c, copies: copies, t: testimony{
		Runs: make(map[string]run.Run), Skips: make(map[string]run.Skip), Ranges: make(map[string]run.Skip), Busy: make(map[string]bool),
		Versions: make(map[string]map[int]state.Version), Terms: make(map[int64]term), Ledger: &state.Ledger{},
	}}
}

// run watches until ctx ends.
func (w *witness) run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		for wait(ctx, 200*time.Millisecond) {
			_ = w.watch(ctx) // the API server is taken away on purpose: it is watched again at once
		}
	})
	group.Go(func() {
		for wait(ctx, readEvery) {
			_ = w.read(ctx) // the same
		}
	})
}

// read takes all three documents in.
func (w *witness) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	d, err := w.cluster.Documents(ctx)
	if err != nil {
		return err
	}
	w.noteLedger(d.Ledger, time.Now(), 0)
	w.mu.Lock()
	defer w.mu.Unlock()
	for job, record := range d.Catalog.Jobs {
		if w.t.Versions[job] == nil {
			w.t.Versions[job] = make(map[int]state.Version)
		}
		for _, v := range record.Versions {
			w.t.Versions[job][v.Number] = v
		}
	}
	for _, j := range d.History.Jobs {
		w.t.note(j.Runs, nil)
		noteSkips(w.t.Ranges, j.Skips)
	}
	return nil
}

// watch takes every version of the ledger in, until the stream ends.
func (w *witness) watch(ctx context.Context) error {
	cfg := w.cluster.ControlPlane.AdminConfig()
	client, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return err
	}
	url := fmt.Sprintf("%s/api/v1/namespaces/%s/configmaps?watch=true&timeoutSeconds=300&fieldSelector=metadata.name=%s",
		cfg.Host, w.cluster.Namespace, ledger.ConfigMapName(cluster.AppName, ledger.NameLedger))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	stream := json.NewDecoder(resp.Body)
	var before *state.Ledger // the version before; of the first one it is not known
	for {
		var event struct{ Object corev1.ConfigMap }
		if err := stream.Decode(&event); err != nil {
			return err
		}
		text := event.Object.Data["ledger.json"]
		if text == "" {
			continue
		}
		var l state.Ledger
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			return err
		}
		w.noteLedger(&l, time.Now(), len(text))
		w.noteBusy(before, &l)
		before = &l
		_, _ = fmt.Fprintf(w.copies, "%s %s %s\n", time.Now().UTC().Format(clock), event.Object.ResourceVersion, text)
	}
}

// noteLedger takes one version of the ledger in, which may be older than what was seen before.
func (w *witness) noteLedger(l *state.Ledger, seen time.Time, size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.t.Watched++
	w.t.Bytes = max(w.t.Bytes, size)
	if l.Term > w.t.Ledger.Term || (l.Term == w.t.Ledger.Term && !l.Watermark.Before(w.t.Ledger.Watermark)) {
		w.t.Ledger = l
	}
	known := w.t.Terms[l.Term]
	known.Holder = l.Holder
	w.t.Terms[l.Term] = known
	for _, r := range l.Runs {
		if !r.State.Claimed() {
			continue
		}
		if known := w.t.Terms[r.Term]; known.Claimed.IsZero() {
			known.Claimed = seen
			w.t.Terms[r.Term] = known
		}
	}
	w.t.note(l.Runs, nil)
	w.t.note(l.Finished, l.Skipped)
}

// noteBusy looks at the skips that a version of the ledger has and the one right before it has not.
func (w *witness) noteBusy(before, now *state.Ledger) {
	if before == nil {
		return
	}
	had := make(map[string]bool, len(before.Skipped))
	for _, s := range before.Skipped {
		had[skipID(s)] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range now.Skipped {
		id := skipID(s)
		if _, known := w.t.Busy[id]; known || had[id] {
			continue
		}
		w.t.Busy[id] = slices.ContainsFunc(now.Runs, func(r run.Run) bool { return r.Key.Job == s.Key.Job })
	}
}

// skipID tells skips apart, also those of one occurrence.
func skipID(s run.Skip) string { return s.Key.String() + s.Occurrence + string(s.Reason) }

// note keeps of each run the record that tells most: how it ended, or else the latest.
func (t *testimony) note(runs []run.Run, skips []run.Skip) {
	for _, r := range runs {
		if have, ok := t.Runs[r.ID]; !ok || !have.State.Ended() {
			t.Runs[r.ID] = r
		}
	}
	noteSkips(t.Skips, skips)
}

func noteSkips(seen map[string]run.Skip, skips []run.Skip) {
	for _, s := range skips {
		id := skipID(s)
		if have, ok := seen[id]; !ok || have.Count < s.Count { // ranges grow in the history
			seen[id] = s
		}
	}
}

// testimony is a copy of what was seen so far.
func (w *witness) testimony() testimony {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.t
	t.Runs, t.Skips, t.Ranges, t.Busy, t.Terms = maps.Clone(t.Runs), maps.Clone(t.Skips), maps.Clone(t.Ranges), maps.Clone(t.Busy), maps.Clone(t.Terms)
	t.Versions = make(map[string]map[int]state.Version, len(w.t.Versions))
	for job, versions := range w.t.Versions {
		t.Versions[job] = maps.Clone(versions)
	}
	return t
}

// holder is the node that leads, as far as the ledger tells.
func (w *witness) holder() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.t.Ledger.Holder
}

// segment is the time in which one version of a job decides its instants.
type segment struct {
	Version     state.Version
	From, Until time.Time
	// Left: the job leaves the document at Until.
	Left bool
}

// segments puts the versions of a job in order, up to a time.
func (t testimony) segments(job string, until time.Time) []segment {
	var out []segment
	for _, number := range slices.Sorted(maps.Keys(t.Versions[job])) {
		v := t.Versions[job][number]
		if n := len(out); n > 0 && v.EffectiveAt.Before(out[n-1].Until) {
			out[n-1].Until, out[n-1].Left = v.EffectiveAt, v.Removed()
		}
		if v.EffectiveAt.Before(until) {
			out = append(out, segment{Version: v, From: v.EffectiveAt, Until: until})
		}
	}
	return slices.DeleteFunc(out, func(s segment) bool { return s.Version.Removed() })
}

// wait waits; false when ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
