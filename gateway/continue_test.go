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

// twoNodes are two gateways that share what a cluster shares, each with servers of its own, which are ready.
func twoNodes(t *testing.T, servers map[string]func() *farm) (nodes []*cluster.Node) {
	t.Helper()
	nodes, _ = twoGateways(t, servers)
	return nodes
}

// twoGateways returns twoNodes, and functions that end the gateways behind them.
func twoGateways(t *testing.T, servers map[string]func() *farm) (nodes []*cluster.Node, ends []func()) {
	t.Helper()
	shared := new(cluster.Memory)
	for _, name := range []string{"one", "two"} {
		ctx, stop := context.WithCancel(context.Background())
		var ended sync.WaitGroup
		end := func() {
			stop()
			ended.Wait()
		}
		t.Cleanup(end)
		ends = append(ends, end)
		node := &cluster.Node{Name: name, State: shared, Bus: shared}
		g := &gateway.Gateway{Name: "gw", TaskKeys: [][]byte{[]byte("a key that both nodes have")}, Tasks: node.Tasks("gateway")}
		var ready sync.WaitGroup
		for source, newFarm := range servers {
			f := newFarm()
			ready.Add(1)
			ended.Go(func() {
				var once sync.Once
				_ = g.Run(ctx, gateway.Source{Name: source, Open: f.Open, Share: f.share, Remote: f.url != "", OnStatus: func(s gateway.Status) {
					if s.State == gateway.Ready {
						once.Do(ready.Done)
					}
				}}) // until the test ends
			})
		}
		ready.Wait()
		srv := &mcp.Server{Name: "gw", Handler: g, OnSession: g.Continues, State: mcp.StateConfig{Keys: [][]byte{[]byte("a key that both nodes have")}}}
		node.Handler = srv
		srv.HTTP.Sessions = node.Sessions("/mcp")
		if err := node.Join(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { node.Leave(context.Background()) })
		nodes = append(nodes, node)
	}
	return nodes, ends
}

// A session that another node continues is told once for each server that kept state for it that the state is gone, and
// goes on with the others.
func TestContinuedSessionsLearnOfLostState(t *testing.T) {
	nodes := twoNodes(t, map[string]func() *farm{
		"db": func() *farm { return keeper(mcp.V2025_11_25) },
		"alone": func() *farm {
			f := keeper(mcp.V2025_11_25)
			f.share = gateway.Exclusive
			return f
		},
		"other": func() *farm { return keeper(mcp.V2025_11_25) },
		"plain": func() *farm { return keeper(mcp.V2026_07_28) },
	})
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
		for list := ""; strings.Count(list, `_set"`) < 4; { // an event of the servers' start, which no client of a test waits for
			list = send(node, "tools/list", `{}`)
		}
	}
	ready(nodes[0])
	for _, tool := range []string{"db_set", "alone_set", "plain_set"} {
		if got := call(nodes[0], tool); strings.Contains(got, `"error"`) {
			t.Fatalf("%s: %s", tool, got)
		}
	}
	if err := nodes[0].Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	ready(nodes[1])
	for _, c := range []struct {
		tool string
		lost bool
	}{{"plain_get", false}, {"other_get", false}, {"db_get", true}, {"db_get", false}, {"db_set", false}, {"db_get", false}, {"alone_get", true}, {"alone_get", false}} {
		got := call(nodes[1], c.tool)
		server, _, _ := strings.Cut(c.tool, "_")
		if lost := strings.Contains(got, `the state that server \"`+server+`\" kept for you is gone: the process that used it for your session has ended`); lost != c.lost || !lost && !strings.Contains(got, `"result"`) {
			t.Errorf("%s: %s, want a loss: %v", c.tool, got, c.lost)
		}
	}
}
