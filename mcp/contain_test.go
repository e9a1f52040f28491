package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// Trap 3: whatever a handler returns or does, its call is answered and the server goes on.

// faultyError is an error whose methods do not work on nil, as most.
type faultyError struct{ text string }

func (e *faultyError) Error() string { return e.text }

type panickingError struct{}

func (panickingError) Error() string { panic("secret: Error") }

type panickingUnwrap struct{}

func (panickingUnwrap) Error() string { return "fine" }
func (panickingUnwrap) Unwrap() error { panic("secret: Unwrap") }

type panickingAs struct{}

func (panickingAs) Error() string { return "fine" }
func (panickingAs) As(any) bool   { panic("secret: As") }

// endlessError wraps itself.
type endlessError struct{}

func (e endlessError) Error() string { return "again" }
func (e endlessError) Unwrap() error { return e }

type panickingDenial struct{}

func (panickingDenial) Error() string { return "denied" }
func (panickingDenial) HTTPHeader(context.Context) (int, http.Header) {
	panic("secret: HTTPHeader")
}

type panickingMarshaller struct{}

func (panickingMarshaller) MarshalJSON() ([]byte, error) { panic("secret: MarshalJSON") }

type panickingText struct{}

func (panickingText) MarshalText() ([]byte, error) { panic("secret: MarshalText") }

type garbageMarshaller struct{}

func (garbageMarshaller) MarshalJSON() ([]byte, error) { return []byte("{\n,"), nil }

type exitingMarshaller struct{}

func (exitingMarshaller) MarshalJSON() ([]byte, error) { runtime.Goexit(); return nil, nil }

type ring struct {
	Next *ring `json:"next"`
}

// oddity is one way for a handler to misbehave.
type oddity struct {
	name string
	do   func() (any, error)

	// sane says that a tool error or a result is as good an answer as an internal error. result says
	// that only a tool result can be faulty in this way, so other handlers may answer sanely.
	sane, result bool
}

func returns(v any) func() (any, error)               { return func() (any, error) { return v, nil } }
func fails(err error) func() (any, error)             { return func() (any, error) { return nil, err } }
func panics(v any) func() (any, error)                { return func() (any, error) { panic(v) } }
func toolResult(r mcp.ToolResult) func() (any, error) { return returns(&r) }

