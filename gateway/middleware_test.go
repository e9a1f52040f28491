package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

// Middleware that is set or changed after the first server would not be in front of it, so the
// gateway refuses everything.
func TestLateMiddleware(t *testing.T) {
	deny := func(server string) mcp.Middleware { return policy.Middleware(server, new(policy.Require), nil) }
	allow := func(string) mcp.Middleware { return func(next mcp.Handler) mcp.Handler { return next } }
	for _, tt := range []struct {
		name   string
		before func(string) mcp.Middleware
		after  func(string) mcp.Middleware
	}{{"set", nil, deny}, {"removed", deny, nil}, {"changed", allow, deny}} {
		t.Run(tt.name, func(t *testing.T) {
			var ran atomic.Int64
			srv := &mcp.Server{Name: "s"}
			mcp.AddTool(srv, mcp.Tool{Name: "pay", Description: "Pays."}, func(context.Context, struct{}) (string, error) { ran.Add(1); return "", nil })
			g := &gateway.Gateway{Name: "g", Middleware: tt.before}
			if err := g.Set("s", srv); err != nil {
				t.Fatal(err)
			}
			g.Middleware = tt.after
			for name, h := range map[string]mcp.Handler{"s_pay": g, "pay": g.Direct("s")} {
				for _, method := range []string{"tools/call", "tools/list"} {
					_, err := h.Handle(t.Context(), &mcp.Request{Method: method, Params: json.RawMessage(`{"name":"` + name + `"}`)})
					if err == nil || !strings.Contains(err.Error(), "before the first Set or Run") {
						t.Errorf("%s of %s = %v, want an error that says when to set Middleware", method, name, err)
					}
				}
			}
			if err := g.Set("other", srv); err == nil {
				t.Error("Set accepts a server after the change")
			}
			if ran.Load() != 0 {
				t.Error("the tool ran")
			}
		})
	}
}

// A server without a handler is refused when it is added, not in its first call.
func TestSetNil(t *testing.T) {
	g := &gateway.Gateway{Name: "g"}
	for _, h := range []mcp.Handler{nil, (*mcp.Server)(nil), mcp.HandlerFunc(nil)} {
		if err := g.Set("s", h); err == nil || !strings.Contains(err.Error(), `"s"`) {
			t.Errorf("Set(%T) = %v, want an error that names the server", h, err)
		}
	}
}

// lockedLog is the text of a log.
type lockedLog struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// A server is not blamed for a caller that gives up while the gateway asks the server for a list.
func TestNoBlameForCallers(t *testing.T) {
	asked := make(chan bool)
	slow := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != "tools/list" {
			return mcp.RawResult(`{}`), nil
		}
		asked <- true
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	var log lockedLog
	g := &gateway.Gateway{Name: "g", Logger: slog.New(slog.NewTextHandler(&log, nil)), ListTimeout: time.Minute}
	if err := g.Set("s", slow); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	g.Handle(ctx, &mcp.Request{Method: "tools/list"})
	if log.String() != "" {
		t.Errorf("the log has %s", log.String())
	}
}

// A Source whose Open panics is a server that does not start; the process goes on.
func TestOpenPanics(t *testing.T) {
	var log lockedLog
	g := &gateway.Gateway{Name: "g", Logger: slog.New(slog.NewTextHandler(&log, nil))}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan string, 1)
	over := make(chan error, 1)
	g.OnStatus = func(s gateway.Status) {
		if s.Reason != "" {
			select {
			case failed <- s.Reason:
			default:
			}
		}
	}
	go func() {
		over <- g.Run(ctx, gateway.Source{Name: "s", Open: func(context.Context) (gateway.Upstream, error) { panic("a secret") }})
	}()
	if reason := <-failed; !strings.Contains(reason, "panicked") || strings.Contains(reason, "secret") {
		t.Errorf("the reason is %q", reason)
	}
	cancel()
	if err := <-over; err != nil {
		t.Errorf("Run = %v", err)
	}
	if !strings.Contains(log.String(), "in=Source.Open") {
		t.Errorf("the log has %s", log.String())
	}
}
