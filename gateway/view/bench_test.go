package view_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/gateway/view"
	"github.com/patchbay-dev/patchbay/mcp"
)

// BenchmarkFindTools searches 3,200 tools of 32 servers, with the whole view and a part of it. The servers
// are handlers, which are asked for their lists each time, or have connections, whose lists the gateway
// keeps, as in "patchbay up".
func BenchmarkFindTools(b *testing.B) {
	ready := make(chan struct{}, 1000)
	handlers := &gateway.Gateway{Name: "all"}
	connected := &gateway.Gateway{Name: "all", OnStatus: func(s gateway.Status) {
		if s.Tools > 0 {
			ready <- struct{}{}
		}
	}}
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for server := range 32 {
		srv := &mcp.Server{Name: fmt.Sprint("s", server)}
		for tool := range 100 {
			mcp.AddTool(srv, mcp.Tool{Name: fmt.Sprint("tool", tool), Description: strings.Repeat("does something useful with records ", 5)}, func(context.Context, message) (string, error) { return "", nil })
		}
		if err := handlers.Set(srv.Name, srv); err != nil {
			b.Fatal(err)
		}
		go connected.Run(ctx, gateway.Source{Name: srv.Name, Open: func(ctx context.Context) (gateway.Upstream, error) {
			return new(mcp.Client).Open(ctx, srv)
		}})
	}
	for range 32 {
		<-ready
	}
	for how, g := range map[string]*gateway.Gateway{"handlers": handlers, "connected": connected} {
		for name, tools := range map[string][]string{"everything": nil, "part": {"s1*", "s2*"}} {
			b.Run(how+"/"+name, func(b *testing.B) {
				s, err := new(mcp.Client).Open(b.Context(), (&view.View{Name: "v", Tools: tools, Search: new(view.Search)}).Middleware()(g))
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				find := func() {
					if res, err := s.CallTool(b.Context(), "find_tools", map[string]any{"query": "useful tool77 of s12"}); err != nil || !strings.Contains(res.Text(), "s12_tool77") {
						b.Fatal(res, err)
					}
				}
				find()
				b.ReportAllocs()
				for b.Loop() {
					find()
				}
			})
		}
	}
}
