package policy_test

import (
	"context"
	"fmt"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

func Example() {
	srv := &mcp.Server{Name: "shop", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "search"}, func(context.Context, nothing) (string, error) { return "found", nil })
	mcp.AddTool(srv, mcp.Tool{Name: "refund"}, func(context.Context, nothing) (string, error) { return "refunded", nil })
	srv.Use(policy.Middleware("shop", &policy.Require{
		Tools: map[string]policy.Requirement{"refund": {Scopes: []string{"shop:refund"}}},
	}, nil))

	// An auth.Guard in front of the server sets the principal of each request.
	ctx := auth.With(context.Background(), &auth.Principal{ID: "apikey#ada"})
	call := func(ctx context.Context) {
		res, err := srv.Handle(ctx, &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"refund"}`)})
		if err != nil {
			fmt.Println("refused:", err)
			return
		}
		fmt.Println(res.(*mcp.ToolResult).Text())
	}
	call(ctx)
	call(auth.With(ctx, &auth.Principal{ID: "apikey#ada", Scopes: []string{"shop:refund"}}))
	// Output:
	// refused: this needs the scope shop:refund
	// refunded
}
