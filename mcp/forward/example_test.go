package forward_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/mcp/level"
)

// A middleware looks at what a tool tells its caller.
func ExampleWithNotify() {
	srv := &mcp.Server{Name: "s"}
	mcp.AddTool(srv, mcp.Tool{Name: "work"}, func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Log(ctx).Error("disk full")
		return "done", nil
	})
	watched := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		return srv.Handle(forward.WithNotify(ctx, func(method string, params json.RawMessage) error {
			fmt.Println("told:", method)
			return forward.Notify(ctx, method, params)
		}), req)
	})
	s, err := (&mcp.Client{LogLevel: level.Notice}).Open(context.Background(), watched)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	fmt.Println(mcp.CallAs[string](context.Background(), s, "work", nil))
	// Output:
	// told: notifications/message
	// done <nil>
}
