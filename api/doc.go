// Package api serves HTTP on two addresses.
//
// The pod network (default :9470) gets what probes, Prometheus and Services ask for: /leader,
// /metrics, /livez, /readyz. It changes nothing.
//
// Loopback (default 127.0.0.1:9471) gets the API, /v1/…, described by /v1/openapi.json. Whoever
// can reach it is trusted, which is why it refuses to listen anywhere else, and refuses what a
// browser was lured into sending: a Host that is not a loopback name, and writes from another
// origin.
//
// Neither liveness nor readiness depends on leadership or on the API server: a sidecar's
// readiness counts for its whole pod. Everything is answered from memory except what Engine
// says it reads, and nothing runs between requests.
package api
