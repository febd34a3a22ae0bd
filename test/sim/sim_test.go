package sim_test

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasecron/leasecron/test/sim"
)

var (
	one     = flag.Uint64("sim.seed", 0, "play this seed alone and print its event log")
	first   = flag.Uint64("sim.first", 1, "the first seed to play")
	seeds   = flag.Uint64("sim.seeds", someSeeds, "how many seeds to play")
	same    = flag.Uint64("sim.same", 0, "how many seeds to play twice; 0: a few chosen ones")
	procs   = flag.Int("sim.procs", 1, "on how many processors to play them twice")
	failing = flag.Int("sim.failures", 5, "stop after that many failing seeds")
	says    = flag.String("sim.says", "", "a regular expression: only violations that match it count")
	workers = flag.Int("sim.workers", runtime.NumCPU(), "in how many processes to play")
	last    = flag.Uint64("sim.end", 0, "for the test itself: the seed after the last one to play")
	worker  = flag.Bool("sim.worker", false, "for the test itself: play in this process and tell the outcome in JSON")
)

// TestSeed plays one seed with its event log: what a failing seed is replayed with.
func TestSeed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if *one == 0 {
		*one = 1
	}
	r := play(t, *one)
	if testing.Verbose() || len(r.Violations) > 0 {
		for _, l := range r.Log() {
			fmt.Println(l)
		}
	}
	for _, v := range r.Violations {
		t.Error(v)
	}
}

// TestTheSameSeedGivesTheSameRun compares event logs.
func TestTheSameSeedGivesTheSameRun(t *testing.T) {
	if raceEnabled {
		return // the race detector has goroutines take turns at random
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(*procs))
	// In these things used to happen at the same moment in an order of chance.
	chosen := []uint64{1, 11, 15, 21, 25, 48}
	if *same > 0 {
		chosen = nil
	}
	for i := range *same {
		chosen = append(chosen, *first+i)
	}
	for _, seed := range chosen {
		a, b := play(t, seed).Log(), play(t, seed).Log()
		slices.Sort(a) // what happens at the same moment may be told in another order
		slices.Sort(b)
		for i := range min(len(a), len(b)) {
			if a[i] != b[i] {
				t.Errorf("seed %d, line %d: first\n%s\nthen\n%s", seed, i, a[i], b[i])
				break
			}
		}
		if len(a) != len(b) {
			t.Errorf("seed %d: %d events, then %d", seed, len(a), len(b))
		}
	}
}

// TestSeeds plays many seeds and fails where a promise is broken. The seeds are played in processes
// of their own, each on one processor: there goroutines take turns in the same order every time.
func TestSeeds(t *testing.T) {
	if *worker {
		work(t)
		return
	}
	began := time.Now()
	total := gather(t)
	took := time.Since(began)
	if total.Played == 0 {
		t.Fatal("no seed was played")
	}
	t.Logf("%d seeds, %.1f a second, %s of simulated time each", total.Played, float64(total.Played)/took.Seconds(),
		(total.Simulated / time.Duration(total.Played)).Round(time.Second))
	for _, what := range slices.Sorted(maps.Keys(total.Count)) {
		t.Logf("%10d %s", total.Count[what], what)
	}
	for _, what := range slices.Sorted(maps.Keys(total.Peak)) {
		t.Logf("%10d bytes at most: %s", total.Peak[what], what)
	}
}

// outcome is what a worker tells of its seeds.
type outcome struct {
	Begun      uint64 // this seed is being played
	Played     uint64
	Simulated  time.Duration
	Seed       uint64
	Violations []string
	Count      map[string]int
	Peak       map[string]int
}

// gather has the workers play and adds up what they tell.
func gather(t *testing.T) (total outcome) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	total.Count, total.Peak = make(map[string]int), make(map[string]int)
	var mu sync.Mutex
	failed := 0
	wanted, err := regexp.Compile(*says)
	if err != nil {
		t.Fatal(err)
	}
	tell := newProgress(*seeds)
	var group sync.WaitGroup
	for w := range *workers {
		group.Go(func() {
			var begun uint64
			err := spawn(ctx, w, func(o outcome) {
				mu.Lock()
				defer mu.Unlock()
				begun = o.Begun
				total.Played += o.Played
				tell.played(total.Played, failed)
				total.Simulated += o.Simulated
				for what, n := range o.Count {
					total.Count[what] += n
				}
				for what, n := range o.Peak {
					total.Peak[what] = max(total.Peak[what], n)
				}
				if counts := slices.ContainsFunc(o.Violations, wanted.MatchString); !counts {
					return
				}
				t.Errorf("seed %d:\n  %s\nreplay: GOMAXPROCS=1 go test ./test/sim -run TestSeed$ -v -sim.seed=%d",
					o.Seed, strings.Join(o.Violations, "\n  "), o.Seed)
				if failed++; failed >= *failing {
					cancel()
				}
			})
			if err != nil && ctx.Err() == nil {
				t.Errorf("seed %d: the process that played it died: %v\nreplay: GOMAXPROCS=1 go test ./test/sim -run TestSeed$ -v -sim.seed=%d", begun, err, begun)
				cancel()
			}
		})
	}
	group.Wait()
	return total
}

// progress tells how far a long play is, for people who wait for it.
type progress struct {
	seeds       uint64
	began, next time.Time
}

const progressEvery = 30 * time.Second

func newProgress(seeds uint64) *progress {
	now := time.Now()
	return &progress{seeds: seeds, began: now, next: now.Add(progressEvery)}
}

func (p *progress) played(n uint64, failed int) {
	now := time.Now()
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(progressEvery)
	fmt.Fprintf(os.Stderr, "%d of %d seeds, %.1f a second, %d failed\n", n, p.seeds, float64(n)/now.Sub(p.began).Seconds(), failed)
}

// spawn starts one worker and passes on what it tells.
func spawn(ctx context.Context, number int, told func(outcome)) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	args := []string{
		self, "-test.run=^TestSeeds$", "-test.timeout=0", "-sim.worker",
		"-sim.first=" + strconv.FormatUint(*first+uint64(number), 10), "-sim.end=" + strconv.FormatUint(*first+*seeds, 10),
		"-sim.workers=" + strconv.Itoa(*workers),
	}
	if nice, err := exec.LookPath("nice"); err == nil { // its time is simulated, that of the tests beside it is not
		args = append([]string{nice}, args...)
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOGC=400")
	var trouble strings.Builder
	cmd.Stderr = &trouble
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	var rest strings.Builder
	for lines.Scan() {
		var o outcome
		if text, ok := strings.CutPrefix(lines.Text(), "outcome "); ok && json.Unmarshal([]byte(text), &o) == nil {
			told(o)
		} else if rest.Len() < 8<<10 {
			fmt.Fprintln(&rest, lines.Text())
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w\n%s%.4000s", err, rest.String(), trouble.String())
	}
	return nil
}

// work plays this worker's share of the seeds.
func work(t *testing.T) {
	t.Helper()
	tell := func(o outcome) {
		text, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("outcome " + string(text))
	}
	for seed := *first; seed < *last; seed += uint64(*workers) {
		tell(outcome{Begun: seed})
		r := play(t, seed)
		tell(outcome{Begun: seed, Played: 1, Seed: seed, Simulated: r.Simulated, Violations: r.Violations, Count: r.Count, Peak: r.Peak})
	}
}

func play(t *testing.T, seed uint64) (r sim.Report) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { r = sim.Run(seed) })
	return r
}
