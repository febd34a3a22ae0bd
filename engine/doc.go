// Package engine runs the jobs of one app. It asks plan what is due, commits the answer to the
// ledger, calls the app through an Invoker and commits the outcome. Each step is committed before
// it is acted on: a crash may leave a run Lost, never unknown, and never started twice.
//
// It does not parse configuration, does not know HTTP or Kubernetes, and does not decide who leads.
package engine
