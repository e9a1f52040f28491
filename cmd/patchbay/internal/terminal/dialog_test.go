package terminal

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// TestInterruptedQuestion ends a question when its call is cancelled, without any input.
func TestInterruptedQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		typed, unblock := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		var said strings.Builder
		d := &Dialog{Keys: NewKeyboard(typed), Talk: &Talk{W: &said}, Server: "x"}
		if _, err := d.Ask(ctx, &mcp.ElicitRequest{Message: "Please?", URL: "https://example.com/"}); err != context.Canceled {
			t.Errorf("the question ended with %v, want %v", err, context.Canceled)
		}
		unblock.Close()
	})
}
