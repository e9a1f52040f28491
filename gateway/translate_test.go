package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
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

// Translations other than calls and their questions (see pairs_test.go).

// T-11: a server of 2026-07-28 learns the caller with each request, although all share a
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

// T-29, T-47: a request that changes nothing is repeated once over the next connection if one is
// lost. A tool call is not, whatever the tool's annotations say, and the caller is told that the
// outcome is unknown.
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
				time.Sleep(10 * time.Minute) // the loss before must not count any more
				reads.Store(0)
				fatal.Store(tt.fatal)
				res, err := s.ReadResource(t.Context(), "frail://page")
				switch {
				case reads.Load() != tt.reads:
					t.Errorf("%s: read %d times, want %d", share, reads.Load(), tt.reads)
				case tt.fatal < 2 && (err != nil || res.Contents[0].Text != "read"):
					t.Errorf("%s: after %d losses: %v, %v", share, tt.fatal, res, err)
				case tt.fatal > 2 && (err == nil || !strings.Contains(err.Error(), " lost: ")):
					t.Errorf("%s: lost twice: %v, %v", share, res, err)
				}
			}
			time.Sleep(10 * time.Minute)
			_, err := s.CallTool(t.Context(), "db_frail", nil)
			if calls.Load() != 1 || err == nil || !strings.Contains(err.Error(), "the tool may or may not have run") {
				t.Errorf("%s: the tool ran %d times, and the caller is told %v", share, calls.Load(), err)
			}
		})
	}
}

