package telemetry_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasecron/leasecron/config"
	"github.com/leasecron/leasecron/engine"
	"github.com/leasecron/leasecron/internal/telemetry"
)

// BenchmarkScrape is what a leader of two thousand jobs pays for a scrape, the text aside.
func BenchmarkScrape(b *testing.B) {
	registry := prometheus.NewRegistry()
	t := telemetry.New(registry, telemetry.Options{Now: func() time.Time { return noon }})
	s := engine.Status{Leading: true}
	var all []config.Job
	for i := range 2000 {
		j := status(fmt.Sprint("job-", i))
		j.SuccessDue = noon
		s.Jobs, all = append(s.Jobs, j), append(all, j.Job)
	}
	t.JobsLoaded(all)
	t.SetStatus(func() engine.Status { return s })
	b.ReportAllocs()
	for b.Loop() {
		if _, err := registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
