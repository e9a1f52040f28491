package guard

import (
	"os"
	"path/filepath"
	"testing"
)

// A command is found in the PATH of its own environment, as npm.cmd by the name npm.
func TestPath(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	tool := filepath.Join(second, "some-tool.cmd")
	if err := os.WriteFile(tool, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, _, err := Command("some-tool", []string{"x"}, []string{"PATH=" + first, "Path=" + first + ";" + second})
	if err != nil || cmd.Err != nil || cmd.Path != tool || len(cmd.Args) != 2 {
		t.Errorf("Command = %q %q, %v, %v; want %q", cmd.Path, cmd.Args, cmd.Err, err, tool)
	}
	if cmd, _, _ := Command("no-such-tool", nil, []string{"PATH=" + second}); cmd.Err == nil {
		t.Error("a command that does not exist is found")
	}
}
