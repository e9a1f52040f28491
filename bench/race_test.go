//go:build race

package bench_test

// raceEnabled reports whether the race detector is on, which allocates too.
const raceEnabled = true
