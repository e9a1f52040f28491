package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

// Translations of a Session that is served, other than calls and their questions (see
// pairs_test.go).

// T-11: a modern server gets the description of the client in front with each request; the session
// with a legacy one is opened once, and shows its own client.
func TestIdentityInFront(t *testing.T) {
	whoAsks := func(ctx context.Context, _ struct{}) (string, error) {
		who := mcp.CallFrom(ctx).Client
		return who.Name + " " + who.Version, nil
	}
	for _, front := range mcp.Revisions() {
		for _, back := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
			srv := &mcp.Server{Name: "far", Version: "1"}
			mcp.AddTool(srv, mcp.Tool{Name: "who"}, whoAsks)
			session := mcptest.Connect(t, srv, middle(t), back)
			s := mcptest.Connect(t, &mcp.Server{Name: "front", Version: "1", Handler: session}, &mcp.Client{Name: "editor", Version: "7"}, front)
			want := "editor 7"
			if back != mcp.V2026_07_28 {
				want = "middle 1"
			}
			if got, err := mcp.CallAs[string](t.Context(), s, "who", nil); err != nil || got != want {
				t.Errorf("%s on %s: the server is told of %q, %v; want %q", front, back, got, err, want)
			}
		}
	}
}

// T-11: a client that does not say who it is, or says too much, is not passed on.
func TestIdentityThatIsNone(t *testing.T) {
	srv := &mcp.Server{Name: "far", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "who"}, func(ctx context.Context, _ struct{}) (string, error) {
		return mcp.CallFrom(ctx).Client.Name, nil
	})
	session := mcptest.Connect(t, srv, middle(t), mcp.V2026_07_28)
	for _, info := range []string{"", `{"name":"x"}`, `{"name":7,"version":"1"}`, `{"name":"x","version":"1","title":"` + strings.Repeat("x", 5000) + `"}`} {
		p := rawClient(t, &mcp.Server{Name: "front", Version: "1", Handler: session})
		meta := `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
		if info != "" {
			meta += `,"io.modelcontextprotocol/clientInfo":` + info
		}
		p.sendf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who","_meta":{%s}}}`, meta)
		if m := p.answer(1); !strings.Contains(string(m.Result), `"text":"middle"`) {
			t.Errorf("clientInfo %.60s: %s", info, show(&m))
		}
	}
}

const oddTools = `{"tools":[` +
	`{"name":"odd","inputSchema":{"type":"object","properties":{"a":{"type":"array","x-mcp-header":"A","default":["x-mcp-header"]},"x-mcp-header":{"type":"string"}}}},` +
	`{"name":"good","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}]}`

// oddServer lists a tool whose x-mcp-header breaks the rules, and one whose does not.
func oddServer() *mcp.Server {
	return &mcp.Server{Name: "odd", Version: "1", Handler: mcp.HandlerFunc(func(_ context.Context, r *mcp.Request) (mcp.Result, error) {
		switch r.Method {
		case "tools/list":
			return mcp.RawResult(oddTools), nil
		case "tools/call":
			return mcp.RawResult(`{"content":[{"type":"text","text":"called"}]}`), nil
		}
		return &mcp.ServerInfo{Capabilities: mcp.Capabilities{"tools": []byte(`{}`)}}, nil
	})}
}

// T-49, HTTP-26-046: an annotation that breaks the rules is removed where it has no meaning; a tool
// with one from a modern server over HTTP is not offered at all. Valid annotations stay.
func TestBadHeaderAnnotationsInFront(t *testing.T) {
	const bare = `{"name":"odd","inputSchema":{"type":"object","properties":{"a":{"type":"array","default":["x-mcp-header"]},"x-mcp-header":{"type":"string"}}}},`
	for _, tt := range []struct {
		back mcp.Revision
		http bool
		want string
	}{
		{mcp.V2025_11_25, false, bare}, {mcp.V2025_11_25, true, bare}, {mcp.V2026_07_28, false, bare}, {mcp.V2026_07_28, true, ""},
	} {
		c := middle(t)
		c.Revisions = []mcp.Revision{tt.back}
		var session *mcp.Session
		if tt.http {
			h := httptest.NewServer(oddServer())
			t.Cleanup(h.Close)
			var err error
			if session, err = c.Dial(t.Context(), h.URL); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { session.Close() })
		} else {
			session = unchecked(t, oddServer(), c)
		}
		s := unchecked(t, &mcp.Server{Name: "front", Version: "1", Handler: session}, nothing())
		raw, err := s.Raw(t.Context(), "tools/list", nil)
		if want := `"tools":[` + tt.want + `{"name":"good","inputSchema":{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}}]`; err != nil || !strings.Contains(string(raw), want) {
			t.Errorf("%s, HTTP %v: %s, %v; want %s", tt.back, tt.http, raw, err, want)
		}
	}
}

