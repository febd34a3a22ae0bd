// Package pack tests what sidecar pack and sidecar inject make, against a real API server: that it is accepted
// where pod security is restricted, that it is just enough for real sidecars, and that applying it again loses
// nothing. It holds tests only.
package pack
