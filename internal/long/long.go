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

// Raced reports whether the race detector makes a test many times slower, and it should do less for that. It need not with
// PATCHBAY_LONG or PATCHBAY_RACE set and not empty: .ci/long runs every test under the detector with the second.
func Raced() bool { return raced && !On() && os.Getenv("PATCHBAY_RACE") == "" }

// OrRaced returns raced where Raced holds, and full otherwise.
func OrRaced[T any](full, raced T) T {
	if Raced() {
		return raced
	}
	return full
}

// WithoutRace skips a test under the race detector, which makes it too slow. Scripts run the tests
// that call it once more without the detector.
func WithoutRace(t testing.TB) {
	t.Helper()
	if raced {
		t.Skip("takes too long with the race detector: runs without it")
	}
}