var oddities = func() []oddity {
	loop := map[string]any{}
	loop["loop"] = loop
	slice := []any{nil}
	slice[0] = slice
	knot := &ring{}
	knot.Next = knot
	var nilMap map[string]int
	return []oddity{
		{name: "panic", do: panics("secret")},
		{name: "panic with nil", do: panics(nil)},
		{name: "panic with an error that panics", do: panics(panickingError{})},
		{name: "panic of the runtime", do: func() (any, error) { nilMap["x"] = 1; return nil, nil }},
		{name: "Goexit", do: func() (any, error) { runtime.Goexit(); return nil, nil }},
		{name: "panic on the way out", do: func() (any, error) { defer panic("secret, deferred"); return "fine", nil }},

		{name: "nil *mcp.Error", do: fails((*mcp.Error)(nil))},
		{name: "nil *mcp.Error, wrapped", do: fails(fmt.Errorf("wrapped: %w", (*mcp.Error)(nil)))},
		{name: "nil *mcp.Error, joined", do: fails(errors.Join(errors.New("one"), fmt.Errorf("two: %w", (*mcp.Error)(nil))))},
		{name: "nil *mcp.ToolError", do: fails((*mcp.ToolError)(nil))},
		{name: "nil *mcp.HTTPError", do: fails((*mcp.HTTPError)(nil))},
		{name: "nil error of another type", do: fails((*faultyError)(nil))},
		{name: "Error panics", do: fails(panickingError{})},
		{name: "Error panics, wrapped", do: fails(fmt.Errorf("wrapped: %w", panickingError{})), sane: true},
		{name: "Unwrap panics", do: fails(panickingUnwrap{})},
		{name: "As panics", do: fails(panickingAs{})},
		{name: "HTTPHeader panics", do: fails(panickingDenial{}), sane: true},
		{name: "error that wraps itself", do: fails(endlessError{})},
		{name: "error and result", do: func() (any, error) { return "result", errors.New("plain") }, sane: true},

		{name: "nil", do: returns(nil), sane: true},
		{name: "nil *ToolResult", do: returns((*mcp.ToolResult)(nil)), sane: true},
		{name: "nil content", do: returns([]mcp.Content{nil}), result: true},
		{name: "nil content behind content", do: returns([]mcp.Content{mcp.Text("a"), nil}), result: true},
		{name: "nil pointer to content", do: returns([]mcp.Content{(*mcp.TextContent)(nil)}), result: true},
		{name: "nil content in a result", do: toolResult(mcp.ToolResult{Content: []mcp.Content{nil}}), result: true},
		{name: "nil content in a result in content", do: returns([]mcp.Content{mcp.ToolResultContent{Result: mcp.ToolResult{Content: []mcp.Content{nil}}}}), result: true},
		{name: "structured, no JSON", do: toolResult(mcp.ToolResult{Structured: json.RawMessage("{\n,")}), result: true},
		{name: "structured, two values", do: toolResult(mcp.ToolResult{Structured: json.RawMessage(`1,"isError":false`)}), result: true},
		{name: "structured, empty", do: toolResult(mcp.ToolResult{Structured: json.RawMessage{}}), result: true},
		{name: "_meta, no JSON", do: toolResult(mcp.ToolResult{Meta: mcp.Meta{"k": json.RawMessage("nope")}}), result: true},
		{name: "raw content, no JSON", do: returns([]mcp.Content{mcp.RawContent("\nnope\n")}), result: true},
		{name: "raw content, no object", do: returns([]mcp.Content{mcp.RawContent(`7`)}), result: true},
		{name: "raw content in several lines", do: returns([]mcp.Content{mcp.RawContent("{\n\"type\":\n\"text\",\"text\":\"a\"}")}), sane: true},
		{name: "tool use, no JSON", do: returns([]mcp.Content{mcp.ToolUseContent{ID: "1", Name: "n", Input: json.RawMessage("}\n{")}}), result: true},
		{name: "invalid UTF-8", do: returns("\xff\xfe"), sane: true},
		{name: "line breaks", do: returns("a\r\nb\u2028c"), sane: true},

		{name: "cyclic map", do: returns(map[string]any{"v": loop}), sane: true},
		{name: "cyclic slice", do: returns(map[string]any{"v": slice}), sane: true},
		{name: "cyclic pointer", do: returns(knot), sane: true},
		{name: "MarshalJSON panics", do: returns(map[string]any{"v": panickingMarshaller{}}), result: true},
		{name: "MarshalText panics", do: returns(map[string]any{"v": panickingText{}}), result: true},
		{name: "MarshalJSON ends the goroutine", do: returns(map[string]any{"v": exitingMarshaller{}}), result: true},
		{name: "MarshalJSON returns no JSON", do: returns(map[string]any{"v": garbageMarshaller{}}), sane: true},
		{name: "function", do: returns(map[string]any{"v": func() {}}), sane: true},
		{name: "channel", do: returns(make(chan int)), sane: true},
		{name: "not a number", do: returns(map[string]any{"v": math.NaN()}), sane: true},
	}
}()

// odd is which oddity a handler is to show.
type odd struct {
	N int `json:"n"`
}

// asContent and asPrompt make of an oddity what such handlers return.
func asPrompt(v any) *mcp.PromptResult {
	cs := []mcp.Content{mcp.Text("fine")}
	switch v := v.(type) {
	case []mcp.Content:
		cs = v
	case *mcp.ToolResult:
		if v == nil {
			return nil
		}
		return &mcp.PromptResult{Messages: []mcp.PromptMessage{mcp.User("a")}, Meta: v.Meta}
	}
	r := &mcp.PromptResult{}
	for _, c := range cs {
		r.Messages = append(r.Messages, mcp.PromptMessage{Role: "user", Content: c})
	}
	return r
}

// hazard is a server that shows each oddity in each kind of handler. The one of middleware and
// Visible is in which, counted from 1.
type hazard struct {
	*mcp.Server
	panics atomic.Int64 // seen by OnPanic
	which  atomic.Int64 // oddity of the middleware
	hidden atomic.Int64 // oddity of Visible
	seen   atomic.Int64 // errors that the outer middleware has seen
}

func misbehave(n int) (any, error) { return oddities[n].do() }

