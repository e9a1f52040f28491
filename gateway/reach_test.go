package gateway_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A server at a URL that goes away is failing, and ready when it is back, on each revision.
// Without a GET stream, a call finds out.
func TestServerGoesAway(t *testing.T) {
	for _, tt := range []struct {
		name  string
		rev   mcp.Revision
		kind  string
		share gateway.Share
	}{
		{"modern", mcp.V2026_07_28, "", gateway.ShareAuto},
		{"GET stream", mcp.V2025_11_25, "", gateway.ShareAuto},
		{"no GET stream, shared", mcp.V2025_06_18, "no GET", gateway.Shared},
		{"no GET stream, a connection per session", mcp.V2025_11_25, "no GET", gateway.PerSession},
		{"SSE", mcp.V2024_11_05, "sse", gateway.ShareAuto},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			addr, err := freeport.Addr()
			if err != nil {
				t.Fatal(err)
			}
			start := func(tool string) (end func()) {
				srv := &mcp.Server{Name: "web", Version: "1"}
				mcp.AddTool(srv, mcp.Tool{Name: tool}, func(context.Context, struct{}) (string, error) { return tool, nil })
				h := http.Handler(srv)
				switch tt.kind {
				case "no GET":
					h = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if r.Method == http.MethodGet {
							w.WriteHeader(http.StatusMethodNotAllowed)
							return
						}
						srv.ServeHTTP(w, r)
					})
				case "sse":
					h = srv.SSE("/")
				}
				l, err := net.Listen("tcp", addr)
				if err != nil {
					t.Fatal(err)
				}
				web := &http.Server{Handler: h}
				go web.Serve(l)
				return func() { web.Close(); srv.Shutdown(context.Background()) }
			}
			end := start("first")
			states := make(chan gateway.Status, 1000)
			g := &gateway.Gateway{Name: "gw", OnStatus: func(s gateway.Status) { states <- s }}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				g.Run(ctx, gateway.Source{Name: "web", Share: tt.share, Open: func(ctx context.Context) (gateway.Upstream, error) {
					return (&mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{tt.rev}}).Dial(ctx, "http://"+addr+"/")
				}})
			}()
			t.Cleanup(func() { cancel(); <-done })
			wantState(t, states, gateway.Ready, "")
			s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, &mcp.Client{Name: "c", Version: "1"}, mcp.V2025_11_25)
			if res, err := s.CallTool(t.Context(), "web_first", nil); err != nil || res.Text() != "first" {
				t.Fatalf("a call = %v, %v", res, err)
			}
			end()
			if tt.kind == "no GET" {
				if res, err := s.CallTool(t.Context(), "web_first", nil); err == nil {
					t.Errorf("a call of a server that has gone = %v", res)
				}
			}
			wantState(t, states, gateway.Failing, addr)
			if n := len(toolNames(t, s)); n != 0 {
				t.Errorf("%d tools of a server that has gone", n)
			}
			end = start("second")
			t.Cleanup(end)
			wantState(t, states, gateway.Ready, "")
			for limit := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
				if got := strings.Join(toolNames(t, s), " "); got == "web_second" {
					break
				} else if time.Now().After(limit) {
					t.Fatalf("the tools are %q after the server has come back", got)
				}
			}
			if _, err := s.CallTool(t.Context(), "web_second", nil); err != nil && !lossTold(err) {
				t.Error(err)
			}
		})
	}
}

// lossTold reports whether a call failed because it may depend on lost state.
func lossTold(err error) bool {
	return strings.Contains(err.Error(), "the next one starts afresh") || strings.Contains(err.Error(), "lost its state")
}

func toolNames(t *testing.T, s *mcp.Session) (names []string) {
	t.Helper()
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// A long name of a server is cut in the status.
func TestStatusOfLongName(t *testing.T) {
	long := strings.Repeat("n", 1<<20)
	srv := &mcp.Server{Name: long, Version: long}
	states := make(chan gateway.Status, 1000)
	g := &gateway.Gateway{Name: "gw", OnStatus: func(s gateway.Status) { states <- s }}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		g.Run(ctx, gateway.Source{Name: "a", Open: func(ctx context.Context) (gateway.Upstream, error) {
			return (&mcp.Client{Name: "gw", Version: "1"}).Open(ctx, srv)
		}})
	}()
	t.Cleanup(func() { cancel(); <-done })
	wantState(t, states, gateway.Ready, "")
	if s := g.Status()[0].Server; len(s.Name) > 110 || len(s.Version) > 110 || s.Name == "" {
		t.Errorf("the name has %d bytes, the version %d", len(s.Name), len(s.Version))
	}
}
