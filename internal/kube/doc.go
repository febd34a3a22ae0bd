// Package kube is the one place that speaks to the Kubernetes API server. It reads and replaces
// single named objects, watches them, and says what a failed write leaves behind.
//
// What it promises:
//
//   - A call ends when its context ends, costs one request, and is never repeated behind the
//     caller's back: only the caller knows whether its write may be sent twice.
//   - A call that hangs costs nothing but itself. Each Client has connections of its own, and they
//     speak HTTP/1.1, in which a call that is given up closes its own connection. On HTTP/2 all
//     calls share one, and a dead one takes them all along until a ping finds out.
//   - There is no limit of requests on this side: whoever calls decides how often.
//   - A watch goes on until its context ends, however often it breaks, and says when it is down.
//
// It is built on client-go's rest package and a scheme of just the kinds used. The typed clientset
// and kubernetes/scheme nearly double the program and stay out.
package kube
