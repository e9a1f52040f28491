package cluster_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/mcp"
)

// noted keeps what is written to a State, also to its Recent, and what is sent over a Bus.
type noted struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

func (n *noted) add(op, what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, op+" "+what)
}

// since returns what was added since the last call, without the renewals of leases, which come with the time.
func (n *noted) since() (list []string) {
	synctest.Wait() // also for what requests have left to others
	n.mu.Lock()
	defer n.mu.Unlock()
	list = slices.DeleteFunc(n.list, func(s string) bool { return strings.HasPrefix(s, "put lease.node.") })
	n.list = nil
	return list
}

type notedState struct {
	cluster.State
	to *noted
}

func (s notedState) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	s.to.add("put", key)
	return s.State.Put(ctx, key, value, version, ttl)
}

func (s notedState) Delete(ctx context.Context, key string, version uint64) error {
	s.to.add("delete", key)
	return s.State.Delete(ctx, key, version)
}

func (s notedState) Recent() cluster.State {
	return notedState{s.State.(interface{ Recent() cluster.State }).Recent(), s.to}
}

type notedBus struct {
	cluster.Bus
	to *noted
}

func (b notedBus) Dial(ctx context.Context, node string) (net.Conn, error) {
	b.to.add("dial", node)
	return b.Bus.Dial(ctx, node)
}

func (b notedBus) Publish(ctx context.Context, topic string, data []byte) error {
	b.to.add("publish", topic)
	return b.Bus.Publish(ctx, topic, data)
}

// TestAtHome sees that a request of a session writes nothing to the State and sends nothing over the Bus at the node that has the
// session, and that what it would send is noted: an initialize and a request at another node do.
func TestAtHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(cluster.Memory)
		var did noted
		var nodes [2]*cluster.Node
		for i := range nodes {
			s := &mcp.Server{Name: "nodes", Version: "1"}
			mcp.AddTool(s, mcp.Tool{Name: "where"}, func(context.Context, struct{}) (string, error) { return fmt.Sprint("n", i, " here"), nil })
			n := &cluster.Node{
				Name: fmt.Sprint("n", i), State: notedState{m, &did}, Bus: notedBus{m, &did}, Handler: s, Logger: slog.New(slog.DiscardHandler),
			}
			s.HTTP.Sessions, s.HTTP.Events = n.Sessions("/mcp"), n.Events()
			if err := n.Join(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer n.Leave(context.Background())
			nodes[i] = n
		}
		id := opened(t, nodes[0])
		post(t, nodes[0], "POST", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		if list := did.since(); !slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(s, "put session.") }) {
			t.Errorf("with initialize: %q", list)
		}
		time.Sleep(10 * time.Second) // what initialize has left is done, and the nodes have counted each other
		did.since()
		for range 100 {
			for _, body := range []string{callWhere, `{"jsonrpc":"2.0","id":3,"method":"ping"}`, `{"jsonrpc":"2.0","id":4,"method":"tools/list"}`} {
				if w := post(t, nodes[0], "POST", id, body); w.Code != 200 || !strings.Contains(w.Body.String(), `"result"`) {
					t.Fatalf("%s: %d %s", body, w.Code, w.Body)
				}
			}
			time.Sleep(50 * time.Millisecond) // longer than events wait for others in all
		}
		if list := did.since(); len(list) > 0 {
			t.Errorf("300 requests at the node of their session: %d writes and messages: %.10q", len(list), list)
		}
		if w := post(t, nodes[1], "POST", id, callWhere); w.Code != 200 || !strings.Contains(w.Body.String(), "n0 here") {
			t.Fatalf("at the other node: %d %s", w.Code, w.Body)
		}
		if list := did.since(); !slices.Contains(list, "dial n0") {
			t.Errorf("a request at the other node: %q", list)
		}
	})
}
