package view_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/gateway/view"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/middleware"
)

// announcer is a server that begins a task for each call, and sends a notification about the resource a://x
// whenever poke is called, until its listener leaves.
type announcer struct {
	tasks atomic.Int64
	poked chan chan struct{}
}

func (a *announcer) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	switch req.Method {
	case "tools/call":
		id := fmt.Sprintf(`{"taskId":"t%d","status":"working"}`, a.tasks.Add(1))
		return &mcp.CreateTaskResult{Task: json.RawMessage(id)}, nil
	case "subscriptions/listen":
		for {
			select {
			case done := <-a.poked:
				err := forward.Notify(ctx, "notifications/resources/updated", json.RawMessage(`{"uri":"a://x"}`))
				close(done)
				if err != nil {
					return nil, err
				}
			case <-ctx.Done():
				return mcp.RawResult(`{}`), nil
			}
		}
	}
	return mcp.RawResult(`{}`), nil
}

// A view that takes the place of another one decides about what has begun before: tasks and open subscriptions.
func TestMemory(t *testing.T) {
	srv := &announcer{poked: make(chan chan struct{})}
	memory := new(view.Memory)
	serve := func(v *view.View) mcp.Handler {
		v.Name, v.Memory = "v", memory
		return v.Middleware()(srv)
	}
	ask := func(h mcp.Handler, method, params string) error {
		_, err := h.Handle(t.Context(), &mcp.Request{Method: method, Params: []byte(params)})
		return err
	}
	h := serve(&view.View{Tools: []string{"one", "two"}, Resources: []string{"a://*"}})
	for _, tool := range []string{"one", "two"} {
		if err := ask(h, "tools/call", `{"name":"`+tool+`"}`); err != nil {
			t.Fatal(err)
		}
	}
	told := 0
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	first := h
	caller, err := new(mcp.Client).Open(t.Context(), mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != "subscriptions/listen" {
			return new(mcp.Server).Handle(ctx, req)
		}
		return first.Handle(forward.WithNotify(ctx, func(string, json.RawMessage) error { told++; return nil }), req)
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	go func() {
		_, err := caller.Do(ctx, &mcp.Request{Method: "subscriptions/listen", Params: []byte(`{"notifications":{"resourceSubscriptions":["a://x"]}}`)})
		left <- err
	}()
	poke := func() int {
		done, before := make(chan struct{}), told
		srv.poked <- done
		<-done
		return told - before
	}
	if poke() != 1 {
		t.Fatal("the subscription reports nothing")
	}
	refused := false
	for _, step := range []struct {
		name     string
		v        view.View
		one, two bool // the tasks of these tools exist
		told     int
	}{
		{"the same", view.View{Tools: []string{"one", "two"}, Resources: []string{"a://*"}}, true, true, 1},
		{"without a tool", view.View{Tools: []string{"two"}, Resources: []string{"a://*"}}, false, true, 1},
		{"with other names", view.View{Tools: []string{"*"}, Changes: map[string]middleware.ToolChange{"one": {Name: "first"}, "two": {Hidden: true}}}, true, false, 0},
		{"with a search", view.View{Tools: []string{"*"}, Resources: []string{"*"}, Search: new(view.Search)}, true, true, 1},
		{"for some callers", view.View{Tools: []string{"*"}, Resources: []string{"*"}, For: func(context.Context) bool { return !refused }}, true, true, 0},
		{"with everything", view.View{}, true, true, 1},
		{"with everything but a tool", view.View{Changes: map[string]middleware.ToolChange{"one": {Hidden: true}}}, false, true, 1},
		{"with nothing", view.View{Tools: []string{}}, false, false, 0},
		{"as at first", view.View{Tools: []string{"one", "two"}, Resources: []string{"a://*"}}, true, true, 1},
	} {
		h := serve(&step.v)
		one, two := ask(h, "tasks/get", `{"taskId":"t1"}`) == nil, ask(h, "tasks/cancel", `{"taskId":"t2"}`) == nil
		refused = true
		if n := poke(); one != step.one || two != step.two || n != step.told {
			t.Errorf("%s: the tasks exist: %v, %v; %d notifications; want %v, %v, %d", step.name, one, two, n, step.one, step.two, step.told)
		}
		refused = false
	}
	leave()
	if err := <-left; err == nil {
		t.Error("the subscription had ended")
	}

	// A task that began in a view with everything is known when the view gets smaller.
	if err := ask(serve(new(view.View)), "tools/call", `{"name":"one"}`); err != nil {
		t.Fatal(err)
	}
	h = serve(&view.View{Tools: []string{"one"}})
	if err := ask(h, "tasks/get", `{"taskId":"t3"}`); err != nil {
		t.Error(err)
	}
	if err := ask(h, "tasks/get", `{"taskId":"t4"}`); err == nil {
		t.Error("a task of another view exists")
	}
	if err := ask((&view.View{Name: "v", Tools: []string{"*"}}).Middleware()(srv), "tasks/get", `{"taskId":"t3"}`); err == nil {
		t.Error("a view with a memory of its own has the task")
	}
}