func newHazard() *hazard {
	h := &hazard{Server: &mcp.Server{Name: "hazard", Version: "1", Tasks: mcp.TaskConfig{Poll: time.Millisecond}}}
	h.HTTP.Retry = time.Millisecond // a client behind middleware follows a detached call
	h.OnPanic = func(context.Context, any, []byte) { h.panics.Add(1) }
	h.Visible = func(_ context.Context, f mcp.Feature) bool {
		if n := h.hidden.Swap(0); n > 0 {
			misbehave(int(n - 1))
		}
		return true
	}
	h.Use(func(next mcp.Handler) mcp.Handler { // it sees every error
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.Handle(ctx, req)
			if err != nil {
				h.seen.Add(1)
				_ = err.Error()
				var rpc *mcp.Error
				if errors.As(err, &rpc) {
					_ = rpc.Code
				}
			}
			return res, err
		})
	}, func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			n := h.which.Swap(0)
			if n == 0 {
				return next.Handle(ctx, req)
			}
			v, err := misbehave(int(n - 1))
			res, _ := v.(*mcp.ToolResult) // may be a nil pointer in the interface
			return res, err
		})
	})
	mcp.AddTool(h.Server, mcp.Tool{Name: "echo"}, func(_ context.Context, in text) (string, error) { return in.Text, nil })
	mcp.AddTool(h.Server, mcp.Tool{Name: "tool"}, func(_ context.Context, in odd) (any, error) { return misbehave(in.N) })
	mcp.AddTool(h.Server, mcp.Tool{Name: "task", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(_ context.Context, in odd) (any, error) { return misbehave(in.N) })
	mcp.AddTool(h.Server, mcp.Tool{Name: "detach", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional, OnDetach: true}}, func(ctx context.Context, in odd) (any, error) {
		if in.N%2 == 0 {
			mcp.Detach(ctx)
		}
		return misbehave(in.N)
	})
	mcp.AddResourceTemplate(h.Server, mcp.ResourceTemplate{URITemplate: "odd:{n}", Name: "odd"}, func(_ context.Context, in struct {
		N string `json:"n"`
	}) (any, error) {
		var n int
		fmt.Sscan(in.N, &n)
		return misbehave(n)
	})
	for i, o := range oddities {
		mcp.AddResource(h.Server, mcp.Resource{URI: fmt.Sprintf("fixed:%d", i), Name: o.name}, func(context.Context) (any, error) { return misbehave(i) })
	}
	suggest := func(_ context.Context, prefix string, _ map[string]string) ([]string, error) {
		var n int
		fmt.Sscan(prefix, &n)
		_, err := misbehave(n)
		return nil, err
	}
	mcp.AddPrompt(h.Server, mcp.Prompt{Name: "prompt", Complete: map[string]mcp.CompleteFunc{"n": suggest}}, func(_ context.Context, in struct {
		N string `json:"n"`
	}) (*mcp.PromptResult, error) {
		var n int
		fmt.Sscan(in.N, &n)
		v, err := misbehave(n)
		return asPrompt(v), err
	})
	h.HandleMethod("skills/list", func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		var in odd
		json.Unmarshal(req.Params, &in)
		v, err := misbehave(in.N)
		if r, ok := v.(*mcp.ToolResult); ok {
			return r, err
		}
		return mcp.RawResult(`{}`), err
	})
	return h
}

// answered fails the test unless a call of an oddity was answered, and with an internal error if
// it had to be.
func answered(t *testing.T, kind string, o oddity, err error) {
	t.Helper()
	var rpc *mcp.Error
	sane := o.sane || o.result && kind != "tool" && kind != "task" && kind != "detach" || kind == "Visible"
	switch {
	case err == nil && !sane:
		t.Errorf("%s, %s: a result, want an error", kind, o.name)
	case err == nil:
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, mcp.ErrClosed):
		t.Errorf("%s, %s: no answer: %v", kind, o.name, err)
	case !errors.As(err, &rpc):
		t.Errorf("%s, %s: %v, want an answer of the server", kind, o.name, err)
	case !sane && (rpc.Code != jsonrpc.CodeInternal || rpc.Message != "internal error"):
		t.Errorf("%s, %s: %v, want an internal error without detail", kind, o.name, err)
	}
}

