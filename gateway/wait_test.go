package gateway_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/metrics"
)

// counted adds counters to a gateway, and returns the slowest call of the tool "work" as callers see
// it, and as the server has answered it. The counters have an error of 7 %.
func counted(g *gateway.Gateway) func() (callers, server time.Duration) {
	c := &metrics.Counters{Listed: g.Lists}
	g.Middleware = c.Around(nil)
	return func() (callers, server time.Duration) {
		for _, t := range c.Read(metrics.Total).Servers[0].Tools {
			if t.Name == "work" {
				return t.P99.Duration, t.Upstream.P99.Duration
			}
		}
		return 0, 0
	}
}

// work adds a tool that takes a second.
func work(_ int, s *mcp.Server) {
	mcp.AddTool(s, mcp.Tool{Name: "work"}, func(context.Context, struct{}) (string, error) {
		time.Sleep(time.Second)
		return "done", nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "form"}, func(ctx context.Context, _ struct{}) (string, error) {
		out, err := mcp.Elicit[numbered](ctx, "q")
		return out.Text, err
	})
}

// The time that a call waits in the gateway for the start of its server is not that of the server.
func TestTheStartIsNotTheServersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{rev: mcp.V2025_11_25, more: work, open: func(context.Context) error { time.Sleep(30 * time.Second); return nil }}
		var waits []time.Duration
		g := &gateway.Gateway{Name: "gw", OnWait: func(_ string, d time.Duration) { waits = append(waits, d) }}
		read := counted(g)
		run(t, g, gateway.Source{Name: "db", Open: f.Open})
		time.Sleep(31 * time.Second)
		called(t, connect(t, g, mcp.V2025_11_25), "db_work", nil)
		if callers, server := read(); callers < 28*time.Second || server > 2*time.Second || len(waits) != 1 || waits[0] != 30*time.Second {
			t.Errorf("the caller has waited %v, the server took %v, OnWait got %v; want 31s, 1s, 30s", callers, server, waits)
		}
	})
}

// The time that a call waits for its turn is not that of the server, and the status says for how
// long which question has been open.
func TestTheTurnIsNotTheServersTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{rev: mcp.V2025_11_25, more: work}
		var waits []time.Duration
		g := &gateway.Gateway{Name: "gw", OnWait: func(_ string, d time.Duration) { waits = append(waits, d) }}
		read := counted(g)
		run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: gateway.Shared})
		front := &mcp.Server{Name: "gw", Version: "1", Handler: g}
		slow := false
		carl := mcptest.Connect(t, front, &mcp.Client{Name: "c", Version: "1", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if slow {
				time.Sleep(58 * time.Second)
			}
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"text": "a"}}, nil
		}}, mcp.V2025_11_25)
		bob := connect(t, g, mcp.V2025_11_25)
		called(t, carl, "db_form", nil) // callers take turns from now on
		slow = true
		var calls sync.WaitGroup
		calls.Go(func() { called(t, carl, "db_form", nil) })
		synctest.Wait()
		calls.Go(func() { called(t, bob, "db_work", nil) })
		time.Sleep(50 * time.Second)
		if s := g.Status()[0]; s.Waiting != 1 || time.Since(s.Question) != 50*time.Second {
			t.Errorf("the status has %d waiting calls and a question of %v, want 1 and 50s", s.Waiting, time.Since(s.Question))
		}
		calls.Wait()
		if s := g.Status()[0]; s.Waiting != 0 || !s.Question.IsZero() {
			t.Errorf("at the end, the status has %d waiting calls and a question of %v", s.Waiting, s.Question)
		}
		if callers, server := read(); callers < 55*time.Second || server > 2*time.Second || len(waits) != 1 || waits[0] != 58*time.Second {
			t.Errorf("the caller has waited %v, the server took %v, OnWait got %v; want 59s, 1s, 58s", callers, server, waits)
		}
	})
}
