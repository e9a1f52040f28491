package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/cluster"
	"github.com/patchbay-dev/patchbay/mcp"
)

// changesBus is the Bus of a node, and has what it publishes about changes.
type changesBus struct {
	cluster.Bus
	mu        sync.Mutex
	published []string // topics; guarded by mu
	refuse    bool     // Subscribe fails for such a topic; guarded by mu
	block     chan struct{}
}

func (b *changesBus) Publish(ctx context.Context, topic string, data []byte) error {
	if strings.HasPrefix(topic, "node.changes.") {
		b.mu.Lock()
		b.published = append(b.published, topic)
		b.mu.Unlock()
		if b.block != nil {
			<-b.block
		}
	}
	return b.Bus.Publish(ctx, topic, data)
}

func (b *changesBus) Subscribe(topic string, f func(data []byte)) (stop func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse && strings.HasPrefix(topic, "node.changes.") {
		return nil, errors.New("not now")
	}
	return b.Bus.Subscribe(topic, f)
}

func (b *changesBus) topics() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.published)
}

func (b *changesBus) refuses(yes bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuse = yes
}

// changesNode returns a node that has not joined, with a server of a resource.
func changesNode(m *cluster.Memory, i int) (*cluster.Node, *mcp.Server, *changesBus) {
	srv, bus := &mcp.Server{Name: "s", Version: "1"}, &changesBus{Bus: m}
	mcp.AddResource(srv, mcp.Resource{URI: "test://clock", Name: "clock"}, func(context.Context) (string, error) { return "now", nil })
	mcp.AddTool(srv, mcp.Tool{Name: "tick"}, func(context.Context, struct{}) (string, error) { return "", nil })
	return &cluster.Node{Name: fmt.Sprint("n", i), State: m, Bus: bus, Handler: srv, Logger: slog.New(slog.DiscardHandler)}, srv, bus
}

func joinNow(t *testing.T, n *cluster.Node) {
	t.Helper()
	if err := n.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// subscribed is what a client at a node sees of a resource and of lists. The function seen returns it, and forgets it.
func subscribed(t *testing.T, n *cluster.Node, r mcp.Revision) (seen func() []string) {
	t.Helper()
	dial := fronted(t, n)
	client := &mcp.Client{Name: "c", Revisions: []mcp.Revision{r}, HTTPClient: &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(), nil },
	}}}
	s, err := client.Dial(t.Context(), "http://127.0.0.1/mcp")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var mu sync.Mutex
	var events []string
	var watching sync.WaitGroup
	watching.Go(func() {
		for e, err := range s.Watch(ctx, "test://clock") {
			if err != nil {
				break // of the end of the test
			}
			mu.Lock()
			events = append(events, strings.TrimSpace(strings.TrimPrefix(e.Method, "notifications/")+" "+e.URI))
			mu.Unlock()
		}
	})
	t.Cleanup(func() {
		stop()
		watching.Wait()
		s.Close()
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		was := events
		events = nil
		return was
	}
}

// Subscribers at all nodes hear an update that the server of one tells, once. Nothing is told again, and a change of a list is not told. The
// server that tells has had no request, and one of the others shares later than its node has joined.
func TestUpdatesReachAllNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := new(cluster.Memory)
		var nodes []*cluster.Node
		var servers []*mcp.Server
		var buses []*changesBus
		for i := range 3 {
			n, srv, bus := changesNode(m, i)
			if i < 2 {
				srv.Shared = n.Share("/mcp")
			}
			joinNow(t, n)
			if i == 2 {
				srv.Shared = n.Share("/mcp")
			}
			t.Cleanup(func() {
				now, end := context.WithCancel(context.Background())
				end()
				_ = srv.Shutdown(now) // it ends calls of Watch
				leave(n)
			})
			nodes, servers, buses = append(nodes, n), append(servers, srv), append(buses, bus)
		}
		clients := map[string]func() []string{
			"of a session at n1": subscribed(t, nodes[1], mcp.V2025_11_25),
			"that listens at n2": subscribed(t, nodes[2], mcp.V2026_07_28),
		}
		expect := func(when string, want ...string) {
			t.Helper()
			time.Sleep(time.Second)
			for client, seen := range clients {
				if got := seen(); !slices.Equal(got, want) {
					t.Errorf("%s, the client %s saw %q, want %q", when, client, got, want)
				}
			}
		}
		time.Sleep(time.Second)
		for _, seen := range clients {
			seen() // acknowledged
		}
		servers[0].ResourceUpdated("test://clock")
		expect("after an update at n0", "resources/updated test://clock")
		servers[0].ResourceUpdated("test://clock/hand")
		mcp.AddTool(servers[0], mcp.Tool{Name: "more"}, func(context.Context, struct{}) (string, error) { return "", nil })
		expect("after changes at n0 that concern nobody")
		clients["of a session at n0"] = subscribed(t, nodes[0], mcp.V2025_11_25)
		clients["that listens at n0"] = subscribed(t, nodes[0], mcp.V2026_07_28)
		time.Sleep(time.Second)
		for _, seen := range clients {
			seen()
		}
		for i, srv := range servers {
			srv.ResourceUpdated("test://clock")
			expect(fmt.Sprint("after an update at n", i), "resources/updated test://clock")
		}
		before := len(buses[0].topics())
		for range 20_000 { // in no time
			servers[0].ResourceUpdated("test://clock")
		}
		time.Sleep(time.Second)
		for client, seen := range clients {
			if n := len(seen()); n == 0 || n > 5 {
				t.Errorf("of 20,000 updates at once, the client %s saw %d", client, n)
			}
		}
		if n := len(buses[0].topics()) - before; n == 0 || n > 5 {
			t.Errorf("20,000 updates at once took %d messages", n)
		}
		if a, b, c := before, len(buses[1].topics()), len(buses[2].topics()); a != 3 || b != 1 || c != 1 {
			t.Errorf("the nodes published %d, %d and %d messages; n0 told 3 updates, and the others one each", a, b, c)
		}
	})
}

