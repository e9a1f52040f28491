package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// foreign opens a session with a server of 2026-07-28 written by hand. Answer sends
// what it likes; server/discover is answered already.
func foreign(t testing.TB, c *mcp.Client, answer func(m *jsonrpc.Message, id string, send func(format string, args ...any))) *mcp.Session {
	t.Helper()
	near, far := jsonrpc.Pipe()
	done := make(chan struct{})
	send := func(format string, args ...any) { far.Write(fmt.Appendf(nil, format, args...)) }
	go func() {
		defer close(done)
		for {
			frame, err := far.Read(nil)
			if err != nil {
				return
			}
			m, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
			if err != nil {
				t.Errorf("server got %s: %v", frame, err)
				return
			}
			id := string(m.ID.AppendJSON(nil))
			switch {
			case m.Method == "server/discover":
				send(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{"subscribe":true}}}}`, id)
			default:
				answer(&m, id, send)
			}
		}
	}()
	s, err := c.Connect(t.Context(), mcptest.Wire(near))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); far.Close(); <-done })
	return s
}

// An entry of a list that is not an object is left out, and the list goes on.
func TestNullInAList(t *testing.T) {
	s := foreign(t, &mcp.Client{Name: "c"}, func(m *jsonrpc.Message, id string, send func(string, ...any)) {
		send(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","tools":[null,{"name":"x","inputSchema":{"type":"object"}}]}}`, id)
	})
	var got []string
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			got = append(got, "error")
		} else {
			got = append(got, tool.Name)
		}
	}
	if fmt.Sprint(got) != "[x]" {
		t.Errorf("tools = %q, want x", got)
	}
}

// White space in and around a result is not part of it.
func TestSpaceInResults(t *testing.T) {
	for _, result := range []string{`{ }`, `{ "resultType":"complete" }`, `{ "content":[] , "resultType":"complete"}`, " {\"a\":1}", "{\"a\":1}\t", ` { } `} {
		back := foreign(t, &mcp.Client{Name: "gw"}, func(m *jsonrpc.Message, id string, send func(string, ...any)) {
			send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result)
		})
		for name, h := range map[string]mcp.Handler{
			"a server's": back,
			"a handler's": mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
				return mcp.RawResult(result), nil
			}),
		} {
			p := rawClient(t, &mcp.Server{Name: "s", Version: "1", Handler: h})
			for i, method := range []string{"tools/call", "tools/list", "completion/complete"} {
				p.send(modern(int64(i+1), method, `{}`, `"name":"x"`))
				if m := p.answer(int64(i + 1)); m.Error != nil {
					t.Errorf("%s result %q to %s: %s", name, result, method, show(&m))
				}
			}
		}
	}
}

// subscribable answers what a legacy session needs, and subscriptions by listen.
func subscribable(listen func(ctx context.Context) (mcp.Result, error)) *mcp.Server {
	return &mcp.Server{Name: "s", Version: "1", Handler: mcp.HandlerFunc(func(ctx context.Context, r *mcp.Request) (mcp.Result, error) {
		if r.Method == "server/discover" {
			return mcp.RawResult(`{"capabilities":{"resources":{"subscribe":true}}}`), nil
		}
		return listen(ctx)
	})}
}

const (
	acknowledged = "notifications/subscriptions/acknowledged"
	updated      = "notifications/resources/updated"
	subscribeX   = `{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"test://x"}}`
)

// SUB-26-003: a change that names no subscription is reported after the acknowledgement, even if it came before.
func TestChangeBeforeAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		back := foreign(t, &mcp.Client{Name: "c"}, func(m *jsonrpc.Message, id string, send func(string, ...any)) {
			if m.Method == "subscriptions/listen" {
				send(`{"jsonrpc":"2.0","method":%q,"params":{"uri":"test://x"}}`, updated)
				time.Sleep(time.Second)
				send(`{"jsonrpc":"2.0","method":%q,"params":{"notifications":{"resourceSubscriptions":["test://x"]},"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}`, acknowledged, id)
			}
		})
		var got []string
		for e, err := range back.Watch(t.Context(), "test://x") {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, e.Method); len(got) == 2 {
				break
			}
		}
		if !slices.Equal(got, []string{acknowledged, updated}) {
			t.Errorf("events %q", got)
		}
	})
}

// A server behind the handler may acknowledge more than once; the session's end waits
// for nothing then.
func TestSubscriptionAcknowledgedOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := false
		p := rawClient(t, subscribable(func(ctx context.Context) (mcp.Result, error) {
			for range 5 {
				forward.Notify(ctx, acknowledged, nil)
			}
			forward.Notify(ctx, updated, map[string]string{"uri": "test://x"})
			<-ctx.Done()
			ended = true
			return mcp.RawResult(`{}`), nil
		}))
		p.initializeOnly(mcp.V2025_11_25)
		p.sendf(subscribeX, 1)
		for range 2 { // the answer and the update, in any order
			p.read()
		}
		p.conn.Close()
		synctest.Wait()
		if !ended {
			t.Error("the subscription goes on after its connection")
		}
	})
}

// A subscribe that was cancelled leaves nothing behind that a later one would take
// for a subscription.
func TestSubscribeAfterACancelledOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := true
		p := rawClient(t, subscribable(func(ctx context.Context) (mcp.Result, error) {
			if !first {
				forward.Notify(ctx, acknowledged, nil)
				forward.Notify(ctx, updated, map[string]string{"uri": "test://x"})
			}
			first = false
			<-ctx.Done()
			return mcp.RawResult(`{}`), nil
		}))
		if m := p.initializeOnly(mcp.V2025_11_25); m.Error != nil {
			t.Fatal(show(&m))
		}
		p.sendf(subscribeX, 1)
		synctest.Wait()
		p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
		synctest.Wait()
		p.sendf(subscribeX, 2)
		seen := map[string]bool{}
		for range 2 {
			m := p.read()
			seen[m.Method] = true
		}
		if !seen[updated] {
			t.Error("subscribed to nothing")
		}
	})
}

// initializeOnly opens a legacy session that does not ask for list changes.
func (p *peer) initializeOnly(rev mcp.Revision) jsonrpc.Message {
	p.t.Helper()
	p.sendf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`, rev)
	return p.answer(0)
}

// PROG-26: a progress token is a string or an integer and comes back as it was.
func TestProgressTokens(t *testing.T) {
	for token, want := range map[string]bool{`"a\u0062"`: true, `7`: true, `12345678901234567890`: true, `null`: false, `{}`: false, `true`: false} {
		p := rawClient(t, one(func(ctx context.Context, _ struct{}) (string, error) {
			mcp.Progress(ctx, 1, 2, "")
			return "", nil
		}))
		p.initializeOnly(mcp.V2025_11_25)
		p.sendf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","_meta":{"progressToken":%s}}}`, token)
		m := p.read()
		if got := m.Method == "notifications/progress"; got != want {
			t.Errorf("token %s: got %s", token, show(&m))
			continue
		}
		if !want {
			continue
		}
		raw, _ := m.Param("progressToken")
		var got, sent any
		if json.Unmarshal(raw, &got) != nil || json.Unmarshal([]byte(token), &sent) != nil || got != sent {
			t.Errorf("token %s came back as %s", token, raw)
		}
		p.answer(1)
	}
}
