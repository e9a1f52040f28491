// Package long has the switch between the short and the long form of a test. Only tests import
// it.
//
// The gate, .ci/run, runs the short forms, and .ci/long runs the long ones, with
// PATCHBAY_LONG set.
package long

import (
	"os"
	"testing"
)

// On reports whether tests run in their long form: PATCHBAY_LONG is set and not empty.
func On() bool { return os.Getenv("PATCHBAY_LONG") != "" }

// Or returns full in the long form, and short otherwise.
func Or[T any](full, short T) T {
	if On() {
		return full
	}
	return short
}

// Only skips a test that has no short form.
func Only(t testing.TB) {
	t.Helper()
	if !On() {
		t.Skip("runs in .ci/long (PATCHBAY_LONG=1)")
	}
}

// Raced reports whether a test is in its short form and the race detector makes it many times slower.
func Raced() bool { return raced && !On() }

// WithoutRace skips a test under the race detector, which makes it too slow. Scripts run the tests
// of a file that calls it once more without the detector.
func WithoutRace(t testing.TB) {
	t.Helper()
	if raced {
		t.Skip("moves much data: runs without the race detector")
	}
}
