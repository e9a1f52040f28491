package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/level"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// behalves are the sessions that a tool of the tests below calls another server by.
var behalves = []struct {
	name string
	runs int32 // of the tool there, which asks once
	open func(testing.TB, *mcp.Server, *mcp.Client) *mcp.Session
}{
	{"local", 1, func(t testing.TB, srv *mcp.Server, c *mcp.Client) *mcp.Session {
		s, err := c.Open(t.Context(), srv)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}},
	{"2025-11-25", 1, func(t testing.TB, srv *mcp.Server, c *mcp.Client) *mcp.Session {
		return mcptest.Connect(t, srv, c, mcp.V2025_11_25)
	}},
	{"2026-07-28", 2, func(t testing.TB, srv *mcp.Server, c *mcp.Client) *mcp.Session {
		return mcptest.Connect(t, srv, c, mcp.V2026_07_28)
	}},
	{"2025-11-25, middleware", 1, func(t testing.TB, srv *mcp.Server, c *mcp.Client) *mcp.Session {
		c.Use(func(next mcp.Handler) mcp.Handler { return next })
		return mcptest.Connect(t, srv, c, mcp.V2025_11_25)
	}},
}

// Questions and notifications of a call that a tool makes on behalf of its caller reach that
// caller, on all revisions and wires; without OnBehalf they reach the client of the session.
func TestOnBehalf(t *testing.T) {
	for _, far := range behalves {
		t.Run(far.name, func(t *testing.T) {
			var runs, client atomic.Int32
			inner := &mcp.Server{Name: "inner"}
			type form struct {
				Name string `json:"name"`
			}
			mcp.AddTool(inner, mcp.Tool{Name: "greet"}, func(ctx context.Context, _ struct{}) (string, error) {
				runs.Add(1)
				mcp.Progress(ctx, 1, 2, "half")
				mcp.Log(ctx).Warn("working")
				v, err := mcp.Elicit[form](ctx, "Name?")
				return "hello " + v.Name, err
			})
			s := far.open(t, inner, &mcp.Client{OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				client.Add(1)
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "client"}}, nil
			}})
			newServer := func() *mcp.Server {
				srv := &mcp.Server{Name: "outer"}
				call := func(opts ...mcp.CallOption) func(context.Context, struct{}) (string, error) {
					return func(ctx context.Context, _ struct{}) (string, error) {
						return mcp.CallAs[string](ctx, s, "greet", nil, opts...)
					}
				}
				mcp.AddTool(srv, mcp.Tool{Name: "behalf"}, call(mcp.OnBehalf()))
				mcp.AddTool(srv, mcp.Tool{Name: "itself"}, call())
				return srv
			}
			newClient := func() *mcp.Client {
				return &mcp.Client{LogLevel: level.Notice, OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "caller"}}, nil
				}}
			}
			mcptest.Every(t, newServer, newClient, func(t *testing.T, caller *mcp.Session) {
				var mu sync.Mutex
				var told []string
				tell := func(what string) {
					mu.Lock()
					defer mu.Unlock()
					if !slices.Contains(told, what) { // a tool may run again
						told = append(told, what)
					}
				}
				opts := []mcp.CallOption{
					mcp.OnProgress(func(done, total float64, _ string) { tell(fmt.Sprint(done, " of ", total)) }),
					mcp.OnLog(func(m mcp.LogMessage) { tell(string(m.Data)) }),
				}
				asks := caller.Revision() != mcp.V2024_11_05 && caller.Revision() != mcp.V2025_03_26
				runs.Store(0)
				client.Store(0)
				got, err := mcp.CallAs[string](t.Context(), caller, "behalf", nil, opts...)
				switch {
				case !asks:
					if err == nil || client.Load() != 0 {
						t.Errorf("a caller that cannot be asked gets %q, and the client was asked %d times", got, client.Load())
					}
				case err != nil || got != "hello caller" || client.Load() != 0:
					t.Fatalf("on behalf: %q, %v, and the client was asked %d times; want hello caller and 0", got, err, client.Load())
				case runs.Load() != far.runs:
					t.Errorf("the tool ran %d times, want %d", runs.Load(), far.runs)
				}
				mu.Lock()
				if !slices.Contains(told, "1 of 2") || !strings.Contains(fmt.Sprint(told), "working") {
					t.Errorf("the caller was told %q, want 1 of 2 and working", told)
				}
				told = nil
				mu.Unlock()
				if got, err := mcp.CallAs[string](t.Context(), caller, "itself", nil, opts...); err != nil || got != "hello client" {
					t.Errorf("without OnBehalf: %q, %v, want hello client", got, err)
				}
				mu.Lock()
				defer mu.Unlock()
				if len(told) > 0 {
					t.Errorf("without OnBehalf the caller was told %q", told)
				}
			})
			if _, err := s.CallTool(t.Context(), "greet", nil, mcp.OnBehalf()); !errors.Is(err, mcp.ErrNoCall) {
				t.Errorf("outside of a call: %v, want ErrNoCall", err)
			}
		})
	}
}

