package auth_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Every wire over HTTP has the same guard, and a connection that is kept open ends with the
// credential that opened it (AUTH-26-003, BASE-26-030, HTTP-26-005). SEC-26-010, SEC-25-001: what is asked is verified, also with the
// id of a session. SEC-25-002, SEC-26-011, SEC-25-004, SEC-26-012: that id alone, or with the
// credential of somebody else, opens nothing.
func TestGuardOnEveryWire(t *testing.T) {
	srv := &mcp.Server{Name: "guarded", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "whoami"}, func(ctx context.Context, _ nothing) (string, error) {
		return auth.From(ctx).Subject + " " + mcp.CallFrom(ctx).Principal, nil
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", srv)
	mux.Handle("/ws", srv.WebSocket())
	sse := srv.SSE("/messages")
	mux.Handle("/sse", sse)
	mux.Handle("/messages", sse)
	var brief atomic.Pointer[auth.Principal] // of a caller who comes last
	g := &auth.Guard{Verifiers: []auth.Verifier{
		verifyFunc(func(r *http.Request) (*auth.Principal, error) {
			if p := brief.Load(); p != nil && r.Header.Get("Authorization") == "Bearer brief" {
				return p, nil
			}
			return nil, auth.ErrNoCredential
		}),
		known(map[string]*auth.Principal{
			"alice": {ID: "as#alice", Subject: "alice"},
			"bob":   {ID: "as#bob", Subject: "bob"},
		}),
	}}
	web := httptest.NewServer(g.Protect(mux))
	defer web.Close()
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		srv.Shutdown(ctx)
	}()
	client := func(token string, rev ...mcp.Revision) *mcp.Client {
		c := &mcp.Client{Name: "test", Revisions: rev}
		if token != "" {
			c.Header = http.Header{"Authorization": {"Bearer " + token}}
		}
		return c
	}
	urls := []string{web.URL + "/mcp", "ws" + strings.TrimPrefix(web.URL, "http") + "/ws", web.URL + "/sse"}
	for _, url := range urls {
		var status *mcp.HTTPError
		if _, err := client("").Dial(t.Context(), url); !errors.As(err, &status) || status.Status != 401 {
			t.Errorf("%s without a token: %v, want 401", url, err)
		}
		revs := []mcp.Revision{}
		if strings.HasSuffix(url, "/sse") {
			revs = append(revs, mcp.V2024_11_05)
		}
		s, err := client("alice", revs...).Dial(t.Context(), url)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		if res, err := s.CallTool(t.Context(), "whoami", nothing{}); err != nil || res.Text() != "alice as#alice" {
			t.Errorf("%s: %v, %v", url, res, err)
		}
		s.Close()
	}

	// The session of another caller.
	open := func(token, session, body string) *http.Response {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", web.URL+"/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	id := open("alice", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`).Header.Get("Mcp-Session-Id")
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for token, want := range map[string]int{"alice": 200, "bob": 404, "": 401, "mallory": 401} {
		if res := open(token, id, ping); id == "" || res.StatusCode != want {
			t.Errorf("the session of alice with the token %q: %d, want %d", token, res.StatusCode, want)
		}
	}

	// A connection that is kept open. A machine that is busy may need longer than the first times to open one.
	var s *mcp.Session
	var end time.Time
	err := errors.New("not dialled")
	for life := 400 * time.Millisecond; err != nil && life < time.Minute; life *= 4 {
		end = time.Now().Add(life)
		brief.Store(&auth.Principal{ID: "as#brief", Subject: "brief", Expires: end})
		s, err = client("brief").Dial(t.Context(), urls[1])
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for time.Now().Before(end.Add(time.Minute)) {
		if _, err = s.CallTool(t.Context(), "whoami", nothing{}); err != nil {
			break
		}
	}
	if err == nil || time.Now().Before(end) {
		t.Errorf("the connection ended before its credential, or not at all: %v", err)
	}
}
