package sim

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/leasecron/leasecron/engine/ledger"
)

// The groups of objects, which fail together. The empty group stands for both.
const (
	groupDocs  = "documents"
	groupLease = "lease"
)

func groupName(g string) string { return cmp.Or(g, "everything") }

// objectLease is the name of the Lease among the documents.
const objectLease ledger.Name = "lease"

// server is the API server: objects that are changed by compare-and-swap.
type server struct {
	world *world

	mu       sync.Mutex
	objects  map[ledger.Name]*object
	revision int64
	down     map[string]time.Time // until when a group cannot be reached
	fell     map[string]time.Time // since when
}

type object struct {
	data    []byte
	version ledger.Version
	subs    []chan struct{}
}

func newServer(w *world) *server {
	s := &server{world: w, objects: make(map[ledger.Name]*object), down: make(map[string]time.Time), fell: make(map[string]time.Time)}
	for _, name := range append(ledger.Names(), objectLease) {
		s.revision++
		s.objects[name] = &object{version: ledger.Version(strconv.FormatInt(s.revision, 10))}
	}
	// A newer version of the program has been here: what it left must survive.
	s.objects[ledger.NameLedger].data = []byte(`{"format":1,"writeId":"x","term":0,"fromTheFuture":{"a":[1,2]}}`)
	return s
}

func (s *server) load(name ledger.Name) ([]byte, ledger.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[name]
	return slices.Clone(o.data), o.version
}

// replace is the write as it arrives.
func (s *server) replace(n *node, name ledger.Name, from ledger.Version, data []byte) (ledger.Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[name]
	if o.version != from {
		s.world.tally("conflicts")
		return "", ledger.ErrConflict
	}
	s.revision++
	o.data, o.version = slices.Clone(data), ledger.Version(strconv.FormatInt(s.revision, 10))
	s.world.tally("writes: " + string(name))
	s.world.sized(name, len(data))
	s.world.check.written(n, name, o.data)
	for _, sub := range o.subs {
		select {
		case sub <- struct{}{}:
		default:
		}
	}
	return o.version, nil
}

func (s *server) subscribe(name ledger.Name) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := make(chan struct{}, 1)
	s.objects[name].subs = append(s.objects[name].subs, sub)
	return sub
}

func (s *server) unsubscribe(name ledger.Name, sub chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[name]
	o.subs = slices.DeleteFunc(o.subs, func(c chan struct{}) bool { return c == sub })
}

func (s *server) outage(group string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range groups(group) {
		if now := time.Now(); !now.Before(s.down[g]) {
			s.fell[g] = now
		}
		if until := time.Now().Add(d); until.After(s.down[g]) {
			s.down[g] = until
		}
	}
}

func (s *server) reachable(group string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !time.Now().Before(s.down[group])
}

func (s *server) heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for g, until := range s.down {
		if now := time.Now(); now.Before(until) {
			s.down[g] = now
		}
	}
}

// lastOutage says how long the last outage of a group was and how long ago it ended. The caller holds
// s.mu.
func (s *server) lastOutage(group string) (length, ago time.Duration) {
	if s.fell[group].IsZero() {
		return 0, forever
	}
	return s.down[group].Sub(s.fell[group]), time.Since(s.down[group])
}

func groups(g string) []string {
	if g == "" {
		return []string{groupDocs, groupLease}
	}
	return []string{g}
}

// What the network says.
var (
	errRefused  = errors.New("connection refused")
	errNoAnswer = errors.New("no answer")
	errDead     = errors.New("the process is dead")
	errClock    = errors.New("the clock is off by too much")
)