// A task that a server makes of a call on behalf of a caller asks that caller too, also one that
// comes back with the answer, and is waited for. It is one task.
func TestOnBehalfOfTask(t *testing.T) {
	for _, far := range behalves {
		for _, rev := range []mcp.Revision{mcp.V2025_06_18, mcp.V2025_11_25, mcp.V2026_07_28} {
			t.Run(far.name+"/"+string(rev), func(t *testing.T) {
				var runs atomic.Int32
				inner := &mcp.Server{Name: "inner", Tasks: mcp.TaskConfig{Poll: 20 * time.Millisecond}}
				mcp.AddTool(inner, mcp.Tool{Name: "work", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskRequired}}, func(ctx context.Context, _ struct{}) (string, error) {
					runs.Add(1)
					yes, err := mcp.Confirm(ctx, "Go on?")
					return fmt.Sprint("confirmed: ", yes), err
				})
				s := far.open(t, inner, &mcp.Client{OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					t.Error("the client of the session was asked")
					return nil, mcp.ErrDismissed
				}})
				outer := &mcp.Server{Name: "outer"}
				mcp.AddTool(outer, mcp.Tool{Name: "behalf"}, func(ctx context.Context, _ struct{}) (string, error) {
					return mcp.CallAs[string](ctx, s, "work", nil, mcp.OnBehalf())
				})
				caller := mcptest.Connect(t, outer, &mcp.Client{OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"confirm": true}}, nil
				}}, rev)
				got, err := mcp.CallAs[string](t.Context(), caller, "behalf", nil)
				if err != nil || got != "confirmed: true" || runs.Load() != 1 {
					t.Errorf("%q, %v, and the tool ran %d times; want confirmed: true, and once", got, err, runs.Load())
				}
			})
		}
	}
}

// A tool that calls another server on behalf of a caller that cannot be asked gets ErrNotSupported,
// and its caller one answer for it: -32021 in 2026-07-28, a tool error before.
func TestOnBehalfOfMuteCaller(t *testing.T) {
	for _, far := range behalves {
		t.Run(far.name, func(t *testing.T) {
			inner := &mcp.Server{Name: "inner"}
			mcp.AddTool(inner, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (bool, error) { return mcp.Confirm(ctx, "Go on?") })
			s := far.open(t, inner, &mcp.Client{OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				t.Error("the client of the session was asked")
				return nil, mcp.ErrDismissed
			}})
			var seen atomic.Pointer[error]
			newServer := func() *mcp.Server {
				srv := &mcp.Server{Name: "outer"}
				mcp.AddTool(srv, mcp.Tool{Name: "behalf"}, func(ctx context.Context, _ struct{}) (string, error) {
					_, err := s.CallTool(ctx, "ask", nil, mcp.OnBehalf())
					seen.Store(&err)
					return "", err
				})
				return srv
			}
			body := func(t *testing.T, caller *mcp.Session) {
				res, err := caller.CallTool(t.Context(), "behalf", nil)
				if in := *seen.Load(); !errors.Is(in, mcp.ErrNotSupported) {
					t.Errorf("the tool got %v, want ErrNotSupported", in)
				}
				var rpc *mcp.Error
				switch {
				case caller.Revision() == mcp.V2026_07_28:
					if !errors.As(err, &rpc) || rpc.Code != mcp.CodeMissingCapability || !strings.Contains(string(rpc.Data), "elicitation") {
						t.Errorf("the caller got %v, want %d", err, mcp.CodeMissingCapability)
					}
				case err != nil || !res.IsError || !strings.Contains(res.Text(), "elicitation"):
					t.Errorf("the caller got %v, %v, want a tool error", res, err)
				}
			}
			mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{} }, body)
			local, err := new(mcp.Client).Open(t.Context(), newServer())
			if err != nil {
				t.Fatal(err)
			}
			defer local.Close()
			body(t, local)
		})
	}
}
