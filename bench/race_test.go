//go:build race

package bench_test

// raceEnabled tells that the race detector is on, which allocates too.
const raceEnabled = true
