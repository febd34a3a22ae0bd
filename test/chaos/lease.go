package chaos

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// intrusion is something that another hand does to the Lease.
type intrusion string

const (
	takeLease    intrusion = "another identity writes itself in"
	freeLease    intrusion = "another hand releases it"
	replaceLease intrusion = "it is deleted and made anew"
	// cutLeader is no intrusion, but ends a term as well: its holder is cut off.
	cutLeader intrusion = "its holder is cut off"
)

// intrusions are those that need nothing but the API server, losses all that take a term away.
var (
	intrusions = []intrusion{takeLease, freeLease, replaceLease}
	losses     = []intrusion{takeLease, freeLease, replaceLease, cutLeader}
)

// intrude does something to the Lease, and tries until the API server has taken it, or ctx ends.
func (s *session) intrude(ctx context.Context, how intrusion) outcome {
	do := func(ctx context.Context) error {
		switch how {
		case takeLease:
			return s.cluster.EditLease(ctx, `{"spec":{"holderIdentity":"intruder_1","leaseDurationSeconds":1}}`)
		case freeLease:
			return s.cluster.EditLease(ctx, `{"spec":{"holderIdentity":""}}`)
		default:
			return s.cluster.ReplaceLease(ctx)
		}
	}
	ctx = context.WithoutCancel(ctx) // a Lease that is gone has to come back
	for range 60 {
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := do(call)
		cancel()
		if err == nil {
			return hit(string(how))
		}
		wait(ctx, time.Second)
	}
	s.t.Errorf("%s: not within minutes", how)
	return missed("never done")
}

// loss is what came of making a leader lose.
type loss struct {
	How intrusion
	// Turn is how long it took until the sidecar whose turn it was led.
	Turn time.Duration
}

// forceLoss takes the term away from the leader, sees that it notices, and then makes the sidecar whose
// turn it is the only one whose app says that it is well: it has to compete, and to lead.
func (s *session) forceLoss(ctx context.Context, n int) loss {
	l := loss{How: losses[n%len(losses)]}
	var leader *sidecar
	s.await(ctx, leadWithin, "a leader that can lose", func() string {
		for _, each := range s.sidecars {
			if leads(each) {
				leader = each
				return ""
			}
		}
		return "nobody leads"
	})
	before := lostTerms(leader)
	mend := func() {}
	if l.How == cutLeader {
		mend = leader.proxy.Cut().End
	} else {
		s.intrude(ctx, l.How)
	}
	s.await(ctx, leadWithin, leader.name+" notices that its term was taken away: "+string(l.How), func() string {
		if now := lostTerms(leader); now > before {
			return ""
		}
		return fmt.Sprintf("it has lost %d terms, as before", before)
	})
	mend()

	turn := s.sidecars[n%len(s.sidecars)]
	began := time.Now()
	for _, each := range s.sidecars {
		if each != turn {
			each.unwell.Store(true)
			defer each.unwell.Store(false)
		}
	}
	s.await(ctx, leadWithin, turn.name+" leads when it is the only one that can", func() string {
		if leads(turn) {
			return ""
		}
		return fmt.Sprintf("it does not, after %d forced losses", n+1)
	})
	l.Turn = time.Since(began)
	return l
}

// lostTerms is how many terms were taken away from a sidecar's process, as it says.
func lostTerms(s *sidecar) int {
	p := s.running()
	if p == nil {
		return 0
	}
	n, err := strconv.Atoi(p.Metric("leasecron_leadership_lost_total"))
	if err != nil {
		return 0
	}
	return n
}

func leads(s *sidecar) bool {
	p := s.running()
	return p != nil && p.Address() != "" && p.Leads()
}