// T-48: what a tool's annotations say of headers is held against a modern caller over HTTP,
// whatever the server behind speaks; unknown Mcp-Param headers are let pass.
func TestHeadersInFrontOfAnyServer(t *testing.T) {
	for _, back := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		c := middle(t)
		c.Revisions = []mcp.Revision{back}
		session := unchecked(t, oddServer(), c)
		front := &mcp.Server{Name: "front", Version: "1", Handler: session}
		if _, err := session.Handle(t.Context(), &mcp.Request{Method: "tools/list"}); err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			header, value string
			status        int
		}{{"Mcp-Param-Region", "north", 200}, {"Mcp-Param-Region", "south", 400}, {"Mcp-Param-Other", "x", 400}} {
			r := httptest.NewRequest("POST", "http://127.0.0.1/", strings.NewReader(modern(1, "tools/call", `{}`, `"name":"good","arguments":{"r":"north"}`)))
			for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
				"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "good", "Mcp-Param-Unknown": "x", tt.header: tt.value} {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			front.ServeHTTP(w, r)
			if w.Code != tt.status || tt.status == 400 && !strings.Contains(w.Body.String(), "-32020") {
				t.Errorf("%s, %s %q: %d %s; want %d", back, tt.header, tt.value, w.Code, w.Body, tt.status)
			}
		}
	}
}

// T-57: a server may name a part of a resource that is listened to, and what has only a
// name that begins alike is none.
func TestPartsOfResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := make(chan string, 10)
		s, err := nothing().Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
			switch m.Method {
			case "server/discover":
				return failure(m, -32601, "")
			case "initialize":
				return result(m, `{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"stub","version":"1"}}`)
			case "resources/subscribe":
				out := result(m, `{}`)
				for _, uri := range []string{"file:///home/x", "file:///homely", "file:///home", "file:///home?v=2", "file:///", "file:///home/y/z"} {
					out = append(out, `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"`+uri+`"}}`)
				}
				return out
			}
			return []string{}
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for e, err := range s.Watch(ctx, "file:///home") {
				if err == nil && e.URI != "" {
					said <- e.URI
				}
			}
			close(said)
		}()
		time.Sleep(time.Second)
		cancel()
		var got []string
		for uri := range said {
			got = append(got, uri)
		}
		if want := "[file:///home file:///home/x file:///home/y/z file:///home?v=2]"; fmt.Sprint(got) != want {
			t.Errorf("told of %v, want %s", got, want)
		}
	})
}

// T-58: a client in front says that its roots have changed, and a legacy server is told. In no
// call of the client it can be asked for them and for nothing else (T-09).
func TestRootsChangeInFront(t *testing.T) {
	for _, front := range []mcp.Revision{mcp.V2024_11_05, mcp.V2025_11_25} {
		for _, back := range []mcp.Revision{mcp.V2025_03_26, mcp.V2026_07_28} {
			for _, wire := range []string{"memory", "http"} {
				if wire == "http" && front == mcp.V2024_11_05 {
					continue // it is another transport, where the GET stream carries all
				}
				t.Run(fmt.Sprintf("%s on %s over %s", front, back, wire), func(t *testing.T) {
					told := make(chan string, 10)
					c := middle(t)
					c.Roots = func(context.Context) ([]mcp.Root, error) { return nil, nil }
					c.OnFrame = func(f trace.Frame) {
						if f.Dir == trace.Out && strings.Contains(string(f.Msg), "notifications/roots/list_changed") {
							told <- "server"
						}
					}
					session := mcptest.Connect(t, newFar().Server, c, back)
					srv := &mcp.Server{Name: "front", Version: "1", Handler: mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
						if req.Method == "notifications/roots/list_changed" {
							outside := mcp.CallFrom(ctx).Session()
							roots, err := mcp.Roots(outside)
							if err != nil || len(roots) != 1 {
								t.Errorf("roots outside of a call = %v, %v", roots, err)
							}
							if _, err := mcp.Confirm(outside, "May I?"); !errors.Is(err, mcp.ErrNotSupported) {
								t.Errorf("a question outside of a call = %v", err)
							}
							defer func() { told <- "handled" }()
						}
						return session.Handle(ctx, req)
					})}
					fc := user()
					fc.Roots = func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///a"}}, nil }
					if wire == "http" {
						h := httptest.NewServer(srv)
						defer h.Close()
						fc.Revisions = []mcp.Revision{front}
						s, err := fc.Dial(t.Context(), h.URL)
						if err != nil {
							t.Fatal(err)
						}
						defer s.Close()
						for { // the question outside of a call goes over the GET stream
							if _, open := s.ListVersion("tools/list"); open {
								break
							}
							time.Sleep(time.Millisecond)
						}
					} else {
						mcptest.Connect(t, srv, fc, front)
					}
					fc.RootsChanged(t.Context())
					if back != mcp.V2026_07_28 {
						if got := <-told; got != "server" {
							t.Errorf("%s comes first, want the server", got)
						}
					}
					if got := <-told; got != "handled" {
						t.Errorf("%s is told, want it handled", got)
					}
				})
			}
		}
	}
}

