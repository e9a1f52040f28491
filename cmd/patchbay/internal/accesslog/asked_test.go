package accesslog

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A line has the time for which the caller had to answer a question while the request ran.
func TestAskedTime(t *testing.T) {
	for rev, want := range map[mcp.Revision]float64{mcp.V2025_06_18: 60_000, mcp.V2025_11_25: 60_000, mcp.V2026_07_28: 0} {
		t.Run(string(rev), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out bytes.Buffer
				log := New(&out, noFault(t))
				srv := &mcp.Server{Name: "s"}
				mcp.AddTool(srv, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
					if _, err := mcp.Confirm(ctx, "go on?"); err != nil {
						return "", err
					}
					time.Sleep(time.Second)
					return "done", nil
				})
				srv.Use(log.Middleware())
				c := &mcp.Client{Name: "c", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					time.Sleep(time.Minute)
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
				}}
				s := mcptest.Connect(t, srv, c, rev)
				if res, err := s.CallTool(t.Context(), "ask", nil); err != nil || res.IsError {
					t.Fatal(res, err)
				}
				log.Close()
				var last map[string]any
				for text := range bytes.Lines(out.Bytes()) {
					var line map[string]any
					if err := json.Unmarshal(text, &line); err != nil {
						t.Fatal(err)
					}
					if line["method"] == "tools/call" {
						last = line
					}
				}
				ms, _ := last["ms"].(float64)
				asked, _ := last["asked"].(float64)
				if asked < want || asked > want+100 || ms-asked < 1000 || ms-asked > 1100 {
					t.Errorf("the last call has %v ms, %v of them with a question; want %v and 1,000 more", ms, asked, want)
				}
			})
		})
	}
}
