package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// What the gateway translates beside calls and their questions (see pairs_test.go).

// T-11: a server of 2026-07-28 is told who asks with each request, though all share a
// connection.
func TestIdentityOfCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &farm{rev: mcp.V2026_07_28, more: func(_ int, s *mcp.Server) {
			mcp.AddTool(s, mcp.Tool{Name: "who"}, func(ctx context.Context, _ struct{}) (string, error) { return mcp.CallFrom(ctx).Client.Name, nil })
		}}
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open})
		for _, rev := range mcp.Revisions() {
			for _, name := range []string{"editor", "terminal"} {
				s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, &mcp.Client{Name: name, Version: "1"}, rev)
				if got, err := mcp.CallAs[string](t.Context(), s, "db_who", nil); err != nil || got != name {
					t.Errorf("%s from %s: the server is told of %q, %v", name, rev, got, err)
				}
			}
		}
		if f.alive() != "1" {
			t.Errorf("connections %s, want one", f.alive())
		}
	})
}

// T-29, T-47: what changes nothing is asked again, once, of the next connection when one is lost;
// a tool is not, whatever it says of itself, and the caller is told that nobody knows.
func TestAskedAgainAfterALoss(t *testing.T) {
	for _, share := range []gateway.Share{gateway.Shared, gateway.PerClient} {
		synctest.Test(t, func(t *testing.T) {
			var f *farm
			var reads, calls, fatal atomic.Int64
			f = &farm{rev: mcp.V2025_11_25, more: func(n int, s *mcp.Server) {
				mcp.AddResource(s, mcp.Resource{URI: "frail://page", Name: "frail"}, func(context.Context) (string, error) {
					if reads.Add(1) <= fatal.Load() {
						f.kill(n)
					}
					return "read", nil
				})
				mcp.AddTool(s, mcp.Tool{Name: "frail", Annotations: &mcp.ToolAnnotations{ReadOnly: new(true), Idempotent: new(true)}}, func(context.Context, struct{}) (string, error) {
					calls.Add(1)
					f.kill(n)
					return "called", nil
				})
			}}
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: share})
			s := connect(t, g, mcp.V2025_06_18)
			for _, tt := range []struct{ fatal, reads int64 }{{0, 1}, {1, 2}, {9, 2}} {
				time.Sleep(10 * time.Minute) // as if it had not been lost before
				reads.Store(0)
				fatal.Store(tt.fatal)
				res, err := s.Read(t.Context(), "frail://page")
				switch {
				case reads.Load() != tt.reads:
					t.Errorf("%s: read %d times, want %d", share, reads.Load(), tt.reads)
				case tt.fatal < 2 && (err != nil || res.Contents[0].Text != "read"):
					t.Errorf("%s: after %d losses: %v, %v", share, tt.fatal, res, err)
				case tt.fatal > 2 && (err == nil || !strings.Contains(err.Error(), "lost: the server closed the connection")):
					t.Errorf("%s: lost twice: %v, %v", share, res, err)
				}
			}
			time.Sleep(10 * time.Minute)
			_, err := s.CallTool(t.Context(), "db_frail", nil)
			if calls.Load() != 1 || err == nil || !strings.Contains(err.Error(), "whether the tool has run is not known") {
				t.Errorf("%s: the tool ran %d times, and the caller is told %v", share, calls.Load(), err)
			}
		})
	}
}

