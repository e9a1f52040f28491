package middleware

import (
	"context"
	"fmt"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// MaxResult returns a middleware that refuses results longer than n bytes of JSON, in the form of
// revision 2026-07-28. In place of the result of a tool the caller gets a tool error that names both
// sizes, so that a model can ask for less; in place of a resource, a prompt or the result of a task,
// a JSON-RPC error with [jsonrpc.CodeInternal]. Results are not cut, because the rest of JSON, of
// an image or of a list could be taken for the whole. Other results, such as lists, pass. MaxResult
// panics if n is not positive.
func MaxResult(n int) mcp.Middleware {
	if n <= 0 {
		panic(fmt.Errorf("middleware: MaxResult: %d bytes; give a positive number", n))
	}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.Handle(ctx, req)
			if err != nil {
				return nil, err
			}
			switch req.Method {
			case "tools/call", "prompts/get", "resources/read", "tasks/get":
			default:
				return res, nil
			}
			if _, made := res.(*mcp.CreateTaskResult); made {
				return res, nil
			}
			size := len(res.JSON())
			if size <= n {
				return res, nil
			}
			const long = "the result of %s has %d bytes, more than the limit of %d"
			const less = "; ask for less, for instance with a filter or in parts"
			name := text.Short(req.Method)
			if of := nameOf(req); of != "" {
				name = fmt.Sprintf("%q", text.Short(of))
			}
			switch req.Method {
			case "tools/call":
				return &mcp.ToolResult{IsError: true, Content: []mcp.Content{mcp.Text(fmt.Sprintf(long+less, name, size, n))}}, nil
			case "tasks/get":
				return nil, mcp.Errorf(jsonrpc.CodeInternal, long+"; call its tool again and"+less[1:], "task "+name, size, n)
			}
			return nil, mcp.Errorf(jsonrpc.CodeInternal, long, name, size, n)
		})
	}
}
