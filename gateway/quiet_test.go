package gateway_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// script is an HTTP client that leaves without ending its session.
type script struct {
	t       *testing.T
	front   http.Handler
	user    string
	session string
}

func (s *script) send(ctx context.Context, method, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, method, "http://127.0.0.1/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("User", s.user)
	if method == "GET" {
		r.Header.Set("Accept", "text/event-stream")
	}
	if s.session != "" {
		r.Header.Set("Mcp-Session-Id", s.session)
		r.Header.Set("MCP-Protocol-Version", "2025-11-25")
	}
	w := httptest.NewRecorder()
	s.front.ServeHTTP(w, r)
	return w
}

func newScript(t *testing.T, front http.Handler, user string) *script {
	t.Helper()
	s := &script{t: t, front: front, user: user}
	w := s.send(t.Context(), "POST", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"s","version":"1"}}}`)
	if s.session = w.Header().Get("Mcp-Session-Id"); s.session == "" {
		t.Fatalf("initialize = %d %s", w.Code, w.Body)
	}
	s.send(t.Context(), "POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// call calls a tool and returns the text of any answer.
func (s *script) call(tool, arguments string) string {
	return s.send(s.t.Context(), "POST", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)).Body.String()
}

// Trap 8, F3: HTTP sessions whose clients have left silently do not lock their owner out. A session
// that has been quiet for two minutes makes room for another of the same owner, and its client is
// told if it returns. A session with a stream or with recent requests keeps its state, and so do
// the sessions of others.
func TestQuietSessionsMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := keeper(mcp.V2025_11_25)
		g := &gateway.Gateway{Name: "gw"}
		run(t, g, gateway.Source{Name: "db", Open: f.Open, Share: gateway.PerSession})
		front := &mcp.Server{Name: "gw", Version: "1", Handler: g}
		front.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("User") }
		t.Cleanup(func() { front.Shutdown(context.Background()) })

		bob := newScript(t, front, "bob")
		bob.call("db_set", `{"text":"of bob"}`)
		var scripts []*script
		for i := range 25 {
			s := newScript(t, front, "ada")
			if got := s.call("db_set", fmt.Sprintf(`{"text":"of script %d"}`, i)); strings.Contains(got, "error") {
				t.Fatalf("script %d: %s", i, got)
			}
			scripts = append(scripts, s)
		}
		listening, disconnect := context.WithCancel(t.Context())
		defer disconnect()
		go scripts[3].send(listening, "GET", "")
		busy := make(chan string)
		go func() { busy <- scripts[4].call("db_hang", "{}") }() // for a minute
		next := newScript(t, front, "ada")
		if got := next.call("db_set", `{"text":"more"}`); !strings.Contains(got, "a quarter of the 100") {
			t.Errorf("a 26th session at once: %s", got)
		}
		<-busy
		time.Sleep(time.Minute)
		scripts[0].call("db_get", "{}")
		scripts[1].call("db_get", "{}")
		time.Sleep(time.Minute + time.Second)

		for i := range 22 { // all but 0 and 1, used recently, and 3, which listens
			s := newScript(t, front, "ada")
			if got := s.call("db_set", `{"text":"new"}`); strings.Contains(got, "error") {
				t.Errorf("new session %d: %s", i, got)
			}
		}
		if got := newScript(t, front, "ada").call("db_set", `{"text":"new"}`); !strings.Contains(got, "a quarter of the 100") {
			t.Errorf("when no session is quiet: %s", got)
		}
		for i, want := range []string{"kept of script 0", "kept of script 1", "made room for another of yours", "kept of script 3", "made room for another of yours"} {
			if got := scripts[i].call("db_get", "{}"); !strings.Contains(got, want) {
				t.Errorf("script %d comes back: %s; want %q", i, got, want)
			}
		}
		if got := bob.call("db_get", "{}"); !strings.Contains(got, "kept of bob") {
			t.Errorf("somebody else: %s", got)
		}
		if st := g.Status()[0]; st.Evicted != 22 || st.Losses != 22 {
			t.Errorf("status = %+v", st)
		}
	})
}

// F3: an older HTTP server that has forgotten its session counts as a loss, for each window of the
// person that uses it.
func TestForgottenSessionIsTold(t *testing.T) {
	for _, share := range []gateway.Share{gateway.PerSession, gateway.PerPrincipal} {
		t.Run(share.String(), func(t *testing.T) {
			var back atomic.Pointer[mcp.Server]
			start := func() {
				s := newsServer("news")
				s.Revisions = []mcp.Revision{mcp.V2025_11_25}
				keeper("").more(0, s)
				if before := back.Swap(s); before != nil {
					before.Shutdown(context.Background())
				}
			}
			start()
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { back.Load().ServeHTTP(w, r) }))
			t.Cleanup(func() { web.CloseClientConnections(); web.Close() })

			g := &gateway.Gateway{Name: "gw"}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				g.Run(ctx, gateway.Source{Name: "db", Share: share, Open: func(ctx context.Context) (gateway.Upstream, error) {
					c := &mcp.Client{Name: "gw", Version: "1"}
					gateway.Relay(ctx, c)
					return c.Dial(ctx, web.URL)
				}})
			}()
			t.Cleanup(func() { cancel(); <-done })
			connect := users(t, g)
			first, second := connect("ada", mcp.V2025_11_25), connect("ada", mcp.V2025_11_25)
			for _, s := range []*mcp.Session{first, second} {
				if got := set(t, s, "a"); got != "" {
					t.Fatal(got)
				}
			}
			start()
			if got := read(t, first); !strings.Contains(got, "news") {
				t.Errorf("a read: %s", got)
			}
			for i, s := range []*mcp.Session{first, second} {
				if got := get(t, s); !strings.Contains(got, "kept for you is gone: it has ended the session") {
					t.Errorf("the next call of window %d: %s", i, got)
				}
				if got := get(t, s); got != "kept " {
					t.Errorf("the call after that of window %d: %s", i, got)
				}
			}
			if st := g.Status()[0]; st.Losses != 2 {
				t.Errorf("%d losses, want 2", st.Losses)
			}
		})
	}
}
