package main

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A call in progress finishes, streams end, and other pages are served, on every revision.
func TestGracefulEnd(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			mcptest.LeakCheck(t)
			ctx, stop := context.WithCancel(t.Context())
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			started := make(chan struct{})
			srv := newServer()
			srv.Use(func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					if req.Method == "tools/call" {
						close(started)
					}
					return next.Handle(ctx, req)
				})
			})
			served := make(chan error, 1)
			go func() { served <- newEndpoint(srv).Serve(ctx, ln) }()

			wire := &http.Transport{}
			defer wire.CloseIdleConnections()
			web := &http.Client{Transport: wire}
			for _, page := range []string{"/menu", "/healthz", "/readyz"} {
				res, err := web.Get("http://" + ln.Addr().String() + page)
				if err != nil || res.StatusCode != http.StatusOK {
					t.Fatalf("%s = %v, %v", page, res, err)
				}
				res.Body.Close()
			}

			client := &mcp.Client{Revisions: []mcp.Revision{rev}, HTTPClient: web}
			s, err := client.Dial(t.Context(), "http://"+ln.Addr().String()+"/mcp")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			go func() { <-started; stop() }()
			got, err := mcp.CallAs[string](t.Context(), s, "cook", map[string]any{"for": (300 * time.Millisecond).String()})
			if err != nil || got != "done" {
				t.Errorf("a call in progress = %q, %v", got, err)
			}
			if err := <-served; err != nil {
				t.Errorf("serve = %v", err)
			}
		})
	}
}
