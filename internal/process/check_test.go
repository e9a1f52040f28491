package process

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/config"
)

// A command with its arguments in one text is taken apart in the error; a path with a space is not.
func TestCommandWithSpace(t *testing.T) {
	const takenApart = `write "command": "no-such-tool", "args": ["-y","x"]`
	if err := Check(config.Server{Command: "no-such-tool -y x"}); err == nil || !strings.Contains(err.Error(), takenApart) {
		t.Errorf("Check = %v, want %s", err, takenApart)
	}
	path := filepath.Join(t.TempDir(), "no such folder", "tool.exe")
	if err := Check(config.Server{Command: path}); err == nil || strings.Contains(err.Error(), "write") {
		t.Errorf("Check of a path with a space = %v", err)
	}
}

// In the image from nothing, a command that is not there is not a mistake of the person alone: the image has no commands.
func TestCommandInImage(t *testing.T) {
	const words = "has remote and built-in servers only"
	err := Check(config.Server{Command: "no-such-tool"})
	if err == nil || strings.Contains(err.Error(), words) {
		t.Errorf("Check = %v", err)
	}
	t.Setenv("PATCHBAY_IMAGE", "scratch")
	if err := Check(config.Server{Command: "no-such-tool"}); err == nil || !strings.Contains(err.Error(), words) {
		t.Errorf("Check in the image = %v, want %q", err, words)
	}
}
