package gateway_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// BenchmarkCall is a call through the gateway between the eras, without the cost of wires.
func BenchmarkCall(b *testing.B) {
	for _, pair := range []struct{ front, back mcp.Revision }{
		{mcp.V2026_07_28, mcp.V2026_07_28}, {mcp.V2025_11_25, mcp.V2026_07_28},
		{mcp.V2026_07_28, mcp.V2025_11_25}, {mcp.V2025_11_25, mcp.V2025_11_25},
	} {
		b.Run(fmt.Sprintf("front=%s/back=%s", pair.front, pair.back), func(b *testing.B) {
			ready := make(chan struct{}, 100)
			g := &gateway.Gateway{Name: "gw", Version: "1", OnStatus: func(s gateway.Status) {
				if s.State == gateway.Ready && s.Tools > 0 {
					ready <- struct{}{}
				}
			}}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				g.Run(ctx, gateway.Source{Name: "db", Open: func(ctx context.Context) (gateway.Upstream, error) {
					near, far := jsonrpc.Pipe()
					go newsServer("db").Serve(context.WithoutCancel(ctx), far)
					c := &mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{pair.back}}
					gateway.Relay(ctx, c)
					return c.Connect(ctx, mcptest.Wire(near))
				}})
			}()
			defer func() { cancel(); <-done }()
			<-ready
			s := mcptest.Connect(b, &mcp.Server{Name: "gw", Version: "1", Handler: g}, &mcp.Client{Name: "c", Version: "1"}, pair.front)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.CallTool(b.Context(), "db_whoami", nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
