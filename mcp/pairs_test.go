package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/level"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// far is the server at the back of a Session that is itself served.
type far struct {
	*mcp.Server
	deployer
	causes chan error // why the context of wait ended
}

func newFar() *far {
	f := &far{Server: library(), causes: make(chan error, 10)}
	addTools(f.Server, 0, 1)
	mcp.AddTool(f.Server, mcp.Tool{Name: "echo"}, func(_ context.Context, in text) (string, error) { return in.Text, nil })
	mcp.AddTool(f.Server, mcp.Tool{Name: "steps"}, func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 3 {
			mcp.Progress(ctx, float64(i+1), 3, "step")
			mcp.Log(ctx).Error(fmt.Sprint("log ", i+1))
		}
		return "done", nil
	})
	mcp.AddTool(f.Server, mcp.Tool{Name: "fail"}, func(context.Context, struct{}) (string, error) { return "", errors.New("no paper") })
	mcp.AddTool(f.Server, mcp.Tool{Name: "rpc"}, func(context.Context, struct{}) (string, error) {
		return "", &mcp.Error{Code: 1234, Message: "own", Data: []byte(`{"k":1}`)}
	})
	mcp.AddTool(f.Server, mcp.Tool{Name: "busy"}, func(context.Context, struct{}) (string, error) {
		return "", &mcp.Error{Code: -32000, Message: "busy"}
	})
	mcp.AddTool(f.Server, mcp.Tool{Name: "structured"}, func(context.Context, struct{}) (point, error) { return point{1, 2}, nil })
	mcp.AddTool(f.Server, mcp.Tool{Name: "wait"}, func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		f.causes <- context.Cause(ctx)
		return "", ctx.Err()
	})
	mcp.AddTool(f.Server, mcp.Tool{Name: "book"}, book)
	mcp.AddTool(f.Server, mcp.Tool{Name: "deploy"}, f.deploy)
	mcp.AddTool(f.Server, mcp.Tool{Name: "sample"}, func(ctx context.Context, _ struct{}) (string, error) {
		res, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 9, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("ping")}}}})
		if err != nil {
			return "", err
		}
		return res.Text(), nil
	})
	return f
}

// middle is the client in the middle: it declares everything, and answers nothing
// itself.
func middle(t testing.TB) *mcp.Client {
	return &mcp.Client{
		Name: "middle", Version: "1", LogLevel: level.Notice,
		OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			t.Error("the middle was asked")
			return nil, errors.New("not me")
		},
		OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
			t.Error("the middle was asked")
			return nil, errors.New("not me")
		},
	}
}

// chain connects a user to f over a session in the middle.
func chain(t testing.TB, f *far, front, back mcp.Revision) *mcp.Session {
	t.Helper()
	session := mcptest.Connect(t, f.Server, middle(t), back)
	c := user()
	c.LogLevel = level.Notice
	c.OnSample = func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
		return &mcp.SampleResult{Model: "m", Content: []mcp.Content{mcp.Text("pong")}}, nil
	}
	return mcptest.Connect(t, &mcp.Server{Name: "front", Version: "1", Handler: session}, c, front)
}

// TRANSLATION 2: all 25 pairs of front and back, over one Session that is served.
func TestPairs(t *testing.T) {
	mcptest.LeakCheck(t)
	for _, front := range mcp.Revisions() {
		for _, back := range mcp.Revisions() {
			t.Run(fmt.Sprintf("%s on %s", front, back), func(t *testing.T) {
				f := newFar()
				testPair(t, f, chain(t, f, front, back), front, back)
			})
		}
	}
}

