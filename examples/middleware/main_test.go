package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A call that takes too long ends with the reason, and the log has a line for each call.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // time is fake: nothing waits
		var lines bytes.Buffer
		s := mcptest.Connect(t, newServer(slog.New(slog.NewTextHandler(&lines, nil))), &mcp.Client{}, mcp.V2026_07_28)
		defer s.Close()
		for pause, want := range map[time.Duration]string{time.Second: "waited", 3 * time.Second: "the tool took longer than 2s"} {
			if res, err := s.CallTool(t.Context(), "wait", Pause{pause}); err != nil || !strings.Contains(res.Text(), want) {
				t.Errorf("wait %v = %v, %v, want %q", pause, res, err, want)
			}
		}
		synctest.Wait()
		if n := strings.Count(lines.String(), "tool=wait"); n != 2 {
			t.Errorf("%d calls are in the log:\n%s", n, &lines)
		}
	})
}
