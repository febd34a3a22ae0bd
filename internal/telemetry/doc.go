// Package telemetry names every metric of a sidecar in one place and turns engine events into
// metrics and log lines.
//
// Its rules: every name starts with leasecron_ and counts in base units; no label is called
// job or instance, because Prometheus would rename it; every label has a bounded set of
// values, and the series of a job are there, at zero, from the moment the job is loaded until
// it leaves. Counters are exported by whoever did the work. What is true of the cluster (next
// instants, last successes, pauses) is exported by the leader only, so that a former leader
// does not go on telling old news.
//
// It starts no goroutine: gauges are read when somebody scrapes.
package telemetry