func testPair(t *testing.T, f *far, s *mcp.Session, front, back mcp.Revision) {
	ctx := t.Context()
	if got, err := mcp.CallAs[string](ctx, s, "echo", text{"hello"}); err != nil || got != "hello" {
		t.Errorf("echo = %q, %v", got, err)
	}
	var progress, logs []string
	res, err := s.CallTool(ctx, "steps", nil,
		mcp.OnProgress(func(done, total float64, message string) {
			progress = append(progress, fmt.Sprint(done, total, message))
		}),
		mcp.OnLog(func(l mcp.LogMessage) { logs = append(logs, string(l.Data)) }))
	want := "[1 3step 2 3step 3 3step]"
	if min(front, back) < mcp.V2025_03_26 {
		want = "[1 3 2 3 3 3]" // T-69
	}
	if err != nil || res.Text() != "done" || fmt.Sprint(progress) != want {
		t.Errorf("steps = %v, %v with progress %v", res, err, progress)
	}
	if fmt.Sprint(logs) != `["log 1" "log 2" "log 3"]` {
		t.Errorf("logs %s", logs)
	}
	if res, err := s.CallTool(ctx, "fail", nil); err != nil || !res.IsError || res.Text() != "no paper" {
		t.Errorf("fail = %+v, %v", res, err)
	}
	var rpc *mcp.Error
	if _, err := s.CallTool(ctx, "rpc", nil); !errors.As(err, &rpc) || rpc.Code != 1234 || rpc.Message != "own" || string(rpc.Data) != `{"k":1}` {
		t.Errorf("rpc = %v", err)
	}
	if _, err := s.CallTool(ctx, "none", nil); !errors.Is(err, &mcp.Error{Code: jsonrpc.CodeInvalidParams}) {
		t.Errorf("an unknown tool = %v", err)
	}
	if got, err := mcp.CallAs[point](ctx, s, "structured", nil); err != nil || got != (point{1, 2}) {
		t.Errorf("structured = %v, %v", got, err)
	}
	missing := mcp.CodeResourceNotFound // T-130, T-131
	if front == mcp.V2026_07_28 {
		missing = jsonrpc.CodeInvalidParams
	}
	if _, err := s.ReadResource(ctx, "lib:none"); !errors.Is(err, &mcp.Error{Code: missing}) {
		t.Errorf("a missing resource = %v, want %d", err, missing)
	}
	refused := -32000 // T-139
	if front == mcp.V2026_07_28 {
		refused = jsonrpc.CodeInternal
	}
	if _, err := s.CallTool(ctx, "busy", nil); !errors.Is(err, &mcp.Error{Code: refused}) {
		t.Errorf("an error of the server's own range = %v, want %d", err, refused)
	}
	if got, err := s.ReadResource(ctx, "page://de/x"); err != nil || got.Contents[0].Text != "de of x" {
		t.Errorf("read = %v, %v", got, err)
	}
	if got, err := s.GetPrompt(ctx, "greet", map[string]string{"name": "Ada"}); err != nil || len(got.Messages) != 1 {
		t.Errorf("prompt = %v, %v", got, err)
	}
	if got, err := s.Complete(ctx, mcp.Feature{Kind: mcp.KindPrompt, Name: "greet"}, "name", "ad", nil); err != nil || fmt.Sprint(got.Values) != "[Ada]" {
		t.Errorf("complete = %v, %v", got, err)
	}
	if names := toolNames(t, s); !slices.Contains(names, "deploy") || len(names) != 11 {
		t.Errorf("tools %v", names)
	}
	if got, err := mcp.CallAs[string](ctx, s, "sample", nil); err != nil || got != "pong" {
		t.Errorf("sample = %q, %v", got, err)
	}

	for tool, args := range map[string]any{"book": trip{"2026-12-24"}, "deploy": service{"api"}} {
		got, err := mcp.CallAs[string](ctx, s, tool, args)
		if asks(front) && asks(back) {
			if want := map[string]string{"book": "booked 2026-12-27", "deploy": "plan-1 of api at 4"}[tool]; err != nil || got != want {
				t.Errorf("%s = %q, %v; want %s", tool, got, err, want)
			}
		} else if err == nil || !strings.Contains(err.Error(), "elicitation") {
			t.Errorf("%s = %q, %v; want an error that names elicitation", tool, got, err)
		}
	}
	if n := f.plans.Load(); asks(front) && asks(back) && n != 1 {
		t.Errorf("Once ran %d times", n)
	}

	cctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		_, err := s.CallTool(cctx, "wait", nil)
		ended <- err
	}()
	if _, err := s.CallTool(ctx, "echo", text{"meanwhile"}); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled call = %v", err)
	}
}

// Cancellation travels to the far end, on every pair (T-27, T-44).
func TestPairsCancel(t *testing.T) {
	mcptest.LeakCheck(t)
	for _, front := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		for _, back := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
			t.Run(fmt.Sprintf("%s on %s", front, back), func(t *testing.T) {
				f := newFar()
				s := chain(t, f, front, back)
				ctx, cancel := context.WithCancel(t.Context())
				reached := make(chan struct{})
				f.Server.HandleTool(mcp.Tool{Name: "wait"}, func(ctx context.Context, _ json.RawMessage) (*mcp.ToolResult, error) {
					close(reached)
					<-ctx.Done()
					f.causes <- context.Cause(ctx)
					return nil, ctx.Err()
				})
				go s.CallTool(ctx, "wait", nil)
				<-reached
				cancel()
				if cause := <-f.causes; cause == nil || !strings.Contains(cause.Error(), "cancel") {
					t.Errorf("cause %v", cause)
				}
			})
		}
	}
}

