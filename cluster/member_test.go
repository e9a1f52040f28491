package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/mcp"
)

// member is a node in front of a server, at an address of its own.
type member struct {
	*cluster.Node
	srv *mcp.Server
	web *httptest.Server
}

// newMember begins node i with what set does to it and to its server, and ends both with the test. The header User names the callers.
func newMember(t *testing.T, m *cluster.Memory, i int, set func(n *cluster.Node, srv *mcp.Server)) member {
	t.Helper()
	srv := &mcp.Server{Name: "s", Version: "1"}
	srv.HTTP.Principal = func(r *http.Request) string { return r.Header.Get("User") }
	n := &cluster.Node{Name: fmt.Sprint("n", i), State: m, Bus: m, Handler: srv, Logger: slog.New(slog.DiscardHandler)}
	set(n, srv)
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(n)
	t.Cleanup(func() {
		web.CloseClientConnections()
		now, end := context.WithCancel(context.Background())
		end()
		_ = n.Leave(now) // the error is that of now
		_ = srv.Shutdown(now)
		web.Close()
	})
	return member{n, srv, web}
}

// send sends a request of a session, "" without one, with further headers, names and values in turn. The test closes what answers.
func (m member) send(t *testing.T, ctx context.Context, method, user, session, body string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, m.web.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"User": {user}, "Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	for i := 1; i < len(header); i += 2 {
		r.Header.Set(header[i-1], header[i])
	}
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Body.Close() })
	return w
}
