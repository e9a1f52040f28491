package steer

import (
	"context"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

func BenchmarkCalls(b *testing.B) {
	h := new(Calls).Around("shop")(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, nil }))
	req := &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"buy"}`)}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			h.Handle(b.Context(), req)
		}
	})
}