// T-50, T-51: changes travel to the front, on every pair.
func TestPairsWatch(t *testing.T) {
	for _, front := range mcp.Revisions() {
		for _, back := range mcp.Revisions() {
			t.Run(fmt.Sprintf("%s on %s", front, back), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFar()
					s := chain(t, f, front, back)
					events := watching(t, t.Context(), s, "lib:text")
					synctest.Wait()
					f.ResourceUpdated("lib:text")
					expect(t, events, "resources/updated lib:text")
					addTools(f.Server, 50, 51)
					expect(t, events, "tools/list_changed ")
				})
			})
		}
	}
}

// T-35 to T-38: a legacy server's call is held open until the modern caller comes back
// with the answer; a state is good once; a call whose caller never comes back ends.
func TestHeldCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun atomic.Int64
		ended := make(chan error, 10)
		back := one(func(ctx context.Context, _ struct{}) (string, error) {
			begun.Add(1)
			c, err := mcp.Elicit[color](ctx, "Which?")
			ended <- context.Cause(ctx)
			return c.Color, err
		})
		session := mcptest.Connect(t, back, middle(t), mcp.V2025_11_25)
		p := rawClient(t, &mcp.Server{Name: "front", Version: "1", Handler: session})
		const ask = `"name":"ask","arguments":{}`
		p.send(modern(1, "tools/call", canElicit, ask))
		state, qs := inputRequired(t, p.answer(1))
		p.send(modern(2, "tools/call", canElicit, ask+`,"requestState":`+quote(state)))
		state2, _ := inputRequired(t, p.answer(2)) // without the answer the question comes again
		retry := ask + "," + accept(qs, `{"color":"red"}`) + `,"requestState":`
		p.send(modern(3, "tools/call", canElicit, retry+quote(state)))
		wantError(t, p.answer(3), jsonrpc.CodeInvalidParams) // that state was used
		p.send(modern(4, "tools/call", canElicit, retry+quote(state2)))
		if m := p.answer(4); !strings.Contains(string(m.Result), "red") {
			t.Errorf("got %s", show(&m))
		}
		if err := <-ended; begun.Load() != 1 || err != nil {
			t.Errorf("the call began %d times and ended with %v", begun.Load(), err)
		}

		p.send(modern(5, "tools/call", canElicit, ask))
		inputRequired(t, p.answer(5))
		time.Sleep(14 * time.Minute)
		select {
		case err := <-ended:
			t.Fatalf("the held call ended early: %v", err)
		default:
		}
		time.Sleep(2 * time.Minute)
		if err := <-ended; err == nil && begun.Load() != 2 {
			t.Errorf("the abandoned call ended with %v", err)
		}

		p.send(modern(6, "tools/call", canElicit, ask))
		inputRequired(t, p.answer(6))
		session.Close()
		<-ended
	})
}

// T-50, T-51, SUB-26-005: what the server behind cannot tell is not promised in front.
func TestPairsHonour(t *testing.T) {
	ackOf := func(t *testing.T, front *mcp.Server) string {
		p := rawClient(t, front)
		p.send(modern(1, "subscriptions/listen", `{}`, `"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["x:y"]}`))
		m := p.read()
		raw, _ := m.Param("notifications")
		return m.Method + " " + string(raw)
	}
	back, err := nothing().Connect(t.Context(), stub(t, func(m jsonrpc.Message) []string {
		switch m.Method {
		case "server/discover":
			return failure(m, -32601, "")
		case "initialize":
			return result(m, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"prompts":{},"resources":{}},"serverInfo":{"name":"stub","version":"1"}}`)
		case "resources/subscribe":
			t.Error("the server behind is asked for what it does not offer")
		}
		return []string{}
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	front := &mcp.Server{Name: "front", Version: "1", Handler: back}
	if got, want := ackOf(t, front), `notifications/subscriptions/acknowledged {"toolsListChanged":true}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	p := rawClient(t, front)
	p.initialize(mcp.V2025_11_25, `{}`)
	p.send(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x:y"}}`)
	wantError(t, p.answer(1), jsonrpc.CodeInvalidParams)
}
