package schedule_test

import (
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"github.com/leasecron/leasecron/engine/schedule"
)

// Every zone's table says what the standard library says, at every change, right before it,
// and at random instants up to far ahead.
func TestZoneTables(t *testing.T) {
	names := schedule.ZoneNames()
	if len(names) < 590 {
		t.Fatalf("%d zones", len(names))
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i, name := range names {
		if !long && i%5 != 0 {
			continue
		}
		zone, err := schedule.LoadZone(name)
		if err != nil {
			t.Fatal(err)
		}
		check := func(utc int64) (until int64) {
			got, until, err := schedule.ZoneOffset(name, utc)
			if err != nil {
				t.Fatal(err)
			}
			if _, want := time.Unix(utc, 0).In(zone).Zone(); got != int64(want) {
				t.Fatalf("%s at %v: offset %d, want %d", name, time.Unix(utc, 0).UTC(), got, want)
			}
			return until
		}
		const begin, end = -5364662400, 4400000000 // 1800 to 2109
		for at := int64(begin); at < end; {
			until := check(at)
			check(min(until, end) - 1)
			at = until
		}
		for range 200 {
			check(begin + random.Int64N(230_000_000_000)) // to about 9000
		}
	}
}

func TestZoneDataVersion(t *testing.T) {
	if v := schedule.ZoneDataVersion(); !regexp.MustCompile(`^20\d\d[a-z]$`).MatchString(v) {
		t.Errorf("ZoneDataVersion() = %q, want a release such as 2025c", v)
	}
}
