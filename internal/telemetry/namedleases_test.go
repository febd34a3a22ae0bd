package telemetry_test

import (
	"testing"

	"github.com/leasecron/leasecron/internal/telemetry"
)

func TestNamedLeases(t *testing.T) {
	w := newWorld(t)
	names := []string{"named_leases_acquired_total", "named_leases_held", "named_leases_renewals_refused_total"}
	w.want([]string{}, names...)
	var now telemetry.NamedLeases
	w.SetNamedLeases(func() telemetry.NamedLeases { return now })
	w.want([]string{"named_leases_acquired_total{} 0", "named_leases_held{} 0", "named_leases_renewals_refused_total{} 0"}, names...)
	now = telemetry.NamedLeases{Held: 2, Acquired: 5, RenewalsRefused: 1}
	w.want([]string{"named_leases_acquired_total{} 5", "named_leases_held{} 2", "named_leases_renewals_refused_total{} 1"}, names...)
}
