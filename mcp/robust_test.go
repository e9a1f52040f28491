package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// workshop is a server with tools that behave badly, and echo, which does not.
type workshop struct {
	*mcp.Server
	started chan struct{} // one for each run of wait and stuck
	causes  chan error    // why the context of wait ended
	release chan struct{} // lets stuck return
	panics  atomic.Int64  // seen by OnPanic
	late    chan struct{} // one for each run of wait that has tried to send
}

type text struct {
	Text string `json:"text,omitempty"`
}

func newWorkshop() *workshop {
	w := &workshop{
		Server:  &mcp.Server{Name: "workshop", Version: "1"},
		started: make(chan struct{}, 100), causes: make(chan error, 100), release: make(chan struct{}),
		late: make(chan struct{}, 100),
	}
	w.OnPanic = func(context.Context, any, []byte) { w.panics.Add(1) }
	mcp.AddTool(w.Server, mcp.Tool{Name: "echo"}, func(_ context.Context, in text) (string, error) { return in.Text, nil })
	mcp.AddTool(w.Server, mcp.Tool{Name: "panic"}, func(context.Context, struct{}) (string, error) { panic("secret detail") })
	mcp.AddTool(w.Server, mcp.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) {
		w.started <- struct{}{}
		<-ctx.Done()
		w.causes <- context.Cause(ctx)
		// Later messages of a cancelled call must not be sent (CANC-26).
		mcp.Progress(ctx, 1, 1, "late")
		mcp.Log(ctx).Error("late")
		forward.Notify(ctx, "notifications/late", struct{}{})
		mcp.Elicit[color](ctx, "late?")
		w.late <- struct{}{}
		return "late", nil
	})
	mcp.AddTool(w.Server, mcp.Tool{Name: "stuck"}, func(context.Context, struct{}) (string, error) {
		w.started <- struct{}{}
		<-w.release
		return "released", nil
	})
	return w
}

func echo(t testing.TB, s *mcp.Session) {
	t.Helper()
	if got, err := mcp.CallAs[string](t.Context(), s, "echo", text{"hello"}); err != nil || got != "hello" {
		t.Errorf("echo = %q, %v", got, err)
	}
}

// A panic answers its own call, without detail, and nothing else notices.
func TestPanicIsContained(t *testing.T) {
	mcptest.LeakCheck(t)
	var w *workshop
	mcptest.Every(t, func() *mcp.Server { w = newWorkshop(); return w.Server }, func() *mcp.Client { return &mcp.Client{Name: "c"} },
		func(t *testing.T, s *mcp.Session) {
			_, err := s.CallTool(t.Context(), "panic", nil)
			var rpc *mcp.Error
			if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal || strings.Contains(rpc.Message, "secret") {
				t.Errorf("panic = %v; want error %d without detail", err, jsonrpc.CodeInternal)
			}
			if n := w.panics.Load(); n != 1 {
				t.Errorf("OnPanic was called %d times", n)
			}
			echo(t, s)
		})
}

// A call that never returns holds up no other, and Close does not wait for it.
func TestStuckHandler(t *testing.T) {
	mcptest.LeakCheck(t)
	var w *workshop
	mcptest.Every(t, func() *mcp.Server { w = newWorkshop(); return w.Server }, func() *mcp.Client { return &mcp.Client{Name: "c"} },
		func(t *testing.T, s *mcp.Session) {
			w := w
			t.Cleanup(func() { close(w.release) })
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error)
			go func() {
				_, err := s.CallTool(ctx, "stuck", nil)
				ended <- err
			}()
			<-w.started
			echo(t, s)
			why := errors.New("changed my mind")
			cancel(why)
			if err := <-ended; !errors.Is(err, why) {
				t.Errorf("the cancelled call returned %v, want its cause", err)
			}
			echo(t, s)
			if err := s.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
		})
}

