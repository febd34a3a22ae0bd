package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/schedule"
)

func TestJitterIsWholeMicroseconds(t *testing.T) {
	// A due time between two of them can never be reached exactly by a clock that counts in them.
	s, err := schedule.Parse("rate 1m jitter=1s")
	if err != nil {
		t.Fatal(err)
	}
	timeline, err := s.Compile(schedule.Env{Key: "a/b", FirstSeen: time.Unix(0, 0)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if j := timeline.Jitter(fmt.Sprint(i)); j%time.Microsecond != 0 || j < 0 || j >= time.Second {
			t.Fatalf("delays by %d ns", j)
		}
	}
}