func TestContain(t *testing.T) {
	mcptest.LeakCheck(t)
	var h *hazard
	ways := 0
	mcptest.Every(t, func() *mcp.Server { h = newHazard(); return h.Server }, func() *mcp.Client { return &mcp.Client{Name: "c"} }, func(t *testing.T, s *mcp.Session) {
		h, way := h, ways
		ways++
		t.Parallel()
		call := func(kind string, n int, f func(ctx context.Context) error) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			answered(t, kind, oddities[n], f(ctx))
			echo(t, s)
		}
		for n := range oddities {
			if long.Raced() && n%8 != way%8 {
				continue // in another way
			}
			call("tool", n, func(ctx context.Context) error { _, err := s.CallTool(ctx, "tool", odd{n}); return err })
			for _, name := range []string{"task", "detach"} {
				if s.Revision() < mcp.V2025_11_25 {
					continue
				}
				call(name, n, func(ctx context.Context) error {
					task, err := s.StartTask(ctx, name, odd{n})
					if err != nil {
						return err
					}
					_, err = task.Wait(ctx)
					return err
				})
			}
			call("resource", n, func(ctx context.Context) error { _, err := s.ReadResource(ctx, fmt.Sprintf("fixed:%d", n)); return err })
			call("template", n, func(ctx context.Context) error { _, err := s.ReadResource(ctx, fmt.Sprintf("odd:%d", n)); return err })
			call("prompt", n, func(ctx context.Context) error {
				_, err := s.GetPrompt(ctx, "prompt", map[string]string{"n": fmt.Sprint(n)})
				return err
			})
			call("completion", n, func(ctx context.Context) error {
				_, err := s.Complete(ctx, mcp.Feature{Kind: mcp.KindPrompt, Name: "prompt"}, "n", fmt.Sprint(n), nil)
				return err
			})
			if s.Revision() == mcp.V2026_07_28 {
				call("extension", n, func(ctx context.Context) error { _, err := s.Raw(ctx, "skills/list", odd{n}); return err })
			}
			h.which.Store(int64(n + 1))
			call("middleware", n, func(ctx context.Context) error { _, err := s.CallTool(ctx, "echo", text{"x"}); return err })
			h.hidden.Store(int64(n + 1))
			call("Visible", n, func(ctx context.Context) error { _, err := s.CallTool(ctx, "echo", text{"x"}); return err })
		}
		if h.panics.Load() == 0 || h.seen.Load() == 0 {
			t.Errorf("OnPanic was called %d times, middleware saw %d errors", h.panics.Load(), h.seen.Load())
		}
	})
}

