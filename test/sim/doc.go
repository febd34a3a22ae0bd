// Package sim runs a whole cluster in one process and in simulated time: several sidecars with the
// real engine, planner and ledger documents, in front of an API server, an election and an app that
// are simulated and misbehave. One seed decides everything that happens, and the same seed gives
// the same run.
//
// The app of a pod lives as long as the pod does. What it has accepted with 202 it works on whatever
// becomes of its sidecar, which may be killed or stopped and come back in the same pod, and says how it
// ended until somebody has heard it.
//
// What the cluster promises is checked at every write of the ledger and at every request that
// reaches the app, and once more when the faults have ended and the cluster had time to recover.
//
// [Run] has to be called inside a testing/synctest bubble. Nothing in this package decides by the
// order in which goroutines happen to run: whoever needs chance asks [dice] with who it is, what
// for and when.
package sim
