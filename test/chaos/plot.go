package chaos

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"
)

// kind is a kind of fault.
type kind string

const (
	// Between one sidecar and the API server.
	delayRequests kind = "delay requests"
	delayAnswers  kind = "delay answers"
	resetRequests kind = "reset connections"
	hangRequests  kind = "hang requests"
	hangAnswers   kind = "hang answers"
	dropAnswers   kind = "drop answers after the write"
	refuse        kind = "answer 503"
	throttle      kind = "answer 429"
	cutOff        kind = "cut off"
	partition     kind = "partition"

	// To a process.
	kill      kind = "SIGKILL"
	stop      kind = "SIGSTOP"
	terminate kind = "SIGTERM"
	drain     kind = "drain, then SIGTERM"
	rollOut   kind = "roll out all"

	// To the API server.
	apiRestart kind = "API server restarts"
	apiKill    kind = "API server is killed"
	apiPause   kind = "API server stands still"

	// To the app beside one sidecar.
	appDown kind = "app is down"

	// What people do.
	editJobs    kind = "edit jobs"
	editInvalid kind = "edit jobs wrongly"
	enqueue     kind = "enqueue"
	intrude     kind = "meddle with the Lease"
)

// bag says how often each kind comes among the others. Kinds are drawn until it is empty, so that
// a short run sees most of them too.
var bag = map[kind]int{
	delayRequests: 1, delayAnswers: 1, resetRequests: 2, hangRequests: 2, hangAnswers: 1, dropAnswers: 4,
	refuse: 1, throttle: 1, cutOff: 2, partition: 2,
	kill: 4, stop: 4, terminate: 2, drain: 2, rollOut: 1,
	apiRestart: 1, apiKill: 1, apiPause: 1,
	appDown: 2, editJobs: 3, editInvalid: 1, enqueue: 4, intrude: 3,
}

// tries is how often a kind of fault may be set without hitting anything, by chance.
const tries = 8

// idleFaults says which kinds of faults hit so little that a run proves nothing about them.
func idleFaults(faults map[kind]tally) []string {
	var out []string
	set, hit := 0, 0
	for _, k := range slices.Sorted(maps.Keys(faults)) {
		t := faults[k]
		set, hit = set+t.Set, hit+t.Hit
		if t.Hit == 0 && t.Set >= tries {
			out = append(out, fmt.Sprintf("%q was set %d times and never hit anything", k, t.Set))
		}
	}
	if set >= tries && 2*hit < set {
		out = append(out, fmt.Sprintf("of %d faults only %d hit anything", set, hit))
	}
	return out
}

// atLeader as a fault's target is the sidecar that leads when the fault begins.
const atLeader = -1

// fault is one thing that goes wrong.
type fault struct {
	At   time.Duration // since the beginning
	Kind kind
	// Target is the sidecar that it happens to, or atLeader.
	Target int
	// For is how long it lasts: until the process is started again, goes on, or is connected again.
	For time.Duration
	// Only names the resource whose requests it befalls, of two; empty: all.
	Only string
	// Number means, by kind: how many requests are befallen, or which edit is made of the jobs or the Lease.
	Number int
}

func (f fault) String() string {
	target := fmt.Sprintf("sidecar %d", f.Target)
	if f.Target == atLeader {
		target = "the leader"
	}
	return fmt.Sprintf("%s %s for %s, only %q, number %d", f.Kind, target, f.For, f.Only, f.Number)
}

// plot makes the faults of a run. The same arguments make the same faults.
func plot(seed uint64, length time.Duration, sidecars int) []fault {
	rng := rand.New(rand.NewPCG(seed, 0))
	var faults []fault
	var kinds []kind
	for at := 2 * time.Second; ; at += between(rng, 500*time.Millisecond, 4*time.Second) {
		if at >= length {
			return faults
		}
		if len(kinds) == 0 {
			kinds = shuffled(rng)
		}
		f := fault{At: at, Kind: kinds[0], Target: rng.IntN(sidecars), Number: rng.IntN(1_000)}
		kinds = kinds[1:]
		if rng.IntN(2) == 0 {
			f.Target = atLeader
		}
		f.Only = []string{"", "", "leases", "configmaps"}[rng.IntN(4)]
		f.For = lasts(f.Kind, rng)
		faults = append(faults, f)
	}
}

func lasts(k kind, rng *rand.Rand) time.Duration {
	switch k {
	case kill:
		return between(rng, 0, 4*time.Second)
	case stop:
		return between(rng, time.Second, 25*time.Second)
	case apiPause, hangRequests, hangAnswers, cutOff, partition:
		return between(rng, time.Second, 12*time.Second)
	case drain:
		return between(rng, 0, 3*time.Second)
	case dropAnswers:
		return between(rng, 500*time.Millisecond, 4*time.Second)
	case delayRequests, delayAnswers, resetRequests, refuse, throttle, appDown:
		return between(rng, time.Second, 8*time.Second)
	case apiKill:
		return between(rng, 0, 3*time.Second)
	case terminate, rollOut, apiRestart, editJobs, editInvalid, enqueue, intrude:
	}
	return 0
}

// shuffled lists every kind as often as the bag says, in random order.
func shuffled(rng *rand.Rand) []kind {
	var kinds []kind
	for _, k := range []kind{ // not the map's order, which differs from run to run
		delayRequests, delayAnswers, resetRequests, hangRequests, hangAnswers, dropAnswers, refuse, throttle, cutOff, partition,
		kill, stop, terminate, drain, rollOut, apiRestart, apiKill, apiPause, appDown, editJobs, editInvalid, enqueue, intrude,
	} {
		for range bag[k] {
			kinds = append(kinds, k)
		}
	}
	rng.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	return kinds
}

func between(rng *rand.Rand, least, most time.Duration) time.Duration {
	return (least + time.Duration(rng.Int64N(int64(most-least)))).Round(time.Millisecond)
}
