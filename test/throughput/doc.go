// Package throughput measures how fast callbacks leave: as many as possible through the invoker,
// to a trivial server in another process, against a bare net/http client that sends the same
// body with the same concurrency in the same run. make bench-invoker runs it at full length and
// prints the figures; among the other tests it runs briefly, and only the number of requests
// counts.
package throughput
