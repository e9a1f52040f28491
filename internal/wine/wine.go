// Package wine skips tests that cannot pass under Wine, where .ci/wine runs the tests for Windows.
// Only tests import it.
package wine

import "testing"

// Skip skips a test under Wine, because of a fault or a limit of Wine that reason names. On Windows
// and on every other system the test runs.
func Skip(t testing.TB, reason string) {
	t.Helper()
	if on() {
		t.Skip("Wine: " + reason)
	}
}
