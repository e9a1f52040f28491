// Command auth-scopes serves callers with an access token. The tool refund needs a scope of its own.
// The server stands beside other pages, and logs each call with its caller.
package main

import (
	"context"
	"crypto"
	"log"
	"net/http"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

// logged writes a line for each tool call.
func logged(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != "tools/call" {
			return next.Handle(ctx, req)
		}
		start := time.Now()
		res, err := next.Handle(ctx, req)
		log.Println(auth.From(ctx).Subject, string(req.Param("name")), time.Since(start), err)
		return res, err
	})
}

// handler checks tokens of issuer with keys, or with those that the issuer publishes if there are none.
func handler(issuer string, keys ...crypto.PublicKey) http.Handler {
	srv := &mcp.Server{Name: "shop", Version: "1.0.0"}
	for _, name := range []string{"search", "refund"} {
		mcp.AddTool(srv, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return name + " is done", nil })
	}
	srv.Use(logged, policy.Middleware("shop", &policy.Require{
		Tools: map[string]policy.Requirement{"refund": {Scopes: []string{"shop:refund"}}},
	}, nil))
	guard := &auth.Guard{
		Verifiers: []auth.Verifier{&auth.JWT{Issuer: issuer, Keys: keys}},
		Resource:  &auth.ResourceMetadata{Resource: "https://shop.example.com/mcp"},
		Scopes:    []string{"shop"},
	}
	mcpHandler := guard.Protect(srv)
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcpHandler)
	mux.Handle("/.well-known/oauth-protected-resource/mcp", mcpHandler) // names the issuer to clients
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("The shop\n")) })
	return mux
}

func main() { log.Fatal(http.ListenAndServe("127.0.0.1:7420", handler("https://login.example.com"))) }
