package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// On a wire other than HTTP a client cancels with a notification that names the request
// (CANC-26-001, -003, STDIO-26-008, CANC-25-004), once and only while the request is in progress
// (CANC-25-001). An answer that crosses it is ignored (CANC-26-013, -014).
func TestClientCancels(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			started := make(chan string, 10)
			cancelled := make(chan string, 10)
			c := nothing()
			c.Revisions = []mcp.Revision{rev}
			var slow jsonrpc.Message
			s, err := c.Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
				switch m.Method {
				case "server/discover":
					return result(m, discovered)
				case "initialize":
					return initialized(m, string(rev))
				case "notifications/cancelled":
					id, _ := m.Param("requestId")
					cancelled <- string(id)
					return result(slow, `{"content":[]}`)
				case "tools/call":
					if name, _ := m.Param("name"); string(name) == `"slow"` {
						slow = m.Clone()
						started <- string(m.ID.AppendJSON(nil))
						return []string{}
					}
					return result(m, `{"content":[]}`)
				}
				return []string{}
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx, cancel := context.WithCancel(t.Context())
			failed := make(chan error, 1)
			go func() {
				_, err := s.CallTool(ctx, "slow", nil)
				failed <- err
			}()
			id := <-started
			cancel()
			if err := <-failed; err == nil {
				t.Error("the cancelled call has a result")
			}
			if got := <-cancelled; got != id {
				t.Errorf("cancelled %s, want %s", got, id)
			}
			for range 2 {
				ctx, cancel := context.WithCancel(t.Context())
				if _, err := s.CallTool(ctx, "fast", nil); err != nil {
					t.Errorf("call after the cancellation = %v", err)
				}
				cancel()
			}
			s.Close()
			if len(cancelled) > 0 {
				t.Errorf("cancelled %s too", <-cancelled)
			}
		})
	}
}

// A cancellation that comes after the answer changes nothing (CANC-26-014, -017).
func TestCancelAfterTheAnswer(t *testing.T) {
	p := rawClient(t, newWorkshop().Server)
	p.initialize(mcp.V2025_11_25, `{}`)
	for id := int64(1); id < 4; id++ {
		p.sendf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"ok"}}}`, id)
		if m := p.answer(id); !strings.Contains(string(m.Result), "ok") {
			t.Errorf("got %s", show(&m))
		}
		p.sendf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)
	}
}

// A legacy server takes back a question by the id that it gave to it, though a request
// of the client has the same (CANC-25-001, -004).
func TestServerTakesBackAQuestion(t *testing.T) {
	asked := make(chan struct{})
	p := rawClient(t, one(func(ctx context.Context, _ struct{}) (string, error) {
		asking, cancel := context.WithCancel(ctx)
		go func() { <-asked; cancel() }()
		mcp.Elicit[color](asking, "Which?")
		return "went on", ctx.Err()
	}))
	p.initialize(mcp.V2025_11_25, `{"elicitation":{}}`)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}`)
	question := p.read()
	close(asked)
	if question.Kind() != jsonrpc.KindRequest {
		t.Fatalf("got %s", show(&question))
	}
	var back string
	for m := p.read(); m.Kind() != jsonrpc.KindResponse; m = p.read() {
		if m.Method == "notifications/cancelled" {
			id, _ := m.Param("requestId")
			back += string(id)
		}
	}
	if want := string(question.ID.AppendJSON(nil)); back != want {
		t.Errorf("took back %q, want %s", back, want)
	}
}

// A call that takes too long is cancelled at the server, and nobody waits for it any
// longer (INIT-25-018, -021, CANC-26-005). The deadline of its context ends it also while
// progress keeps it alive (INIT-25-020, CANC-26-007).
func TestTimeOutCancels(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		synctest.Test(t, func(t *testing.T) {
			cancelled := make(chan string, 10)
			slow := ""
			near, far := jsonrpc.Pipe()
			over := make(chan struct{})
			busy := func(token []byte) {
				for {
					select {
					case <-time.After(time.Second):
						far.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":` + string(token) + `,"progress":1}}`))
					case <-over:
						return
					}
				}
			}
			c := nothing()
			c.Revisions = []mcp.Revision{rev}
			go func() {
				p := &peer{t: t, conn: far}
				for {
					frame, err := p.conn.Read(nil)
					if err != nil {
						return
					}
					m, err := jsonrpc.Decode(frame, jsonrpc.Limits{})
					if err != nil {
						t.Error(err)
						return
					}
					switch m.Method {
					case "server/discover":
						p.send(result(m, discovered)[0])
					case "initialize":
						p.send(initialized(m, string(rev))[0])
					case "tools/call":
						slow = string(m.ID.AppendJSON(nil))
						if name, _ := m.Param("name"); string(name) == `"busy"` {
							token, _ := m.ParamIn("_meta", "progressToken")
							go busy(bytes.Clone(token))
						}
					case "notifications/cancelled":
						id, _ := m.Param("requestId")
						cancelled <- string(id)
					}
				}
			}()
			s, err := c.Connect(t.Context(), mcptest.Wire(near))
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err = s.CallTool(t.Context(), "silent", nil, mcp.IdleTimeout(5*time.Second))
			if got := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || got != 5*time.Second {
				t.Errorf("%s: a silent call = %v after %v", rev, err, got)
			}
			if got := <-cancelled; got != slow {
				t.Errorf("%s: cancelled %s, want %s", rev, got, slow)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			start = time.Now()
			_, err = s.CallTool(ctx, "busy", nil, mcp.IdleTimeout(5*time.Second))
			if got := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || got != time.Minute {
				t.Errorf("%s: a busy call = %v after %v", rev, err, got)
			}
			if got := <-cancelled; got != slow {
				t.Errorf("%s: cancelled %s, want %s", rev, got, slow)
			}
			close(over)
			s.Close()
			far.Close()
		})
	}
}

// Why a call was cancelled is logged, and the cause of its context (CANC-26-015).
func TestReasonOfACancellation(t *testing.T) {
	w := newWorkshop()
	var log lockedBuffer
	w.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	p := rawClient(t, w.Server)
	p.send(modern(1, "tools/call", `{}`, `"name":"wait"`))
	<-w.started
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"seen enough"}}`)
	if cause := <-w.causes; cause == nil || !strings.Contains(cause.Error(), `"seen enough"`) {
		t.Errorf("the cause is %v", cause)
	}
	<-w.late
	if !strings.Contains(log.String(), "call cancelled") || !strings.Contains(log.String(), "seen enough") {
		t.Errorf("the log is %s", log.String())
	}
}