// hearing returns the changes that are heard with a Share.
func hearing(n *cluster.Node, path string) (heard func() string) {
	var mu sync.Mutex
	var list []string
	n.Share(path).OnTold(func(change []byte) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, string(change))
	})
	return func() string {
		time.Sleep(100 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		was := strings.Join(list, " ")
		list = nil
		return was
	}
}

// Changes are told from Join to Leave, at the path that they belong to. Messages that cannot be read are left out.
func TestChangesBetweenJoinAndLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := new(cluster.Memory)
		one, _, bus := changesNode(m, 1)
		two, _, late := changesNode(m, 2)
		tell := func(n *cluster.Node, path string, changes ...string) {
			for _, change := range changes {
				n.Share(path).Tell([]byte(change))
			}
		}
		own, heard := hearing(one, "/a"), hearing(two, "/a")
		want := func(what string, heard func() string, want string) {
			t.Helper()
			if got := heard(); got != want {
				t.Errorf("%s: heard %q, want %q", what, got, want)
			}
		}
		tell(one, "/a", "before Join")
		late.refuses(true)
		if err := two.Join(t.Context()); err == nil || !strings.Contains(err.Error(), "node n2: not now") {
			t.Fatalf("Join with a Bus that refuses: %v", err)
		}
		late.refuses(false)
		joinNow(t, one)
		joinNow(t, two)
		want("before the first change", heard, "")
		tell(one, "/a", "1", "2", "1", "3")
		want("after three changes", heard, "1 2 3")
		tell(one, "/b", "1")
		want("after one at another path", heard, "")
		want("of its own", own, "")
		tell(two, "/a", "4")
		want("after one of the other node", own, "4")

		late.refuses(true)
		other := hearing(two, "/b")
		tell(one, "/b", "2")
		want("while the Bus refuses", other, "")
		late.refuses(false)
		time.Sleep(time.Second)
		tell(one, "/b", "3")
		want("when it does not any more", other, "3")

		tell(one, "/a", strings.Repeat("x", 64<<10+1), "5", "")
		want("after one that is too large, and an empty one", heard, "5 ")
		topic := bus.topics()[0]
		for _, bad := range []string{"", "null", "{", "[]", `{"v":2,"process":"x","changes":["eA=="]}`, `{"v":1,"process":"x","changes":"eA=="}`, `{"v":1,"process":"x","changes":[7]}`} {
			if err := m.Publish(t.Context(), topic, []byte(bad)); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Publish(t.Context(), topic, []byte(`{"v":1,"process":"x","changes":["eA==",null],"more":{}}`)); err != nil {
			t.Fatal(err)
		}
		want("after messages of others", heard, "x ")

		tell(one, "/a", "6")
		synctest.Wait()
		tell(one, "/a", "right before Leave") // others gather at that moment
		leave(one)
		want("after Leave of the other node", heard, "6 right before Leave")
		own()
		tell(one, "/a", "after Leave")
		tell(two, "/a", "7")
		want("after a change at a node that has left", heard, "")
		want("at a node that has left", own, "")
		leave(two)
		hearing(two, "/c")
	})
}

// A Bus that does not take messages holds nobody up, and takes a bounded part of what waits.
func TestChangesAndASlowBus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := new(cluster.Memory)
		one, _, slow := changesNode(m, 1)
		two, _, _ := changesNode(m, 2)
		slow.block = make(chan struct{})
		share, heard := one.Share("/"), hearing(two, "/")
		joinNow(t, one)
		joinNow(t, two)
		share.Tell([]byte("lost"))
		time.Sleep(time.Second) // more than a message waits
		for i := range 20_000 {
			share.Tell(fmt.Appendf(nil, "%01000d", i))
		}
		close(slow.block)
		time.Sleep(time.Second)
		list := strings.Fields(heard())
		if n := len(list); n < 4000 || n > 4200 || list[0] != strings.Repeat("0", 1000) || !strings.HasSuffix(list[n-1], fmt.Sprint("0", n-1)) {
			t.Errorf("of 20,000 changes %d were heard", n)
		}
		share.Tell([]byte("last"))
		if got := heard(); got != "last" {
			t.Errorf("after that %q was heard", got)
		}
		leave(one)
		leave(two)
	})
}