// CANC-26: cancellation reaches the handler's context, with a cause, and nothing
// more is sent for the call (STDIO-26-009, -010, CANC-26-010 to -012).
func TestCancel(t *testing.T) {
	mcptest.LeakCheck(t)
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) {
			w := newWorkshop()
			p := rawClient(t, w.Server)
			request := func(id int64, tool string) string {
				if rev == mcp.V2026_07_28 {
					return modern(id, "tools/call", canElicit, fmt.Sprintf(`"name":%q`, tool))
				}
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"_meta":{"progressToken":1}}}`, id, tool)
			}
			if rev != mcp.V2026_07_28 {
				p.initialize(rev, `{"elicitation":{}}`)
			}
			p.send(request(1, "wait"))
			<-w.started
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}`)
			if cause := <-w.causes; cause == nil || !strings.Contains(cause.Error(), "cancelled") {
				t.Errorf("context.Cause = %v", cause)
			}
			<-w.late
			// Malformed and unknown cancellations are ignored (CANC-26-017).
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`)
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`)
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
			p.send(request(2, "echo"))
			p.answer(2) // fails the test if anything but notifications comes before
			if len(p.notes) > 0 {
				t.Errorf("after the cancellation came %q", p.notes)
			}
			p.conn.Close()
		})
	}
}

// A peer that sends garbage gets errors where an answer is due, and all other calls
// go on.
func TestGarbageToServer(t *testing.T) {
	mcptest.LeakCheck(t)
	w := newWorkshop()
	w.Limits.Depth = 32
	p := rawClient(t, w.Server)
	p.initialize(mcp.V2025_06_18, `{}`)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stuck"}}`)
	<-w.started
	garbage := []struct {
		name, frame string
		code        int // of the answer; 0: there is none
	}{
		{"no JSON", `hello`, jsonrpc.CodeParse},
		{"half a message", `{"jsonrpc":"2.0","id":2,"met`, jsonrpc.CodeParse},
		{"bad UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"\xff\"}", jsonrpc.CodeParse},
		{"a member twice", `{"jsonrpc":"2.0","id":2,"id":3,"method":"ping"}`, jsonrpc.CodeParse},
		{"too deep", strings.Repeat("[", 100), 0},
		{"a number", `17`, jsonrpc.CodeInvalidRequest},
		{"null", `null`, jsonrpc.CodeInvalidRequest},
		{"an empty object", `{}`, jsonrpc.CodeInvalidRequest},
		{"another version", `{"jsonrpc":"1.0","id":2,"method":"ping"}`, jsonrpc.CodeInvalidRequest},
		{"an id that is none", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, jsonrpc.CodeInvalidRequest},
		{"a fraction as id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, jsonrpc.CodeInvalidRequest},
		{"a null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, jsonrpc.CodeInvalidRequest},
		{"params that are none", `{"jsonrpc":"2.0","id":2,"method":"ping","params":3}`, jsonrpc.CodeInvalidRequest},
		{"an id in use", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, jsonrpc.CodeInvalidRequest},
		{"a batch", `[{"jsonrpc":"2.0","id":2,"method":"ping"}]`, jsonrpc.CodeInvalidRequest},
		{"an unknown method", `{"jsonrpc":"2.0","id":2,"method":"no/such"}`, jsonrpc.CodeMethodNotFound},
		{"a method of another revision", `{"jsonrpc":"2.0","id":2,"method":"server/discover"}`, jsonrpc.CodeMethodNotFound},
		{"a method of the client", `{"jsonrpc":"2.0","id":2,"method":"roots/list"}`, jsonrpc.CodeMethodNotFound},
		{"initialize again", `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, jsonrpc.CodeInvalidRequest},
		{"a response to nothing", `{"jsonrpc":"2.0","id":77,"result":{}}`, 0},
		{"a bad response", `{"jsonrpc":"2.0","id":78,"result":{},"error":3}`, 0},
		{"an unknown notification", `{"jsonrpc":"2.0","method":"notifications/x"}`, 0}, // BASE-26-023
		{"arguments that are no object", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":[]}}`, jsonrpc.CodeInvalidParams},
		{"a name that is no string", `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":7}}`, jsonrpc.CodeInvalidParams},
		{"no params", `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`, jsonrpc.CodeInvalidParams},
		{"a level that is none", `{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"loud"}}`, jsonrpc.CodeInvalidParams},
	}
	for _, g := range garbage {
		t.Run(g.name, func(t *testing.T) {
			p.t = t
			p.send(g.frame)
			if g.code != 0 {
				m := p.read()
				wantError(t, m, g.code)
			}
			p.send(`{"jsonrpc":"2.0","id":50,"method":"tools/call","params":{"name":"echo","arguments":{"text":"ok"}}}`)
			for m := p.read(); m.ID != jsonrpc.IntID(50); m = p.read() {
				if g.name != "too deep" {
					t.Errorf("got %s", show(&m))
				}
			}
		})
	}
	p.t = t
	close(w.release)
	if m := p.answer(1); !bytes.Contains(m.Result, []byte("released")) {
		t.Errorf("the call from before the garbage: %s", show(&m))
	}
}

// A frame over Limits.Message is refused, and the wire goes on.
func TestHugeFrame(t *testing.T) {
	mcptest.LeakCheck(t)
	near, far := io.Pipe()
	back, out := io.Pipe()
	w := newWorkshop()
	done := make(chan error)
	go func() {
		done <- w.Serve(t.Context(), jsonrpc.NewLineConn(near, out, func() error { near.Close(); return out.Close() }, 1<<10))
	}()
	lines := jsonrpc.NewLineConn(back, far, func() error { far.Close(); return back.Close() }, 0)
	p := &peer{t: t, conn: lines}
	p.initialize(mcp.V2025_11_25, `{}`)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + strings.Repeat("x", 4<<10) + `"}}}`)
	if m := p.read(); m.Error == nil {
		t.Errorf("got %s, want an error", show(&m))
	}
	p.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"ok"}}}`)
	p.answer(2)
	lines.Close()
	if err := <-done; err != nil {
		t.Errorf("Serve = %v", err)
	}
}

// Limits.Concurrent bounds the requests in progress on one connection.
func TestConcurrentLimit(t *testing.T) {
	mcptest.LeakCheck(t)
	w := newWorkshop()
	w.Limits.Concurrent = 2
	p := rawClient(t, w.Server)
	p.initialize(mcp.V2025_11_25, `{}`)
	for id := range int64(2) {
		p.sendf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"stuck"}}`, id+1)
		<-w.started
	}
	p.send(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	m := p.answer(3)
	wantError(t, m, jsonrpc.CodeInternal)
	if !strings.Contains(m.Error.Message, "Limits.Concurrent") {
		t.Errorf("message %q names no limit", m.Error.Message)
	}
	close(w.release)
	for range 2 {
		if m := p.read(); m.Error != nil {
			t.Errorf("got %s", show(&m))
		}
	}
	p.send(`{"jsonrpc":"2.0","id":4,"method":"ping"}`)
	p.answer(4)
}

