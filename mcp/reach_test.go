package mcp_test

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A session over HTTP knows whether its server can be reached: at once from a GET stream, else from
// the next request. Over a pipe there is nothing to know.
func TestReach(t *testing.T) {
	pipe := mcptest.Connect(t, &mcp.Server{Name: "s", Version: "1"}, &mcp.Client{Name: "c", Version: "1"}, mcp.V2025_11_25)
	if changed, err := pipe.Reach(); changed != nil || err != nil {
		t.Errorf("over a pipe: %v, %v", changed, err)
	}
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			srv := &mcp.Server{Name: "s", Version: "1"}
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			addr := l.Addr().String()
			web := &http.Server{Handler: srv}
			defer web.Close()
			go web.Serve(l)
			c := &mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{rev}}
			c.Use(func(next mcp.Handler) mcp.Handler { return next }) // the session is in front of it
			s, err := c.Dial(t.Context(), "http://"+addr)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			changed, err := s.Reach()
			if err != nil {
				t.Fatal(err)
			}
			web.Close()
			for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
				if rev == mcp.V2026_07_28 {
					s.CallTool(t.Context(), "x", nil)
				}
				if _, err = s.Reach(); err != nil {
					break
				}
				if time.Now().After(end) {
					t.Fatal("the end of the server was not noticed")
				}
			}
			<-changed
			if op := (*net.OpError)(nil); !errors.As(err, &op) {
				t.Errorf("the error is %v", err)
			}
			changed, _ = s.Reach()
			if l, err = net.Listen("tcp", addr); err != nil {
				t.Skip("the port was taken meanwhile:", err)
			}
			again := &http.Server{Handler: srv}
			defer again.Close()
			go again.Serve(l)
			s.CallTool(t.Context(), "x", nil)
			<-changed
			if _, err := s.Reach(); err != nil {
				t.Errorf("the server is back, but %v", err)
			}
		})
	}
}
