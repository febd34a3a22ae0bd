// Package e2e holds tests of whole sidecars: processes of the real binary, each with an app of
// its own on a real socket, against a real API server, with the rights of the example's Role.
package e2e
