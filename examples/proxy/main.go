// Command proxy serves another server under other names of tools. Everything else passes unchanged:
// questions, progress, resources, and any revision on either side.
//
//	go run ./examples/proxy patchbay serve shop
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"os/exec"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// rename gives tools other names, from the server's to the caller's. The old names are unknown then.
func rename(names map[string]string) mcp.Middleware {
	old := map[string]string{}
	for from, to := range names {
		old[to] = from
	}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case "tools/list":
				res, err := next.Handle(ctx, req)
				if err != nil {
					return nil, err
				}
				var list mcp.List[mcp.Tool]
				if err := json.Unmarshal(res.JSON(), &list); err != nil {
					return nil, err
				}
				for _, tool := range list.Items {
					if to, ok := names[tool.Name]; ok {
						tool.Name = to
					}
				}
				return &list, nil
			case "tools/call":
				var params map[string]json.RawMessage
				var name string
				if err := json.Unmarshal(req.Params, &params); err != nil {
					return nil, err
				}
				if err := json.Unmarshal(params["name"], &name); err != nil {
					return nil, err
				}
				if _, renamed := names[name]; renamed {
					return nil, mcp.Errorf(jsonrpc.CodeInvalidParams, "no tool %q", name)
				}
				if from, ok := old[name]; ok {
					params["name"], _ = json.Marshal(from)
					raw, err := json.Marshal(params)
					if err != nil {
						return nil, err
					}
					req = &mcp.Request{Method: req.Method, Params: raw}
				}
			}
			return next.Handle(ctx, req)
		})
	}
}

func newProxy(upstream mcp.Handler) *mcp.Server {
	srv := &mcp.Server{Name: "proxy", Version: "1.0.0", Handler: upstream}
	srv.Use(rename(map[string]string{"place-order": "buy", "products": "catalogue"}))
	return srv
}

func main() {
	ctx := context.Background()
	ask := func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return nil, mcp.ErrNotSupported }
	// OnElicit declares the capability; questions go to the caller of the proxy.
	client := &mcp.Client{Name: "proxy", Version: "1.0.0", OnElicit: ask}
	upstream, err := client.Start(ctx, exec.Command(os.Args[1], os.Args[2:]...))
	if err != nil {
		log.Fatal(err)
	}
	defer upstream.Close()
	if err := newProxy(upstream).ServeStdio(ctx); err != nil {
		log.Print(err)
	}
}
