package idempotency_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/patchbay-dev/patchbay/internal/idempotency"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// work is a server that counts executions, and answers each when it is released.
type work struct {
	runs, ended atomic.Int64
	release     chan struct{}
}

func newWork() *work { return &work{release: make(chan struct{})} }

func (w *work) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	n := w.runs.Add(1)
	select {
	case <-w.release:
		return mcp.RawResult(fmt.Sprintf(`{"n":%d}`, n)), nil
	case <-ctx.Done():
		w.ended.Add(1)
		return nil, context.Cause(ctx)
	}
}

var request = &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"t"}`)}

// Fifty equal calls at once are executed once, and all have the result and the id of the first. One with another key is
// executed apart, and so is a later one.
func TestEqualCallsRunOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls idempotency.Calls
		w := newWork()
		var all sync.WaitGroup
		var own atomic.Int64
		for i := range 50 {
			all.Go(func() {
				res, of, err := calls.Do(t.Context(), "k", fmt.Sprint(i), request, w)
				if err != nil || string(res.JSON()) != `{"n":1}` {
					t.Errorf("%v, %v", res, err)
				}
				if of == "" {
					own.Add(1)
				}
			})
		}
		synctest.Wait()
		if n := w.runs.Load(); n != 1 {
			t.Errorf("%d executions, want 1", n)
		}
		all.Go(func() {
			if res, of, err := calls.Do(t.Context(), "l", "x", request, w); err != nil || string(res.JSON()) != `{"n":2}` || of != "" {
				t.Errorf("another key: %v of %q, %v", res, of, err)
			}
		})
		synctest.Wait()
		close(w.release)
		all.Wait()
		if own.Load() != 1 {
			t.Errorf("%d calls had executions of their own, want 1", own.Load())
		}
		if res, _, _ := calls.Do(t.Context(), "k", "y", request, w); string(res.JSON()) != `{"n":3}` {
			t.Errorf("a later call got %s", res.JSON())
		}
	})
}

// Callers that leave, also the first one, do not end an execution that others wait for. The last one does, and later calls
// begin anew.
func TestCallersLeave(t *testing.T) {
	for first := range 3 {
		synctest.Test(t, func(t *testing.T) {
			var calls idempotency.Calls
			w := newWork()
			var all sync.WaitGroup
			var cancels [3]context.CancelCauseFunc
			var errs [3]error
			why := errors.New("the user has left")
			begin := func() {
				for i := range cancels {
					ctx, cancel := context.WithCancelCause(t.Context())
					cancels[i] = cancel
					all.Go(func() { _, _, errs[i] = calls.Do(ctx, "k", fmt.Sprint(i), request, w) })
					synctest.Wait() // the first one is the first
				}
			}
			begin()
			cancels[first](why)
			synctest.Wait()
			if w.ended.Load() != 0 || errs[first] != why {
				t.Errorf("caller %d has left with %v; %d executions ended", first, errs[first], w.ended.Load())
			}
			close(w.release)
			all.Wait()
			if errs[first] = nil; errors.Join(errs[:]...) != nil || w.runs.Load() != 1 {
				t.Errorf("the others got %v after %d executions", errs, w.runs.Load())
			}
			w.release = make(chan struct{})
			begin()
			for i := range cancels {
				cancels[(first+i)%3](why)
				synctest.Wait()
			}
			all.Wait()
			if w.ended.Load() != 1 || errs != [3]error{why, why, why} {
				t.Errorf("all have left: %v, %d executions ended", errs, w.ended.Load())
			}
			go calls.Do(t.Context(), "k", "z", request, w)
			synctest.Wait()
			if w.runs.Load() != 3 {
				t.Errorf("%d executions, want 3", w.runs.Load())
			}
			close(w.release)
		})
	}
}

// An error is the outcome for all. A call that asks, or becomes a task, is not shared: each caller has its own.
func TestOutcomes(t *testing.T) {
	for _, tt := range []struct {
		name string
		res  mcp.Result
		err  error
		runs int64
	}{
		{"error", nil, mcp.Errorf(jsonrpc.CodeInternal, "lost; the tool may or may not have run"), 1},
		{"tool error", mcp.RawResult(`{"isError":true,"content":[]}`), nil, 1},
		{"question", nil, mcp.ErrPending, 3},
		{"question as a result", mcp.RawResult(`{"resultType":"input_required"}`), nil, 3},
		{"task", &mcp.CreateTaskResult{}, nil, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls idempotency.Calls
				var runs atomic.Int64
				release := make(chan struct{})
				h := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
					runs.Add(1)
					<-release
					return tt.res, tt.err
				})
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() {
						res, _, err := calls.Do(t.Context(), "k", "", request, h)
						if err != tt.err || (res == nil) != (tt.res == nil) {
							t.Errorf("%v, %v", res, err)
						}
					})
				}
				synctest.Wait()
				close(release)
				all.Wait()
				if runs.Load() != tt.runs {
					t.Errorf("%d executions, want %d", runs.Load(), tt.runs)
				}
			})
		})
	}
}

// A panic in the handler is an error, for all.
func TestPanic(t *testing.T) {
	var calls idempotency.Calls
	_, _, err := calls.Do(t.Context(), "k", "", request, mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic("secret") }))
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v, want an error without the value", err)
	}
}

// Has tells keys from what is none, and names the member. A request without a key costs no memory.
func TestHas(t *testing.T) {
	for in, want := range map[string]string{
		`{}`: "no", `{"_meta":{}}`: "no", `{"_meta":{"dev.patchbay/idempotencyKey":"a"}}`: "yes",
		`{"_meta":{"dev.patchbay/idempotencyKey":"` + strings.Repeat("ü", 128) + `"}}`: "yes",
		`{"_meta":{"dev.patchbay/idempotencyKey":"` + strings.Repeat("a", 129) + `"}}`: "error",
		`{"_meta":{"dev.patchbay/idempotencyKey":""}}`:                                 "error", `{"_meta":{"dev.patchbay/idempotencyKey":7}}`: "error",
		`{"_meta":{"dev.patchbay/idempotencyKey":null}}`: "error", `{"_meta":{"dev.patchbay/idempotencyKey":["a"]}}`: "error",
	} {
		has, err := idempotency.Has(json.RawMessage(in))
		got := map[bool]string{true: "yes", false: "no"}[has]
		if err != nil {
			got = "error"
			if !strings.Contains(err.Error(), idempotency.Meta) {
				t.Errorf("%s: %v does not name the member", in, err)
			}
		}
		if got != want {
			t.Errorf("%.60s: %s, want %s", in, got, want)
		}
	}
	params := json.RawMessage(`{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"a","arguments":{"x":1}}`)
	if n := testing.AllocsPerRun(100, func() { _, _ = idempotency.Has(params) }); n != 0 {
		t.Errorf("%v allocations without a key", n)
	}
}

// slowWriter is a response that its client does not read before open is closed.
type slowWriter struct {
	*httptest.ResponseRecorder
	open chan struct{}
}

func (w slowWriter) Write(b []byte) (int, error) {
	<-w.open
	return w.ResponseRecorder.Write(b)
}

// A caller that does not read its progress delays no other caller of the execution, and gets all of it before its answer once
// it reads. The order in which they come does not matter.
func TestSlowCallerDelaysNoOther(t *testing.T) {
	for _, slowFirst := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var calls idempotency.Calls
			release := make(chan struct{})
			work := mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
				<-release
				mcp.Progress(ctx, 1, 2, "half")
				mcp.Progress(ctx, 2, 2, "whole")
				return mcp.RawResult(`{"content":[]}`), nil
			})
			srv := &mcp.Server{Name: "s", Handler: mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				res, _, err := calls.Do(ctx, "k", "", req, work)
				return res, err
			})}
			slow := slowWriter{httptest.NewRecorder(), make(chan struct{})}
			fast := httptest.NewRecorder()
			writers := []http.ResponseWriter{slow, fast}
			if !slowFirst {
				slices.Reverse(writers)
			}
			var ended atomic.Int64
			for _, w := range writers {
				r := httptest.NewRequest("POST", "http://localhost/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":7,`+
					`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`))
				for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
					"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "t"} {
					r.Header.Set(name, value)
				}
				go func() { srv.ServeHTTP(w, r); ended.Add(1) }()
				synctest.Wait()
			}
			close(release)
			synctest.Wait()
			check := func(who string, n int64, body string) {
				t.Helper()
				half, whole, result := strings.Index(body, "half"), strings.Index(body, "whole"), strings.Index(body, `"result"`)
				if ended.Load() != n || half < 0 || whole < half || result < whole {
					t.Errorf("%d callers have an answer, want %d; the %s one got %s", ended.Load(), n, who, body)
				}
			}
			check("fast", 1, fast.Body.String())
			close(slow.open)
			synctest.Wait()
			check("slow", 2, slow.Body.String())
		})
	}
}
