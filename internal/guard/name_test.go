package guard_test

import (
	"testing"

	"github.com/patchbay-dev/patchbay/internal/guard"
)

// The errors of package mcp name a process by its first argument: the command, not its guard.
func TestCommandNamesTheServer(t *testing.T) {
	cmd, leash, err := guard.Command("python3", []string{"server.py"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer leash.Release()
	if cmd.Args[0] != "python3" {
		t.Errorf("the command under a guard is named %q, want python3", cmd.Args[0])
	}
}
