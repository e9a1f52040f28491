package gateway_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A call that the end of the gateway cuts off says that the tool may have run; the error of a prompt does not.
func TestShutdownCutsOff(t *testing.T) {
	for method, want := range map[string]string{
		"tools/call":  `the call of server \"s\" was cut off; the tool may or may not have run`,
		"prompts/get": "the server is shutting down",
	} {
		srv := &mcp.Server{Name: "s"}
		ctx, stop := context.WithCancelCause(t.Context())
		mcp.AddTool(srv, mcp.Tool{Name: "work"}, func(context.Context, struct{}) (string, error) { return "", nil })
		mcp.AddPrompt(srv, mcp.Prompt{Name: "work"}, func(context.Context, struct{}) (string, error) { return "", nil })
		g := &gateway.Gateway{Name: "g"}
		if err := g.Set("s", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != method {
				return srv.Handle(ctx, req)
			}
			stop(engine.ErrShutdown)
			return nil, context.Cause(ctx)
		})); err != nil {
			t.Fatal(err)
		}
		_, err := g.Handle(ctx, &mcp.Request{Method: method, Params: json.RawMessage(`{"name":"s_work"}`)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", method, err, want)
		}
		stop(nil)
	}
}
