// Package faultproxy stands between a client and the API server and breaks their traffic on
// request: slow, unanswered, reset and refused requests, answers lost after the write was
// done, and whole partitions. It ends TLS on both sides, so that it can tell requests apart,
// and passes watches through as they stream.
//
//	p := faultproxy.Start(t, cfg) // cfg: of a controlplane, say
//	client := rest.RESTClientFor(p.Config()) // the same rights, by way of the proxy
//
//	// The next update of a Lease is done, but its answer never arrives:
//	p.Inject(faultproxy.DropAnswer().Times(1), faultproxy.Verb("update"), faultproxy.Resource("leases"))
//
//	p.Blackhole() // packets vanish, connections stay: a partition
//	p.Cut()       // connections end, new ones are refused: a dead server
//	p.Heal()      // everything works again
//
//	e := p.Befall(faultproxy.Reset(), faultproxy.Resource("leases"))
//	e.End()  // this fault is over, others go on
//	e.Hits() // what it has befallen: a fault that nothing met proves nothing
//
//	p.Count(faultproxy.Verb("update")) // how many requests there were
//
// Who the client is, is decided by the proxy's own connection where the access is a client
// certificate, and by the client's Authorization header where it is a token. So clients with
// different tokens may share a proxy (ConfigFor).
//
// Go's HTTP transport repeats a GET by itself when a reused connection breaks; the proxy sees
// and counts both.
package faultproxy
