package sim

import (
	"context"
	"math/rand/v2"
	"time"
)

// dice is chance without a state: the same question gets the same answer, whoever asked before.
type dice uint64

// roll answers for one purpose and one asker at this moment of the simulated time.
func (d dice) roll(purpose string, who int) *rand.Rand {
	return d.of(purpose, who, time.Now().UnixNano())
}

// of answers for one purpose and what identifies the occasion.
func (d dice) of(purpose string, occasion ...any) *rand.Rand {
	h := mix(uint64(d) ^ 0x9e3779b97f4a7c15)
	h = mixString(h, purpose)
	for _, o := range occasion {
		switch o := o.(type) {
		case int:
			h = mix(h ^ uint64(o))
		case int64:
			h = mix(h ^ uint64(o))
		case string:
			h = mixString(h, o)
		default:
			panic("sim: dice take int, int64 and string")
		}
	}
	return rand.New(rand.NewPCG(h, mix(h)))
}

// askedBy is the context of a request, by which the calls that it makes are told from those of others:
// requests that were held up by the same thing go on at the same moment, and then the dice have to answer each of
// them in its own way, or who comes first would be a matter of chance.
func askedBy(who string) context.Context {
	return context.WithValue(context.Background(), askerKey{}, " for "+who)
}

type askerKey struct{}

// asker is who asks, as the name of a purpose goes on; empty: the loops of the process itself.
func asker(ctx context.Context) string {
	who, _ := ctx.Value(askerKey{}).(string)
	return who
}

func mixString(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	return mix(h)
}

// mix is the finalizer of splitmix64.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// chance reports true with probability p.
func chance(r *rand.Rand, p float64) bool { return r.Float64() < p }

// between returns a duration in [low, high], to the nanosecond, so that hardly anything happens at
// the same moment as something else.
func between(r *rand.Rand, low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(r.Int64N(int64(high-low)+1))
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