// watchesRoots is a server that asks for the roots whenever they change, in no call.
func watchesRoots(t *testing.T, conn jsonrpc.Conn, told chan<- string) {
	write := func(s string) {
		if err := conn.Write([]byte(s)); err != nil {
			t.Log(err)
		}
	}
	for asked := 0; ; {
		raw, err := conn.Read(nil)
		if err != nil {
			return
		}
		var m struct {
			ID            json.RawMessage
			Method        string
			Result, Error json.RawMessage
			Params        struct{ Capabilities json.RawMessage }
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Error(err)
			return
		}
		switch {
		case m.Method == "initialize":
			write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"old","version":"1"}}}`)
		case m.Method == "notifications/roots/list_changed":
			asked++
			write(fmt.Sprintf(`{"jsonrpc":"2.0","id":"r%d","method":"roots/list"}`, asked))
		case m.Method == "tools/call":
			write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[]}}`)
		case m.Method == "" && m.Result != nil:
			told <- string(m.Result)
		case m.Method == "" && m.Error != nil:
			told <- string(m.Error)
		case m.ID != nil:
			write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"no such method"}}`)
		}
	}
}

// T-58: a session's changed roots are told to the server of its own connection, and no other's;
// that gets the new ones when it asks for them, in no call.
func TestRootsThatChange(t *testing.T) {
	for _, front := range []mcp.Revision{mcp.V2024_11_05, mcp.V2025_11_25} {
		synctest.Test(t, func(t *testing.T) {
			told := make(chan string, 10)
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "old", Open: func(ctx context.Context) (gateway.Upstream, error) {
				near, far := jsonrpc.Pipe()
				go watchesRoots(t, far, told)
				c := &mcp.Client{Name: "gw", Version: "1"}
				gateway.Relay(ctx, c)
				return c.Connect(ctx, mcptest.Wire(near))
			}})
			srv := &mcp.Server{Name: "gw", Version: "1", Handler: g}
			var now atomic.Pointer[string]
			roots := func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: *now.Load()}}, nil }
			clients := []*mcp.Client{{Name: "a", Roots: roots}, {Name: "b", Roots: roots}}
			for i, c := range clients {
				s := mcptest.Connect(t, srv, c, front)
				if i == 0 {
					if _, err := s.CallTool(t.Context(), "old_x", nil); err != nil { // b has no connection of its own
						t.Fatal(err)
					}
				}
			}
			for _, uri := range []string{"file:///one", "file:///two"} {
				now.Store(&uri)
				for _, c := range clients {
					c.RootsChanged(t.Context())
				}
				if got := <-told; !strings.Contains(got, uri) {
					t.Errorf("%s: the server is told %s, want %s", front, got, uri)
				}
			}
			time.Sleep(time.Minute)
			if len(told) > 0 {
				t.Errorf("%s: told of %s too", front, <-told)
			}
		})
	}
}

// T-91, T-177: log messages that belong to no call, or to none that can be told, reach the session
// that the connection is for, from its level on. Where many share a connection they reach nobody.
func TestLogsOfNoCall(t *testing.T) {
	for _, share := range []gateway.Share{gateway.PerClient, gateway.Shared} {
		synctest.Test(t, func(t *testing.T) {
			var server jsonrpc.Conn
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "old", Share: share, Open: func(ctx context.Context) (gateway.Upstream, error) {
				near, far := jsonrpc.Pipe()
				server = far
				go watchesRoots(t, far, nil)
				c := &mcp.Client{Name: "gw", Version: "1"}
				gateway.Relay(ctx, c)
				return c.Connect(ctx, mcptest.Wire(near))
			}})
			var heard []string
			c := &mcp.Client{Name: "a", OnEvent: func(_ *mcp.Session, e mcp.Event) {
				if e.Log != nil {
					heard = append(heard, string(e.Log.Data))
				}
			}}
			srv := &mcp.Server{Name: "gw", Version: "1", Handler: g}
			s := mcptest.Connect(t, srv, c, mcp.V2025_06_18)
			if _, err := s.CallTool(t.Context(), "old_x", nil); err != nil {
				t.Fatal(err)
			}
			for _, m := range []string{`{"level":"debug","data":"small"}`, `{"level":"warning","data":"big"}`} {
				if err := server.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":` + m + `}`)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
			want := []string{`"big"`}
			if share == gateway.Shared {
				want = nil
			}
			if !slices.Equal(heard, want) {
				t.Errorf("%s: heard %s, want %s", share, heard, want)
			}
		})
	}
}

// T-161: of two servers with one URI that with the first name has it; the status of the other says
// so.
func TestShadowedResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gateway.Gateway{Name: "gw"}
		for _, name := range []string{"b", "a"} {
			f := &farm{rev: mcp.V2026_07_28, more: func(_ int, s *mcp.Server) {
				mcp.AddResource(s, mcp.Resource{URI: name + "://own", Name: "own"}, func(context.Context) (string, error) { return name, nil })
				mcp.AddResource(s, mcp.Resource{URI: "both://page", Name: "both"}, func(context.Context) (string, error) { return name, nil })
			}}
			run(t, g, gateway.Source{Name: name, Open: f.Open})
		}
		for i, want := range []string{"[]", "[news://front shared://page both://page news://item/{id}]"} {
			if got := fmt.Sprint(g.Status()[i].Shadowed); got != want {
				t.Errorf("%s shadows %s, want %s", g.Status()[i].Name, got, want)
			}
		}
		if res, err := connect(t, g, mcp.V2025_06_18).Read(t.Context(), "both://page"); err != nil || res.Contents[0].Text != "a" {
			t.Errorf("read = %v, %v, want that of a", res, err)
		}
	})
}

// T-29: a list that is lost with the connection is the one that is kept, or that of the next.
func TestListsSurviveALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f *farm
		var fatal atomic.Bool
		f = &farm{rev: mcp.V2026_07_28, more: func(n int, s *mcp.Server) {
			s.Use(func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					if req.Method == "tools/list" && fatal.Swap(false) {
						f.kill(n)
					}
					return next.Handle(ctx, req)
				})
			})
		}}
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open})
		s := connect(t, g, mcp.V2026_07_28)
		fatal.Store(true)
		if n := tools(t, s); n != 3 || fatal.Load() {
			t.Errorf("%d tools, want 3; the server was asked: %v", n, !fatal.Load())
		}
	})
}
