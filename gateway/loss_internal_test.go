package gateway

import (
	"errors"
	"fmt"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// The error tells a caller how a server's process ended and what it wrote last, but not its
// command.
func TestLossForCallers(t *testing.T) {
	exit := &mcp.ExitError{Command: "/home/ada/bin/rude", State: "exit status 3", Stderr: "no db"}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, "its connection was lost"},
		{exit, "its connection was lost: exit status 3; it last said: \"no db\""},
		{fmt.Errorf("call: %w", exit), "its connection was lost: exit status 3; it last said: \"no db\""},
		{errors.New("reset"), "its connection was lost: reset"},
	} {
		if got := lostWhy(tt.err); got != tt.want {
			t.Errorf("lostWhy(%v) = %q, want %q", tt.err, got, tt.want)
		}
	}
}
