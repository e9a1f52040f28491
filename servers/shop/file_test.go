package shop_test

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/servers/shop"
)

// There is one progress notification and one log message for each file, on every revision
// and wire, and none when nothing waits.
func TestProcessFilesTells(t *testing.T) {
	newClient := func() *mcp.Client { return &mcp.Client{LogLevel: slog.LevelInfo} }
	mcptest.Every(t, func() *mcp.Server { return newServer(t, shop.Options{}) }, newClient, func(t *testing.T, s *mcp.Session) {
		for _, want := range []int{5, 0} {
			var progress, logs []string
			res, err := s.CallTool(t.Context(), "process-files", args{"message": "spring delivery"},
				mcp.OnProgress(func(done, total float64, message string) {
					progress = append(progress, fmt.Sprintf("%g/%g %s", done, total, message))
				}),
				mcp.OnLog(func(m mcp.LogMessage) { logs = append(logs, string(m.Data)) }))
			if err != nil || res.IsError || !strings.Contains(res.Text(), `"message":"spring delivery"`) {
				t.Fatalf("process-files = %v, %v", res, err)
			}
			if len(progress) != want || len(logs) != want {
				t.Errorf("progress %q and logs %q, want %d of each", progress, logs, want)
			}
			for _, l := range logs {
				if !strings.Contains(l, "spring delivery") {
					t.Errorf("log %s lacks the message", l)
				}
			}
			if want > 0 && s.Revision() >= mcp.V2025_03_26 && len(progress) == want && progress[4] != "5/5 delivery-0416-beam.csv" {
				t.Errorf("last progress = %q", progress[4])
			}
		}
		// 12 were there, 10 were delivered.
		if got := stock(t, s, "prd-1001"); got != 22 {
			t.Errorf("stock = %d, want 22", got)
		}
	})
}

// Two calls at once share the files.
func TestProcessFilesTogether(t *testing.T) {
	s := connect(t)
	var calls sync.WaitGroup
	var got [4]files
	for i := range got {
		calls.Go(func() { got[i], _ = mcp.CallAs[files](t.Context(), s, "process-files", nil) })
	}
	calls.Wait()
	sum := 0
	for _, f := range got {
		sum += f.Processed
	}
	if sum != 5 {
		t.Errorf("%v: %d files were processed, want 5", got, sum)
	}
	if got := stock(t, s, "prd-1021"); got != 50 {
		t.Errorf("stock = %d, want 50", got)
	}
}
