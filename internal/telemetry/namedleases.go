package telemetry

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	leasesHeldDesc     = desc("named_leases_held", "Named leases that were acquired through this sidecar and are valid now.")
	leasesAcquiredDesc = desc("named_leases_acquired_total", "Named leases that were acquired through this sidecar.")
	leasesLostDesc     = desc("named_leases_renewals_refused_total",
		"Renewals of named leases that this sidecar refused because the lease was lost: it had expired, or somebody else has it.")
)

// NamedLeases is what a sidecar did with the named leases of the app's own work. The names are the
// app's, so there is no label of them.
type NamedLeases struct {
	Held                      int
	Acquired, RenewalsRefused int64
}

// SetNamedLeases says where to read that, at each scrape. Without it the metrics are not exported.
func (t *Telemetry) SetNamedLeases(f func() NamedLeases) { t.namedLeases.read.Store(&f) }

// namedLeases exports it.
type namedLeases struct {
	read atomic.Pointer[func() NamedLeases]
}

// Describe implements [prometheus.Collector].
func (c *namedLeases) Describe(ch chan<- *prometheus.Desc) {
	ch <- leasesHeldDesc
	ch <- leasesAcquiredDesc
	ch <- leasesLostDesc
}

// Collect implements [prometheus.Collector].
func (c *namedLeases) Collect(ch chan<- prometheus.Metric) {
	f := c.read.Load()
	if f == nil {
		return
	}
	now := (*f)()
	ch <- constGauge(leasesHeldDesc, float64(now.Held))
	ch <- prometheus.MustNewConstMetric(leasesAcquiredDesc, prometheus.CounterValue, float64(now.Acquired))
	ch <- prometheus.MustNewConstMetric(leasesLostDesc, prometheus.CounterValue, float64(now.RenewalsRefused))
}