// Middleware gets a panic of a handler, and of middleware behind it, as an internal error.
func TestMiddlewareSeesPanic(t *testing.T) {
	for _, o := range oddities {
		if o.name == "Goexit" || o.name == "HTTPHeader panics" || o.result || o.sane {
			continue
		}
		t.Run(o.name, func(t *testing.T) {
			var got [2]error
			s := &mcp.Server{Name: "s", Version: "1", OnPanic: func(context.Context, any, []byte) {}}
			for i := range got {
				s.Use(func(next mcp.Handler) mcp.Handler {
					return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
						res, err := next.Handle(ctx, req)
						if req.Method == "tools/call" {
							got[i] = err
						}
						if i == 1 {
							o.do() // the outer one sees that
						}
						return res, err
					})
				})
			}
			mcp.AddTool(s, mcp.Tool{Name: "odd"}, func(context.Context, struct{}) (any, error) { return o.do() })
			_, err := s.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"odd"}`)})
			for i, err := range append(got[:], err) {
				var rpc *mcp.Error
				if !errors.As(err, &rpc) || rpc.Code != jsonrpc.CodeInternal {
					t.Errorf("place %d saw %v, want an internal error", i, err)
				}
			}
		})
	}
}

// The functions of a client are contained as handlers are: the question or the event that they
// were called for fails, and nothing else.
func TestContainClient(t *testing.T) {
	mcptest.LeakCheck(t)
	var which atomic.Int64
	do := func() error {
		if n := which.Load(); n > 0 {
			_, err := misbehave(int(n - 1))
			return err
		}
		return nil
	}
	events := make(chan string, 100)
	ways := 0
	mcptest.Every(t, func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "echo"}, func(_ context.Context, in text) (string, error) { return in.Text, nil })
		mcp.AddTool(s, mcp.Tool{Name: "ask"}, func(ctx context.Context, in text) (string, error) {
			mcp.Progress(ctx, 1, 2, "")
			mcp.Log(ctx).Error("working")
			switch in.Text {
			case "elicit":
				_, err := mcp.Elicit[color](ctx, "which?")
				return "asked", err
			case "sample":
				_, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 1, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("?")}}}})
				return "asked", err
			case "roots":
				_, err := mcp.Roots(ctx)
				return "asked", err
			}
			return "told", nil
		})
		mcp.AddTool(s, mcp.Tool{Name: "change"}, func(context.Context, struct{}) (string, error) {
			mcp.AddTool(s, mcp.Tool{Name: "added"}, func(context.Context, struct{}) (string, error) { return "", nil })
			return "", nil
		})
		return s
	}, func() *mcp.Client {
		return &mcp.Client{
			Name: "c", Logger: slog.New(slog.DiscardHandler), LogLevel: slog.LevelInfo,
			OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "decline"}, do()
			},
			OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
				return &mcp.SampleResult{Content: []mcp.Content{nil}}, do()
			},
			Roots: func(context.Context) ([]mcp.Root, error) { return nil, do() },
			OnEvent: func(_ *mcp.Session, e mcp.Event) {
				select {
				case events <- e.Method:
				default:
				}
				do()
			},
		}
	}, func(t *testing.T, s *mcp.Session) {
		ways++
		for n, o := range oddities {
			if o.result || o.sane || long.Raced() && n%4 != ways%4 {
				continue
			}
			for _, kind := range []string{"elicit", "sample", "roots", "tell"} {
				if kind == "elicit" && s.Revision() < mcp.V2025_06_18 {
					continue
				}
				if o.name == "Goexit" && s.Revision() == mcp.V2026_07_28 {
					continue // it is the goroutine of the caller
				}
				if o.name == "Goexit" && kind == "tell" {
					continue
				}
				which.Store(int64(n + 1))
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				_, err := s.CallTool(ctx, "ask", text{kind}, mcp.OnProgress(func(float64, float64, string) {
					if kind == "tell" {
						do()
					}
				}), mcp.OnLog(func(mcp.LogMessage) {
					if kind == "tell" {
						do()
					}
				}))
				cancel()
				which.Store(0)
				var rpc *mcp.Error
				if kind == "tell" && err != nil || err != nil && !errors.As(err, &rpc) {
					t.Errorf("%s, %s: %v", kind, o.name, err)
				}
				echo(t, s)
			}
			if t.Failed() {
				t.FailNow()
			}
		}
		if s.Revision() == mcp.V2026_07_28 {
			return // events come from Watch there
		}
		which.Store(1) // the panic
		for len(events) > 0 {
			<-events
		}
		for range 2 {
			for heard := false; !heard; { // a change before the GET stream opens is not told
				if _, err := s.CallTool(t.Context(), "change", nil); err != nil {
					t.Fatal(err)
				}
				select {
				case <-events:
					heard = true
				case <-time.After(time.Second):
				}
			}
		}
		which.Store(0)
	})
}

// Trap 15: without OnPanic and Logger a panic goes to standard error, with its stack.
func TestPanicIsPrinted(t *testing.T) {
	var printed bytes.Buffer
	log.SetOutput(&printed)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	s := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "boom"}, func(context.Context, struct{}) (string, error) { panic("the reason") })
	for _, call := range []string{"server", "client"} {
		printed.Reset()
		if call == "server" {
			s.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"boom"}`)})
		} else {
			mcp.AddTool(s, mcp.Tool{Name: "boom"}, func(ctx context.Context, _ struct{}) (bool, error) { return mcp.Confirm(ctx, "?") })
			c := &mcp.Client{Name: "c", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { panic("the reason") }}
			mcptest.Connect(t, s, c, mcp.V2026_07_28).CallTool(t.Context(), "boom", nil)
		}
		for _, want := range []string{"the reason", "contain_test.go", "TestPanicIsPrinted"} {
			if !strings.Contains(printed.String(), want) {
				t.Errorf("%s: printed %q, want %q in it", call, printed.String(), want)
			}
		}
	}
}
