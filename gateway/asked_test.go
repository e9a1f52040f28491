package gateway_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/metrics"
)

// The time for which a person thinks about a question is neither that of the server nor that of a call,
// whatever the caller and the server speak.
func TestTheQuestionIsNotTheServersTime(t *testing.T) {
	asking := func(_ int, s *mcp.Server) {
		mcp.AddTool(s, mcp.Tool{Name: "form"}, func(ctx context.Context, _ struct{}) (string, error) {
			out, err := mcp.Elicit[numbered](ctx, "q")
			if err != nil {
				return "", err
			}
			time.Sleep(time.Second)
			return out.Text, nil
		})
	}
	revisions := []mcp.Revision{mcp.V2025_06_18, mcp.V2025_11_25, mcp.V2026_07_28}
	for _, front := range revisions {
		for _, back := range revisions {
			t.Run(string(front)+" to "+string(back), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := &farm{rev: back, more: asking}
					waited := time.Duration(0)
					g := &gateway.Gateway{Name: "gw", OnWait: func(_ string, d time.Duration) { waited += d }}
					c := &metrics.Counters{Listed: g.Lists}
					g.Middleware = c.Around(nil)
					run(t, g, gateway.Source{Name: "db", Open: f.Open})
					srv := &mcp.Server{Name: "gw", Version: "1", Handler: g}
					srv.Use(c.Front())
					s := mcptest.Connect(t, srv, &mcp.Client{Name: "c", Version: "1", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
						time.Sleep(time.Minute)
						return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"text": "a"}}, nil
					}}, front)
					began := time.Now()
					called(t, s, "db_form", nil)
					if took := time.Since(began); took < 61*time.Second {
						t.Errorf("the call has taken %v, want 61s", took)
					}
					now := c.Read(metrics.Total)
					for _, r := range now.Requests {
						if r.Name == "tools/call" && (r.P99.Duration > 2*time.Second || r.P99.Duration < 900*time.Millisecond) {
							t.Errorf("the request has %v, want 1s", r.P99)
						}
					}
					tool := now.Servers[0].Tools[0]
					for what, d := range map[string]time.Duration{"call": tool.P99.Duration, "server": tool.Upstream.P99.Duration} {
						if d > 2*time.Second || d < 900*time.Millisecond {
							t.Errorf("the %s has %v, want 1s", what, d)
						}
					}
					if waited > time.Second {
						t.Errorf("OnWait got %v", waited)
					}
				})
			})
		}
	}
}
