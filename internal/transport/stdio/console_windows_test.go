package stdio

import (
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/wine"
)

// Ctrl-Break ends a server that ignores the end of its input, and not this process.
func TestCtrlBreak(t *testing.T) {
	wine.Skip(t, "it has no console outside of a desktop")
	c := start(t, command("deaf"))
	readLine(t, c)
	c.Conn().Close()
	<-c.exited
	if state := c.cmd.ProcessState.String(); !strings.EqualFold(state, "exit status 0xc000013a") { // STATUS_CONTROL_C_EXIT
		t.Errorf("the server ended with %s, want the status of Ctrl-Break", state)
	}
}
