package mcp_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
)

// listenTo makes the params of a subscriptions/listen to everything of library.
const listenTo = `"notifications":{"toolsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["lib:text"]}`

// subscriptionOf returns the id of the subscription that a notification is tagged with.
func subscriptionOf(m jsonrpc.Message) string {
	id, _ := m.ParamIn("_meta", "io.modelcontextprotocol/subscriptionId")
	return string(id)
}

// A subscription begins with its acknowledgement, which has its id (SUB-26-002), however
// much changes meanwhile. Changes come with the id, of resources too (RES-26-005).
func TestSubscriptionBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := library()
		p := rawClient(t, s)
		stop := make(chan struct{})
		changed := make(chan struct{})
		go func() {
			defer close(changed)
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				s.ResourceUpdated("lib:text")
				addTools(s, 0, 1)
				if i == 1000 {
					return
				}
			}
		}()
		for id := range int64(20) {
			p.send(modern(id, "subscriptions/listen", `{}`, listenTo))
			for first := true; ; first = false {
				m := p.read()
				if subscriptionOf(m) != fmt.Sprint(id) {
					continue // of an earlier subscription
				}
				if first && m.Method != acknowledged {
					t.Errorf("the first message of subscription %d is %s", id, show(&m))
				}
				break
			}
		}
		close(stop)
		<-changed
		s.ResourceUpdated("lib:text")
		got := map[string]bool{}
		for len(got) < 20 {
			m := p.read()
			if m.Method != updated {
				continue
			}
			got[subscriptionOf(m)] = true
		}
	})
}

// Nothing but what was asked for is told on a subscription: no progress and no log
// messages, also of middleware that has some (SUB-26-010).
func TestSubscriptionCarriesChangesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := library()
		s.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, r *mcp.Request) (mcp.Result, error) {
				mcp.Log(ctx).Error("about to serve " + r.Method)
				mcp.Progress(ctx, 1, 2, "")
				if err := forward.Notify(ctx, "notifications/message", map[string]any{"level": "error", "data": "by hand"}); err != nil {
					t.Error(err)
				}
				return next.Handle(ctx, r)
			})
		})
		p := rawClient(t, s)
		const talkative = `"_meta":{"progressToken":"p","io.modelcontextprotocol/logLevel":"debug","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
		p.send(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + talkative + `,` + listenTo + `}}`)
		if m := p.read(); m.Method != acknowledged {
			t.Errorf("the first message is %s", show(&m))
		}
		// Of another call there are some, which have no subscription's id.
		p.send(`{"jsonrpc":"2.0","id":2,"method":"resources/list","params":{` + talkative + `}}`)
		for notes := 0; ; notes++ {
			m := p.read()
			if m.Kind() == jsonrpc.KindResponse {
				if notes != 3 {
					t.Errorf("%d notifications of a call, want 3", notes)
				}
				break
			}
			if subscriptionOf(m) != "" {
				t.Errorf("got %s", show(&m))
			}
		}
		s.ResourceUpdated("lib:text")
		if m := p.read(); m.Method != updated {
			t.Errorf("got %s", show(&m))
		}
	})
}

// A server that ends a subscription on a pipe cancels it by its id (SUB-26-011) and
// answers the listen request (SUB-26-008). Nothing else is ever cancelled by it (SUB-26-012,
// CANC-26-009), whatever becomes of a call.
func TestServerEndsASubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := one(func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		p := rawClient(t, s)
		p.send(modern(7, "subscriptions/listen", `{}`, `"notifications":{"toolsListChanged":true}`))
		p.send(modern(8, "tools/call", `{}`, `"name":"ask"`))
		p.send(modern(9, "tools/call", `{}`, `"name":"ask"`))
		p.read()
		synctest.Wait()
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}}`)
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		go s.Shutdown(ended)
		var got []string
		for _, frame := range p.end() {
			m, err := jsonrpc.Decode([]byte(frame), jsonrpc.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			switch id, _ := m.Param("requestId"); {
			case m.Method != "":
				got = append(got, m.Method+" "+string(id))
			case m.ID == jsonrpc.IntID(7):
				got = append(got, string(m.Result))
			}
		}
		want := `[notifications/cancelled 7 {"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":7,"io.modelcontextprotocol/serverInfo":{"name":"one","version":"1"}}}]`
		if fmt.Sprint(got) != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}
