package chaos

import (
	"hash/fnv"
	"io"
	"math/rand/v2"
	"time"
)

// dice are chances that depend on a seed and on what they are cast for, and on nothing else: not
// on the order in which callbacks arrive.
type dice struct{ *rand.Rand }

func newDice(seed uint64, of ...string) dice {
	h := fnv.New64a()
	for _, part := range of {
		_, _ = io.WriteString(h, part+"\x00")
	}
	return dice{rand.New(rand.NewPCG(seed, h.Sum64()))}
}

func (d dice) upTo(n int) int { return d.IntN(n) }

func (d dice) duration(least, most time.Duration) time.Duration {
	return least + time.Duration(d.Int64N(int64(most-least)))
}
