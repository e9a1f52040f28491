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

// BenchmarkFindTools searches 3,200 tools of 32 servers, with the whole view and a part of it.
func BenchmarkFindTools(b *testing.B) {
	g := &gateway.Gateway{Name: "all"}
	for server := range 32 {
		srv := &mcp.Server{Name: fmt.Sprint("s", server)}
		for tool := range 100 {
			mcp.AddTool(srv, mcp.Tool{Name: fmt.Sprint("tool", tool), Description: strings.Repeat("does something useful with records ", 5)}, func(context.Context, message) (string, error) { return "", nil })
		}
		if err := g.Set(fmt.Sprint("s", server), srv); err != nil {
			b.Fatal(err)
		}
	}
	for name, tools := range map[string][]string{"everything": nil, "part": {"s1*", "s2*"}} {
		b.Run(name, func(b *testing.B) {
			s, err := new(mcp.Client).Open(b.Context(), (&view.View{Name: "v", Tools: tools, Search: new(view.Search)}).Middleware()(g))
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			b.ReportAllocs()
			for b.Loop() {
				if res, err := s.CallTool(b.Context(), "find_tools", map[string]any{"query": "useful tool77 of s12"}); err != nil || !strings.Contains(res.Text(), "s12_tool77") {
					b.Fatal(res, err)
				}
			}
		})
	}
}
