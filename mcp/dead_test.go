package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/trace"
)

// deadServer returns a server that counts its requests. One of its tools must be called as a task. It does not count
// subscriptions/listen: the GET stream of a session may come after its first call.
func deadServer(seen *atomic.Int64) *mcp.Server {
	srv := &mcp.Server{Name: "s", Tasks: quick()}
	none := func(context.Context, struct{}) (string, error) { return "", nil }
	mcp.AddTool(srv, mcp.Tool{Name: "pay", Description: "Pays."}, none)
	mcp.AddTool(srv, mcp.Tool{Name: "long", Description: "Works.", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, none)
	srv.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != "subscriptions/listen" {
				seen.Add(1)
			}
			return next.Handle(ctx, req)
		})
	})
	return srv
}

// wantUnsent makes requests of all kinds with a context that has ended. Each must fail with its cause.
func wantUnsent(t *testing.T, c *mcp.Client, s *mcp.Session) {
	t.Helper()
	cause := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	for range 20 {
		_, err := s.CallTool(ctx, "pay", nil)
		_, err2 := s.CallTool(ctx, "long", nil)
		_, err3 := s.StartTask(ctx, "pay", nil)
		_, err4 := s.StartTask(ctx, "long", nil)
		var err5 error
		for _, err := range s.Tools(ctx) {
			err5 = err
		}
		_, err6 := s.Handle(ctx, deadCall("pay"))
		_, err7 := s.Handle(ctx, deadCall("long"))
		for i, err := range []error{err, err2, err3, err4, err5, err6, err7} {
			if !errors.Is(err, cause) {
				t.Fatalf("request %d with an ended context = %v, want the cause of the context", i, err)
			}
		}
		c.RootsChanged(ctx)
	}
}

// A request or notification whose context has ended before is not sent.
func TestEndedContextEverywhere(t *testing.T) {
	var seen, sent atomic.Int64
	var c *mcp.Client
	mcptest.Every(t, func() *mcp.Server { return deadServer(&seen) }, func() *mcp.Client {
		c = nothing()
		c.Roots = func(context.Context) ([]mcp.Root, error) { return nil, nil }
		c.OnFrame = func(f trace.Frame) {
			if f.Dir == trace.Out && f.Msg != nil {
				sent.Add(1)
			}
		}
		return c
	}, func(t *testing.T, s *mcp.Session) {
		if _, err := s.CallTool(t.Context(), "pay", nil); err != nil { // lists the tools too, where it must
			t.Fatal(err)
		}
		before, on := seen.Load(), sent.Load()
		if on == 0 {
			t.Fatal("no frame was seen")
		}
		wantUnsent(t, c, s)
		if _, err := s.CallTool(t.Context(), "pay", nil); err != nil { // all before it has arrived then
			t.Fatal(err)
		}
		if n, m := seen.Load()-before, sent.Load()-on; n != 1 || m != 1 {
			t.Errorf("the server got %d requests and the client sent %d messages, want the last call alone", n, m)
		}
	})
}

// The same holds for a Handler of this process, with middleware or without.
func TestEndedContextInProcess(t *testing.T) {
	for _, middleware := range []bool{false, true} {
		var seen atomic.Int64
		srv, c := deadServer(&seen), nothing()
		if middleware {
			c.Use(func(next mcp.Handler) mcp.Handler { return mcp.HandlerFunc(next.Handle) })
		}
		s, err := c.Open(t.Context(), srv)
		if err != nil {
			t.Fatal(err)
		}
		for range s.Tools(t.Context()) {
		}
		before := seen.Load()
		wantUnsent(t, c, s)
		s.Close()
		if n := seen.Load() - before; n != 0 {
			t.Errorf("the handler got %d requests", n)
		}
	}
}

// A call on behalf of a caller whose context has ended is not sent.
func TestEndedContextOnBehalf(t *testing.T) {
	var seen atomic.Int64
	inner, err := nothing().Open(t.Context(), deadServer(&seen))
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	outer := &mcp.Server{Name: "outer"}
	mcp.AddTool(outer, mcp.Tool{Name: "pay", Description: "Pays."}, func(ctx context.Context, _ struct{}) (string, error) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		_, err := inner.CallTool(ctx, "pay", nil, mcp.OnBehalf())
		if !errors.Is(err, context.Canceled) {
			t.Errorf("CallTool = %v, want context.Canceled", err)
		}
		return "", nil
	})
	s := mcptest.Connect(t, outer, nothing(), mcp.V2025_11_25)
	before := seen.Load()
	if _, err := s.CallTool(t.Context(), "pay", nil); err != nil {
		t.Fatal(err)
	}
	if n := seen.Load() - before; n != 0 {
		t.Errorf("the handler got %d requests", n)
	}
}

func deadCall(tool string) *mcp.Request {
	return &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"` + tool + `"}`)}
}
