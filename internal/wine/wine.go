// Package wine recognizes Wine, where .ci/wine runs the tests for Windows. Only tests import it, to
// leave out what cannot pass there.
package wine

import (
	"errors"
	"io"
	"strings"
	"testing"
)

// On reports whether the system is Wine, and not Windows or another one.
func On() bool { return on() }

// Skip skips a test under Wine, because of a fault or a limit of Wine that reason names. On Windows
// and on every other system the test runs.
func Skip(t testing.TB, reason string) {
	t.Helper()
	if On() {
		t.Skip("Wine: " + reason)
	}
}

// Retry calls f, which starts a program and may read what it says first. Under Wine it calls f up to twice more if Wine could not start
// it: on a busy machine that fails now and then with an "Internal error", or, where a shell starts it, with [io.EOF].
func Retry(f func() error) error {
	err := f()
	for range 2 {
		if !On() || err == nil || !errors.Is(err, io.EOF) && !strings.Contains(err.Error(), "Internal error.") {
			break
		}
		err = f()
	}
	return err
}
