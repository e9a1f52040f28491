package gateway_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A session that another node continues is told once for each server that kept state for it that the state is gone, and
// goes on with the others.
func TestContinuedSessionsLearnOfLostState(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	shared := new(cluster.Memory)
	var nodes []*cluster.Node
	for _, name := range []string{"one", "two"} {
		g := &gateway.Gateway{Name: "gw"}
		ready, ended := make(chan struct{}, 3), make(chan struct{})
		for source, f := range map[string]*farm{"db": keeper(mcp.V2025_11_25), "other": keeper(mcp.V2025_11_25), "plain": keeper(mcp.V2026_07_28)} {
			go func() {
				var once sync.Once
				_ = g.Run(ctx, gateway.Source{Name: source, Open: f.Open, OnStatus: func(s gateway.Status) {
					if s.State == gateway.Ready {
						once.Do(func() { ready <- struct{}{} })
					}
				}}) // until the test ends
				ended <- struct{}{}
			}()
		}
		for range 3 {
			<-ready
		}
		defer func() {
			stop()
			for range 3 {
				<-ended
			}
		}()
		srv := &mcp.Server{Name: "gw", Handler: g, OnSession: g.Continues}
		node := &cluster.Node{Name: name, State: shared, Bus: shared, Handler: srv}
		srv.HTTP.Sessions = node.Sessions("/mcp")
		if err := node.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		nodes = append(nodes, node)
	}
	n, session := 0, ""
	send := func(node *cluster.Node, method, params string) string {
		n++
		body := `{"jsonrpc":"2.0","id":` + strings.Repeat("1", n) + `,"method":"` + method + `","params":` + params + `}`
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		w := httptest.NewRecorder()
		node.ServeHTTP(w, r)
		if id := w.Header().Get("Mcp-Session-Id"); id != "" {
			session = id
		}
		data, _ := io.ReadAll(w.Body)
		return string(data)
	}
	call := func(node *cluster.Node, tool string) string {
		return send(node, "tools/call", `{"name":"`+tool+`","arguments":{"text":"x"}}`)
	}
	send(nodes[0], "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}`)
	ready := func(node *cluster.Node) {
		for list := ""; strings.Count(list, `_set"`) < 3; { // an event of the servers' start, which no client of a test waits for
			list = send(node, "tools/list", `{}`)
		}
	}
	ready(nodes[0])
	for _, tool := range []string{"db_set", "plain_set"} {
		if got := call(nodes[0], tool); strings.Contains(got, `"error"`) {
			t.Fatalf("%s: %s", tool, got)
		}
	}
	if err := nodes[0].Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer nodes[1].Leave(context.Background())
	ready(nodes[1])
	for _, c := range []struct {
		tool string
		lost bool
	}{{"plain_get", false}, {"other_get", false}, {"db_get", true}, {"db_get", false}, {"db_set", false}, {"db_get", false}} {
		got := call(nodes[1], c.tool)
		if lost := strings.Contains(got, `the state that server \"db\" kept for you is gone: the process that used it for your session has ended`); lost != c.lost || !lost && !strings.Contains(got, `"result"`) {
			t.Errorf("%s: %s, want a loss: %v", c.tool, got, c.lost)
		}
	}
}
