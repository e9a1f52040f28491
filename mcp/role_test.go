package mcp_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A modern server writes no requests, also when it has a question (PAT-26-001,
// STDIO-26-007).
func TestModernServerWritesNoRequests(t *testing.T) {
	p := rawClient(t, one(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "")
		_, err := mcp.Elicit[color](ctx, "Which?")
		return "", err
	}))
	p.send(modern(1, "server/discover", canElicit, ""))
	p.send(modern(2, "tools/call", canElicit, `"name":"ask"`))
	p.send(modern(3, "tools/list", canElicit, ""))
	for answers := 0; answers < 3; {
		switch m := p.read(); m.Kind() {
		case jsonrpc.KindResponse:
			answers++
		case jsonrpc.KindRequest:
			t.Errorf("the server asks %s", show(&m))
		}
	}
}

// A modern client writes no responses, whatever a server asks (PAT-26-002,
// STDIO-26-005).
func TestModernClientWritesNoResponses(t *testing.T) {
	c := answering("accept", map[string]any{"color": "red"})
	s := foreign(t, c, func(m *jsonrpc.Message, id string, send func(string, ...any)) {
		switch m.Kind() {
		case jsonrpc.KindResponse:
			t.Errorf("the client answers %s", show(m))
		case jsonrpc.KindRequest:
			send(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
			send(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}`)
			send(`{"jsonrpc":"2.0","id":"r","method":"roots/list"}`)
			send(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[]}}`, id)
		}
	})
	for range 3 { // what comes after the first answer is seen before the second
		if _, err := s.CallTool(t.Context(), "x", nil); err != nil {
			t.Error(err)
		}
	}
}

// A notification of a subscription reaches the Watch with its id, and no other (STDIO-26-006,
// SUB-26-007).
func TestSubscriptionsAreToldApart(t *testing.T) {
	const tagged = `{"jsonrpc":"2.0","method":"notifications/%s","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}%s}}`
	var mu sync.Mutex
	var opened []string
	var tell func(format string, args ...any)
	s := foreign(t, nothing(), func(m *jsonrpc.Message, id string, send func(string, ...any)) {
		if m.Method != "subscriptions/listen" {
			return
		}
		filter, _ := m.Param("notifications")
		mu.Lock()
		opened, tell = append(opened, id), send
		mu.Unlock()
		send(tagged, "subscriptions/acknowledged", id, `,"notifications":`+string(filter))
	})
	first := watching(t, t.Context(), s, "test://x")
	second := watching(t, t.Context(), s, "test://x")
	mu.Lock()
	defer mu.Unlock()
	tell(tagged, "resources/updated", opened[1], `,"uri":"test://x?2"`)
	tell(tagged, "resources/updated", opened[0], `,"uri":"test://x?1"`)
	expect(t, first, "resources/updated test://x?1")
	expect(t, second, "resources/updated test://x?2")
}

// A client writes nothing to its server's input but messages, one a line (STDIO-26-003).
func TestClientWritesMessagesOnly(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			mcptest.LeakCheck(t)
			toServer, fromClient := io.Pipe()
			toClient, fromServer := io.Pipe()
			var wrote bytes.Buffer // read when the connection is closed
			near := jsonrpc.NewLineConn(toClient, io.MultiWriter(&wrote, fromClient), func() error { fromClient.Close(); return toClient.Close() }, 0)
			far := jsonrpc.NewLineConn(toServer, fromServer, func() error { fromServer.Close(); return toServer.Close() }, 0)
			var wg sync.WaitGroup
			wg.Go(func() { newWorkshop().Serve(t.Context(), far) })
			c := nothing()
			c.Revisions = []mcp.Revision{rev}
			s, err := c.Connect(t.Context(), mcptest.Wire(near))
			if err != nil {
				t.Fatal(err)
			}
			var calls sync.WaitGroup
			for range 5 {
				calls.Go(func() {
					if _, err := s.CallTool(t.Context(), "echo", text{"two\nlines\r\n"}); err != nil {
						t.Error(err)
					}
				})
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			s.CallTool(ctx, "echo", nil)
			calls.Wait()
			echo(t, s)
			s.Close()
			wg.Wait()
			lines := strings.SplitAfter(wrote.String(), "\n")
			if last := lines[len(lines)-1]; last != "" || len(lines) < 7 {
				t.Errorf("%d lines, and %q without an end", len(lines)-1, last)
			}
			for _, line := range lines[:len(lines)-1] {
				if _, err := jsonrpc.Decode([]byte(line), jsonrpc.Limits{}); err != nil {
					t.Errorf("line %q: %v", line, err)
				}
			}
		})
	}
}

// A batch of 2025-03-26 is one line (STDIO-2503-001).
func TestBatchOnALine(t *testing.T) {
	near, far := mcptest.Pipes(t)
	var wg sync.WaitGroup
	wg.Go(func() { newWorkshop().Serve(t.Context(), far) })
	defer wg.Wait()
	defer near.Close()
	p := &peer{t: t, conn: near}
	p.initialize(mcp.V2025_03_26, `{}`)
	p.send(`[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]`)
	frame, err := near.Read(nil)
	if err != nil {
		t.Fatal(err)
	}
	if answers, err := jsonrpc.DecodeBatch(frame, jsonrpc.Limits{}); err != nil || len(answers) != 2 {
		t.Errorf("got %s, %v; want two answers", frame, err)
	}
}