// watchesRoots is a server that asks for the roots whenever they change, outside of calls.
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
		case m.Method == "tools/list":
			write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}}`)
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

// T-58: a change of a session's roots is reported only to the server of its own connection, which
// receives the new roots when it asks for them outside of calls.
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
					if _, err := s.CallTool(t.Context(), "old_x", nil); err != nil { // b does not have its own connection
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

// T-91, T-177: log messages that belong to no known call reach the session that the connection
// serves, from its level on. Over a shared connection they reach nobody.
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
			logs := make(chan string, 10)
			c := &mcp.Client{Name: "a", OnEvent: func(_ *mcp.Session, e mcp.Event) {
				if e.Log != nil {
					logs <- string(e.Log.Data)
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
			var heard []string
			for len(logs) > 0 {
				heard = append(heard, <-logs)
			}
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

// T-161: if two servers have one URI, it belongs to the first by name; the status of the other says
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
		if res, err := connect(t, g, mcp.V2025_06_18).ReadResource(t.Context(), "both://page"); err != nil || res.Contents[0].Text != "a" {
			t.Errorf("read = %v, %v, want that of a", res, err)
		}
	})
}

// T-29: if the connection is lost during a list, the caller gets the kept list, or that of the next
// connection.
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

// T-12, T-14, T-33, T-34, T-162: results of a legacy server for a modern caller have all members
// that its revision requires: one page, not cacheable and private. A completion is empty if the
// server does not support completions.
func TestResultsOfALegacyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain := &mcp.Server{Name: "plain", Version: "1", Limits: mcp.Limits{PageSize: 1}, Handler: nil}
		for _, name := range []string{"a", "b", "c"} {
			mcp.AddPrompt(plain, mcp.Prompt{Name: name}, func(context.Context, struct{}) (string, error) { return name, nil })
		}
		mcp.AddResource(plain, mcp.Resource{URI: "plain://page", Name: "page"}, func(context.Context) (string, error) { return "text", nil })
		plain.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == "completion/complete" {
					return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "no method %q", req.Method)
				}
				return next.Handle(ctx, req)
			})
		})
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "old", Open: func(ctx context.Context) (gateway.Upstream, error) {
			near, far := jsonrpc.Pipe()
			go plain.Serve(context.WithoutCancel(ctx), far)
			c := &mcp.Client{Name: "gw", Version: "1", Revisions: []mcp.Revision{mcp.V2024_11_05}}
			gateway.Relay(ctx, c)
			return c.Connect(ctx, mcptest.Wire(near))
		}})
		near, far := jsonrpc.Pipe()
		served := make(chan struct{})
		go func() {
			defer close(served)
			(&mcp.Server{Name: "gw", Version: "1", Handler: g}).Serve(context.Background(), far)
		}()
		defer func() { near.Close(); <-served }()
		for method, want := range map[string][]string{
			"prompts/list":        {`"name":"old_a"`, `"name":"old_b"`, `"name":"old_c"`, `"ttlMs":0`, `"cacheScope":"private"`},
			"resources/read":      {`"text":"text"`, `"ttlMs":0`, `"cacheScope":"private"`},
			"completion/complete": {`"completion":{"values":[]}`},
			"server/discover":     {`"completions"`, `"cacheScope":"private"`},
		} {
			params := `"uri":"plain://page","ref":{"type":"ref/prompt","name":"old_a"},"argument":{"name":"x","value":""},`
			if err := near.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + params + `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`)); err != nil {
				t.Fatal(err)
			}
			raw, err := near.Read(nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range append(want, `"resultType":"complete"`, `"io.modelcontextprotocol/serverInfo":{"name":"gw"`) {
				if !strings.Contains(string(raw), w) {
					t.Errorf("%s = %s, want %s", method, raw, w)
				}
			}
			if strings.Contains(string(raw), "nextCursor") {
				t.Errorf("%s = %s, want one page", method, raw)
			}
		}
	})
}

// T-30: the end of a session cancels its requests in progress at the servers.
func TestSessionsEndTheirCalls(t *testing.T) {
	for _, back := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 10)
			f := &farm{rev: back, more: func(_ int, s *mcp.Server) {
				mcp.AddTool(s, mcp.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) {
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return "", ctx.Err()
				})
			}}
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "db", Open: f.Open})
			s := connect(t, g, mcp.V2025_06_18)
			go s.CallTool(context.Background(), "db_wait", nil)
			time.Sleep(time.Second)
			s.Close()
			if err := <-ended; err == nil {
				t.Errorf("%s: the call did not end", back)
			}
		})
	}
}

// T-16, T-39, T-170: a question of a legacy server outside of calls goes to the session that the
// connection serves. Without one it is refused, and never declined in the name of the user.
func TestQuestionsOfNoCall(t *testing.T) {
	const noCall = `"code":-32603,"message":"cannot tell whose question this is`
	for front, wants := range map[mcp.Revision][2]string{
		mcp.V2025_11_25: {`"color":"blue"`, `model of hello`},
		mcp.V2026_07_28: {noCall, noCall},
	} {
		synctest.Test(t, func(t *testing.T) {
			var server jsonrpc.Conn
			told := make(chan string, 10)
			g := &gateway.Gateway{Name: "gw"}
			run(t, g, gateway.Source{Name: "old", Open: func(ctx context.Context) (gateway.Upstream, error) {
				near, far := jsonrpc.Pipe()
				server = far
				go watchesRoots(t, far, told)
				c := &mcp.Client{Name: "gw", Version: "1"}
				gateway.Relay(ctx, c)
				return c.Connect(ctx, mcptest.Wire(near))
			}})
			var asked []string
			s := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: g}, frontClient(&asked), front)
			if _, err := s.CallTool(t.Context(), "old_x", nil); err != nil {
				t.Fatal(err)
			}
			for _, tt := range []struct{ method, params, want string }{
				{"elicitation/create", `{"message":"m","requestedSchema":{"type":"object","properties":{"color":{"type":"string"}}}}`, wants[0]},
				{"sampling/createMessage", `{"maxTokens":9,"messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}`, wants[1]},
				{"ping", `{}`, `{}`},
			} {
				if err := server.Write([]byte(`{"jsonrpc":"2.0","id":"x","method":"` + tt.method + `","params":` + tt.params + `}`)); err != nil {
					t.Fatal(err)
				}
				if got := <-told; !strings.Contains(got, tt.want) {
					t.Errorf("%s in front: %s is answered with %s, want %s", front, tt.method, got, tt.want)
				}
			}
			if want := map[bool]int{true: 0, false: 2}[wants[0] == noCall]; len(asked) != want {
				t.Errorf("%s in front: the user is asked %q, want %d questions", front, asked, want)
			}
		})
	}
}

// T-142, T-141: an error of an HTTP server about the gateway's own credentials is not passed to the
// caller, who has others.
func TestRefusedCredentialsAreTheGatewaysOwn(t *testing.T) {
	refusing := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, &mcp.HTTPError{Status: 401, Body: "who are you?"}
	})
	g := newGateway(t, map[string]mcp.Handler{"web": refusing}, "web")
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		srv := httptest.NewServer(&mcp.Server{Name: "gw", Version: "1", Handler: g})
		s, err := (&mcp.Client{Name: "c", Version: "1", Revisions: []mcp.Revision{rev}}).Dial(t.Context(), srv.URL)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.CallTool(t.Context(), "web_x", nil)
		var rpc *mcp.Error
		if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal {
			t.Errorf("%s: %v, want -32603 and no HTTP status", rev, err)
		}
		s.Close()
		srv.Close()
	}
}
