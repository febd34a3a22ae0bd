//go:build !race

package sim_test

const (
	raceEnabled = false
	someSeeds   = 250 // what a minute of one processor can play
)