// STDIO-26-012: when the client closes its side, serving ends, and what is in flight is
// still answered.
func TestEOFDrains(t *testing.T) {
	mcptest.LeakCheck(t)
	w := newWorkshop()
	in := strings.NewReader(modern(1, "tools/call", `{}`, `"name":"stuck"`) + "\n" +
		modern(2, "tools/call", `{}`, `"name":"echo","arguments":{"text":"ok"}`) + "\n" +
		modern(3, "subscriptions/listen", `{}`, `"notifications":{"toolsListChanged":true}`))
	var out lockedBuffer
	go func() { <-w.started; close(w.release) }()
	if err := w.Serve(t.Context(), jsonrpc.NewLineConn(in, &out, func() error { return nil }, 0)); err != nil {
		t.Errorf("Serve = %v", err)
	}
	for _, want := range []string{"released", `"ok"`, `"id":3`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output has no %s:\n%s", want, out.String())
		}
	}
}

// STDIO-26-012: however long it takes to read what a frame says, what comes after it comes
// after it: requests that follow initialize without waiting, and the end of the wire.
func TestLargeFramesKeepTheirPlace(t *testing.T) {
	mcptest.LeakCheck(t)
	large := strings.Repeat("x", 4<<20)
	for name, tt := range map[string]struct{ in, want string }{
		"end": {modern(1, "tools/call", `{}`, `"name":"echo","arguments":{"text":"`+large+`"}`), `"id":1,"result"`},
		"initialize": {`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"experimental":{"x":{"y":"` + large + `"}}},"clientInfo":{"name":"c","version":"1"}}}` +
			"\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n", `"id":1,"result"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out lockedBuffer
			if err := newWorkshop().Serve(t.Context(), jsonrpc.NewLineConn(strings.NewReader(tt.in), &out, func() error { return nil }, 0)); err != nil {
				t.Errorf("Serve = %v", err)
			}
			if got := out.String(); !strings.Contains(got, tt.want) {
				t.Errorf("the output has no %s: %.300s", tt.want, got)
			}
		})
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// The end of Serve's context ends the serving, in bounded time whatever a handler does.
func TestServeContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkshop()
		near, far := jsonrpc.Pipe()
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() { done <- w.Serve(ctx, far) }()
		p := &peer{t: t, conn: near}
		p.send(modern(1, "tools/call", `{}`, `"name":"stuck"`))
		p.send(modern(2, "tools/call", `{}`, `"name":"wait"`))
		<-w.started
		<-w.started
		start := time.Now()
		cancel(why)
		if cause := <-w.causes; cause != why {
			t.Errorf("the handler's cause is %v, want that of Serve's context", cause)
		}
		if err := <-done; err != why {
			t.Errorf("Serve = %v, want the cause", err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("Serve took %v to end", d)
		}
		close(w.release)
		p.end()
	})
}

// Shutdown lets calls in progress finish, takes no new ones, and ends subscriptions.
func TestShutdownFinishesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkshop()
		stopped := make(chan struct{})
		w.OnStart = func(context.Context) error { return nil }
		w.OnShutdown = func(context.Context) error { close(stopped); return nil }
		near, far := jsonrpc.Pipe()
		served := make(chan error, 1)
		go func() { served <- w.Serve(t.Context(), far) }()
		p := &peer{t: t, conn: near}
		p.send(modern(1, "tools/call", `{}`, `"name":"stuck"`))
		<-w.started
		p.send(modern(2, "subscriptions/listen", `{}`, `"notifications":{"toolsListChanged":true}`))
		if m := p.read(); m.Method != "notifications/subscriptions/acknowledged" {
			t.Fatalf("got %s", show(&m))
		}
		down := make(chan error, 1)
		go func() { down <- w.Shutdown(t.Context()) }()
		synctest.Wait()
		p.answer(2) // the subscription ends at once
		p.send(modern(3, "tools/call", `{}`, `"name":"echo","arguments":{"text":"x"}`))
		wantError(t, p.answer(3), jsonrpc.CodeInternal)
		select {
		case err := <-down:
			t.Fatalf("Shutdown returned %v with a call in progress", err)
		default:
		}
		time.Sleep(time.Minute)
		close(w.release)
		if m := p.answer(1); !bytes.Contains(m.Result, []byte("released")) {
			t.Errorf("got %s", show(&m))
		}
		if err := <-down; err != nil {
			t.Errorf("Shutdown = %v", err)
		}
		if err := <-served; !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("Serve = %v, want ErrClosed", err)
		}
		<-stopped
		p.end()
	})
}

// The context of Shutdown bounds it, also with a handler that never returns.
func TestShutdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkshop()
		near, far := jsonrpc.Pipe()
		served := make(chan error, 1)
		go func() { served <- w.Serve(t.Context(), far) }()
		p := &peer{t: t, conn: near}
		p.send(modern(1, "tools/call", `{}`, `"name":"stuck"`))
		p.send(modern(2, "tools/call", `{}`, `"name":"wait"`))
		<-w.started
		<-w.started
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		err := w.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown = %v, want that its time was up", err)
		}
		if d := time.Since(start); d < 10*time.Second || d > 15*time.Second {
			t.Errorf("Shutdown took %v, want 10 s and a little", d)
		}
		if cause := <-w.causes; cause == nil || !strings.Contains(cause.Error(), "shutting down") {
			t.Errorf("the handler's cause is %v", cause)
		}
		if err := <-served; !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("Serve = %v", err)
		}
		if err := w.Serve(t.Context(), far); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("Serve after Shutdown = %v, want ErrClosed", err)
		}
		close(w.release)
		near.Close()
	})
}

// A wire that takes no more ends the serving.
func TestServeEndsWithItsWriter(t *testing.T) {
	mcptest.LeakCheck(t)
	w := newWorkshop()
	in, feed := io.Pipe()
	conn := jsonrpc.NewLineConn(in, brokenWriter{}, in.Close, 0)
	done := make(chan error, 1)
	go func() { done <- w.Serve(t.Context(), conn) }()
	fmt.Fprintln(feed, modern(1, "tools/call", `{}`, `"name":"echo"`))
	if err := <-done; err != nil {
		t.Errorf("Serve = %v; a client that goes away is no error", err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// Limits.CallTimeout ends a handler's context.
func TestCallTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorkshop()
		w.Limits.CallTimeout = 3 * time.Second
		mcp.AddTool(w.Server, mcp.Tool{Name: "slow"}, func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		})
		s := mcptest.Connect(t, w.Server, &mcp.Client{Name: "c"}, mcp.V2026_07_28)
		start := time.Now()
		res, err := s.CallTool(t.Context(), "slow", nil)
		if err != nil || !res.IsError || !strings.Contains(res.Text(), "Limits.CallTimeout") {
			t.Errorf("slow = %v, %v; want a tool error that names Limits.CallTimeout", res, err)
		}
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("the call took %v", d)
		}
	})
}

// A client survives the same garbage from a server, and Close is bounded even when
// its own functions never return.
func TestGarbageToClient(t *testing.T) {
	mcptest.LeakCheck(t)
	near, far := jsonrpc.Pipe()
	p := &peer{t: t, conn: far}
	defer far.Close()
	go func() {
		m := p.read()
		p.send(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`)
		p.read() // initialized
		m = p.read()
		for _, g := range []string{
			`hello`, `{"jsonrpc":"2.0"`, `17`, `{}`, "\x00\xff", `[]`, `[1,2]`,
			`{"jsonrpc":"2.0","id":999,"result":{}}`,
			`{"jsonrpc":"2.0","id":"a","result":{}}`,
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":999,"progress":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":"x"}}`,
			`{"jsonrpc":"2.0","method":"notifications/resources/updated"}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":12345}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
			`{"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{"message":"?"}}`,
			`{"jsonrpc":"2.0","id":6,"method":"ping"}`,
		} {
			p.send(g)
		}
		answers := map[string]int{}
		for range 2 {
			a := p.read()
			code := 0
			if a.Error != nil {
				code = a.Error.Code
			}
			answers[a.ID.String()] = code
		}
		if want := fmt.Sprint(map[string]int{"5": jsonrpc.CodeMethodNotFound, "6": 0}); fmt.Sprint(answers) != want {
			t.Errorf("answers %v, want %s", answers, want)
		}
		p.send(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":{"content":[]}}`)
		m = p.read()
		p.send(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":{},"error":{}}`)
	}()
	c := &mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2025_11_25}}
	s, err := c.Connect(t.Context(), mcptest.Wire(near))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), "x", nil); err != nil {
		t.Errorf("call amid garbage: %v", err)
	}
	if _, err := s.CallTool(t.Context(), "x", nil); err == nil {
		t.Error("a malformed answer is no error")
	}
}

func TestCloseWithStuckClientFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forever := make(chan struct{})
		defer close(forever)
		asked := make(chan struct{}, 10)
		c := &mcp.Client{
			Name: "c",
			OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked <- struct{}{}
				<-forever
				return nil, nil
			},
			OnEvent: func(*mcp.Session, mcp.Event) { asked <- struct{}{}; <-forever },
		}
		srv := one(func(ctx context.Context, _ struct{}) (string, error) {
			_, err := mcp.Elicit[color](ctx, "Which?")
			return "", err
		})
		s := mcptest.Connect(t, srv, c, mcp.V2025_11_25)
		ended := make(chan error, 1)
		go func() {
			_, err := s.CallTool(t.Context(), "ask", nil)
			ended <- err
		}()
		<-asked
		synctest.Wait()
		mcp.AddTool(srv, mcp.Tool{Name: "more"}, func(context.Context, struct{}) (string, error) { return "", nil })
		<-asked
		start := time.Now()
		s.Close()
		if d := time.Since(start); d > 4*time.Second {
			t.Errorf("Close took %v", d)
		}
		if err := <-ended; !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("the call in progress returned %v, want ErrClosed", err)
		}
	})
}

// Arguments that a handler keeps stay unchanged.
func TestArgumentsAreNotReused(t *testing.T) {
	type in struct {
		Text string          `json:"text"`
		Raw  json.RawMessage `json:"raw"`
		Any  map[string]any  `json:"any"`
	}
	var mu sync.Mutex
	var kept []in
	var metas []mcp.Meta
	s := one(func(ctx context.Context, v in) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		kept = append(kept, v)
		metas = append(metas, mcp.CallFrom(ctx).Meta)
		return "", nil
	})
	session := mcptest.Connect(t, s, &mcp.Client{Name: "c"}, mcp.V2026_07_28)
	for i := range 50 {
		n := fmt.Sprintf("%03d", i)
		if _, err := session.Raw(t.Context(), "tools/call", map[string]any{"name": "ask",
			"arguments": map[string]any{"text": n, "raw": []string{n}, "any": map[string]string{"k": n}},
			"_meta":     map[string]any{"example.com/n": n}}); err != nil {
			t.Fatal(err)
		}
	}
	for i, v := range kept {
		n := fmt.Sprintf("%03d", i)
		if v.Text != n || string(v.Raw) != `["`+n+`"]` || v.Any["k"] != n || string(metas[i]["example.com/n"]) != `"`+n+`"` {
			t.Fatalf("call %d kept %+v, %s", i, v, metas[i]["example.com/n"])
		}
	}
}