// A notification outside of any call reaches a legacy client through its session, log messages from
// the level that it wants on (T-90, T-91).
func TestNotifyInASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &mcp.Server{Name: "s", Version: "1", Handler: mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == "tools/call" {
				outside := mcp.CallFrom(ctx).Session()
				time.AfterFunc(time.Second, func() {
					for _, m := range []string{`{"level":"debug","data":"small"}`, `{"level":"error","data":"big"}`} {
						if err := forward.Notify(outside, "notifications/message", json.RawMessage(m)); err != nil {
							t.Error(err)
						}
					}
				})
				return mcp.RawResult(`{"content":[]}`), nil
			}
			return &mcp.ServerInfo{Capabilities: mcp.Capabilities{"logging": []byte(`{}`)}}, nil
		})}
		said := make(chan string, 10)
		c := nothing()
		c.OnEvent = func(_ *mcp.Session, e mcp.Event) { said <- string(e.Log.Data) }
		s := unchecked(t, srv, func() *mcp.Client { c.Revisions = []mcp.Revision{mcp.V2025_06_18}; return c }())
		if _, err := s.CallTool(t.Context(), "x", nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if got := <-said; got != `"big"` || len(said) != 0 {
			t.Errorf("told %s and %d more, want the big one alone", got, len(said))
		}
	})
}

// A call whose connection is lost says so by io.ErrUnexpectedEOF, on every kind of wire (T-29).
func TestLossIsKnown(t *testing.T) {
	near, far := jsonrpc.Pipe()
	srv := one(func(context.Context, struct{}) (string, error) { far.Close(); return "", nil })
	go srv.Serve(t.Context(), far)
	s, err := nothing().Connect(t.Context(), mcptest.Wire(near))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), "ask", nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("in memory: %v", err)
	}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, ": \n\n")
			return
		}
		one(func(context.Context, struct{}) (string, error) { return "", nil }).ServeHTTP(w, r)
	}))
	defer h.Close()
	s, err = nothing().Dial(t.Context(), h.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), "ask", nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("over HTTP: %v", err)
	}
}

// Client.Capabilities narrow what is declared (T-06, T-15), and promise nothing.
func TestNarrowedCapabilities(t *testing.T) {
	for _, tt := range []struct {
		narrow mcp.Capabilities
		want   string
	}{
		{nil, "elicitation form url sampling tools roots"},
		{mcp.Capabilities{}, ""},
		{mcp.Capabilities{"elicitation": json.RawMessage(`{}`), "sampling": json.RawMessage(`{}`)}, "elicitation form sampling"},
		{mcp.Capabilities{"elicitation": json.RawMessage(`{"url":{}}`), "roots": json.RawMessage(`{"listChanged":true}`)}, "elicitation url roots"},
		{mcp.Capabilities{"sampling": json.RawMessage(`{"tools":{},"context":{}}`), "custom": json.RawMessage(`{}`)}, "sampling tools context"},
	} {
		srv := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(srv, mcp.Tool{Name: "caps"}, func(ctx context.Context, _ struct{}) (string, error) {
			var said []string
			for _, name := range [][]string{{"elicitation", "form", "url"}, {"sampling", "tools", "context"}, {"roots"}, {"custom"}} {
				caps := mcp.CallFrom(ctx).Capabilities
				if !caps.Has(name[0]) {
					continue
				}
				said = append(said, name[0])
				for _, setting := range name[1:] {
					if caps.Has(name[0], setting) {
						said = append(said, setting)
					}
				}
			}
			return strings.Join(said, " "), nil
		})
		c := middle(t)
		c.Roots = func(context.Context) ([]mcp.Root, error) { return nil, nil }
		c.Capabilities = tt.narrow
		s := mcptest.Connect(t, srv, c, mcp.V2026_07_28)
		if got, err := mcp.CallAs[string](t.Context(), s, "caps", nil); err != nil || got != tt.want {
			t.Errorf("narrowed to %v: declares %q, %v; want %q", tt.narrow, got, err, tt.want)
		}
	}
}
