package gateway_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// toolsOnly is a Source of a server that has tools and nothing else.
func toolsOnly(name string, servers chan<- *mcp.Server) gateway.Source {
	return gateway.Source{Name: name, Open: func(ctx context.Context) (gateway.Upstream, error) {
		s := &mcp.Server{Name: name, Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "a"}, func(context.Context, struct{}) (string, error) { return "", nil })
		near, far := jsonrpc.Pipe()
		go s.Serve(context.WithoutCancel(ctx), far)
		if servers != nil {
			servers <- s
		}
		c := &mcp.Client{Name: "gw", Version: "1"}
		gateway.Relay(ctx, c)
		return c.Connect(ctx, mcptest.Wire(near))
	}}
}

// told waits a while and returns the notifications since the previous call.
func (l *listening) told() string {
	time.Sleep(5 * time.Second)
	var methods []string
	for len(l.events) > 0 {
		methods = append(methods, strings.TrimPrefix((<-l.events).Method, "notifications/"))
	}
	return strings.Join(methods, " ")
}

// Trap 34: a server that appears, disappears or is replaced changes only the lists that it has a
// part in. Callers are notified of these alone: once when it goes, and once when it comes.
func TestOnlyListsOfAServerAreAnnounced(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		synctest.Test(t, func(t *testing.T) {
			g := &gateway.Gateway{Name: "gw"}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			l := startListening(ctx, t, connect(t, g, rev))
			l.want("notifications/subscriptions/acknowledged")
			l.told()
			stop := run(t, g, toolsOnly("a", nil))
			if got, want := l.told(), "tools/list_changed"; got != want {
				t.Errorf("%s: a server that comes: told %q, want %q", rev, got, want)
			}
			// An edited entry, as up handles it: the new source replaces the old one, which is then
			// stopped.
			again := run(t, g, toolsOnly("a", nil))
			stop()
			if got := l.told(); got != "tools/list_changed" && got != "tools/list_changed tools/list_changed" {
				t.Errorf("%s: an edit: told %q, want tools/list_changed once or twice", rev, got)
			}
			again()
			if got, want := l.told(), "tools/list_changed"; got != want {
				t.Errorf("%s: a server that goes: told %q, want %q", rev, got, want)
			}
			run(t, g, gateway.Source{Name: "b", Open: func(context.Context) (gateway.Upstream, error) { return nil, fmt.Errorf("not today") }})
			if got := l.told(); got != "" {
				t.Errorf("%s: a server that does not start: told %q, want nothing", rev, got)
			}
		})
	}
}

// Trap 34: a change that the gateway does not see is announced too, because it may exist for other
// callers, with pauses that grow to a minute: two gateways that are servers of each other would
// otherwise wake each other without end. A change that it sees is announced at once.
func TestUnseenChangesAreToldWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := make(chan *mcp.Server, 1)
		g := &gateway.Gateway{Name: "gw"}
		src := toolsOnly("a", servers)
		src.Share = gateway.Shared
		run(t, g, src)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		s := <-servers
		l := startListening(ctx, t, connect(t, g, mcp.V2026_07_28))
		l.want("notifications/subscriptions/acknowledged")
		l.told()
		unseen := func() { // the list is the same when the change is announced
			mcp.AddTool(s, mcp.Tool{Name: "b"}, func(context.Context, struct{}) (string, error) { return "", nil })
			s.Remove(mcp.Feature{Kind: mcp.KindTool, Name: "b"})
		}
		unseen()
		if got, want := l.told(), "tools/list_changed"; got != want {
			t.Errorf("told %q of the first change, want %q", got, want)
		}
		told := 0
		for range 60 * 10 {
			time.Sleep(time.Second)
			unseen()
			for ; len(l.events) > 0; told++ {
				<-l.events
			}
		}
		if told < 8 || told > 20 {
			t.Errorf("told %d times in 10 minutes of a change each second, want about 6 and one a minute", told)
		}
		before := time.Now()
		mcp.AddTool(s, mcp.Tool{Name: "c"}, func(context.Context, struct{}) (string, error) { return "", nil })
		l.want("notifications/tools/list_changed")
		if took := time.Since(before); took > time.Second {
			t.Errorf("a change that is seen is told after %v", took)
		}
	})
}
