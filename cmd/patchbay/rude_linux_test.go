package main

import (
	"os"
	"testing"

	"github.com/patchbay-dev/patchbay/bench/rude/trial"
	"github.com/patchbay-dev/patchbay/internal/long"
)

// Clients that disconnect during requests leave nothing behind in the program, and a killed program
// leaves no process. bench/rude does this for any length of time.
func TestRude(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := trial.Program{Command: []string{self}, Env: []string{testRun + "=patchbay"}}
	t.Run("disconnects", func(t *testing.T) {
		t.Parallel()
		d, err := trial.Disconnect(t.Context(), p, long.Or(10_000, 300), 1)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", *d)
		if d.Failed > 0 {
			t.Errorf("%d clients were refused or not answered", d.Failed)
		}
	})
	t.Run("kills", func(t *testing.T) {
		t.Parallel()
		k, err := trial.Kill(t.Context(), p, long.Or(50, 6), 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", *k)
	})
}
