package auth_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Trap 4: with nothing but Protect, a subscription to a resource is its principal's: another's that
// begins and ends beside it changes nothing.
func TestSubscriptionIsolationByProtectAlone(t *testing.T) {
	h := newHouse(t)
	watch := func(who, url string, rev mcp.Revision) (s *mcp.Session, events chan string, end context.CancelFunc) {
		t.Helper()
		s = h.dial(who, url, rev)
		ctx, cancel := context.WithCancel(t.Context())
		events = make(chan string, 100)
		go func() {
			defer close(events)
			for e, err := range s.Watch(ctx, "house:door") {
				if err != nil {
					events <- err.Error()
					return
				}
				events <- e.Method + e.URI
			}
		}()
		if e := <-events; e != "notifications/subscriptions/acknowledged" {
			t.Fatalf("%s at %s: the first event is %s", who, url, e)
		}
		return s, events, cancel
	}
	const updated = "notifications/resources/updatedhouse:door"
	next := func(who string, events chan string) {
		t.Helper()
		select {
		case e := <-events:
			if e != updated {
				t.Errorf("%s hears %q, want %q", who, e, updated)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("%s does not hear that the resource changed", who)
		}
	}
	for url, rev := range h.wires() {
		t.Run(fmt.Sprintf("%s at %s", rev, strings.TrimPrefix(url, h.url)), func(t *testing.T) {
			_, alices, end := watch("alice", url, rev)
			defer end()
			bob, bobs, bobEnds := watch("bob", url, rev)
			h.srv.ResourceUpdated("house:door")
			next("alice", alices)
			next("bob", bobs)
			bobEnds()
			for range bobs { // until it has ended
			}
			if _, err := bob.ReadResource(t.Context(), "house:door"); err != nil { // which comes after the end
				t.Error(err)
			}
			h.srv.ResourceUpdated("house:door")
			next("alice", alices)
		})
	}
	// In the session of alice bob neither begins nor ends one.
	id := h.open("alice")
	for _, method := range []string{"resources/subscribe", "resources/unsubscribe"} {
		if res := h.send("POST", "bob", `{"jsonrpc":"2.0","id":2,"method":"`+method+`","params":{"uri":"house:door"}}`, "Mcp-Session-Id", id); res.StatusCode != 404 {
			t.Errorf("%s by bob in the session of alice: %d, want 404", method, res.StatusCode)
		}
	}
}

// Trap 4: with nothing but Protect, subscriptions/listen reveals no task of another principal.
func TestTaskListenIsolationByProtectAlone(t *testing.T) {
	h := newHouse(t)
	task, err := h.dial("alice", h.url+"/mcp", mcp.V2026_07_28).StartTask(t.Context(), "job", nothing{})
	if err != nil {
		t.Fatal(err)
	}
	<-h.begun
	listen := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"taskIds":["` + task.ID + `"]},"_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`
	overHTTP := func(who string) string {
		res := h.send("POST", who, listen, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
		_, data := event(t, bufio.NewReader(res.Body))
		return data
	}
	overWebSocket := func(who string) string {
		conn := h.socket(who)
		if err := conn.Write([]byte(listen)); err != nil {
			t.Fatal(err)
		}
		frame, err := conn.Read(nil)
		if err != nil {
			t.Fatal(err)
		}
		return string(frame)
	}
	for wire, by := range map[string]func(who string) string{"http": overHTTP, "websocket": overWebSocket} {
		for who, sees := range map[string]bool{"alice": true, "bob": false} {
			first := by(who)
			var m struct{ Method string }
			if err := json.Unmarshal([]byte(first), &m); err != nil || m.Method != "notifications/subscriptions/acknowledged" || strings.Contains(first, task.ID) != sees {
				t.Errorf("%s over %s: the first message is %s; want it to name the task: %t", who, wire, first, sees)
			}
		}
	}
	close(h.release)
}

// Trap 4: with nothing but Protect, a cancellation over WebSocket is about a call of the same
// connection, though another's has the same id.
func TestCancellationIsolationByProtectAlone(t *testing.T) {
	meta := map[string]string{
		"2025-11-25": `{}`,
		"2026-07-28": `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`,
	}
	for rev, meta := range meta {
		t.Run(rev, func(t *testing.T) {
			h := newHouse(t)
			alice, bob := h.socket("alice"), h.socket("bob")
			for _, conn := range []jsonrpc.Conn{alice, bob} {
				if rev == "2026-07-28" {
					continue
				}
				if err := conn.Write([]byte(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)); err != nil {
					t.Fatal(err)
				}
				if _, err := conn.Read(nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := alice.Write([]byte(`{"jsonrpc":"2.0","id":"w","method":"tools/call","params":{"name":"wait","arguments":{},"_meta":` + meta + `}}`)); err != nil {
				t.Fatal(err)
			}
			<-h.begun
			for _, frame := range []string{
				`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w","_meta":` + meta + `}}`,
				`{"jsonrpc":"2.0","id":"p","method":"tools/list","params":{"_meta":` + meta + `}}`, // is served after it
			} {
				if err := bob.Write([]byte(frame)); err != nil {
					t.Fatal(err)
				}
			}
			if frame, err := bob.Read(nil); err != nil || !strings.Contains(string(frame), `"id":"p"`) {
				t.Fatalf("bob gets %s, %v", frame, err)
			}
			close(h.release)
			if err := <-h.ended; err != nil {
				t.Errorf("alice's call was ended: %v", err)
			}
			if frame, err := alice.Read(nil); err != nil || !strings.Contains(string(frame), "the secret of as#alice") {
				t.Errorf("alice gets %s, %v", frame, err)
			}
		})
	}
}
