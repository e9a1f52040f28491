package view

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

// Memory is what a view remembers of its calls: the tools of the tasks that began in it, and the rests of results
// that it cut. Views that follow one another under one name share a Memory, so that tasks and links survive a
// change of the view. The view whose Middleware was called last then decides for the earlier ones too: about the
// tasks that began in them, and about each notification of their open subscriptions. The zero value is ready for
// use.
type Memory struct {
	now   atomic.Pointer[View] // the last view
	once  sync.Once
	gate  mcp.Middleware // made once
	rests rests
}

// gateOf returns the middleware that decides by v, and then by the views that follow it.
func (m *Memory) gateOf(v *View) mcp.Middleware {
	m.now.Store(v)
	m.once.Do(func() { m.gate = policy.Foreign(v.Name, true, policy.Func(m.decide), v.Logger) })
	return m.gate
}

// decide is the policy of the last view.
func (m *Memory) decide(ctx context.Context, a *policy.Access) policy.Decision {
	v := m.now.Load()
	if a.Method == "subscriptions/listen" && v.Admit(ctx) != nil { // the stream may be older than the condition
		return policy.Decision{Rule: v.rule()}
	}
	return v.decide(ctx, a)
}

// whole is a view with everything. The gate gets what it has to remember or may have to decide later, and nothing
// else, such as lists.
type whole struct{ gated, next mcp.Handler }

func (w *whole) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	switch req.Method {
	case "tools/call", "subscriptions/listen", "tasks/get", "tasks/update", "tasks/cancel", "tasks/list":
		return w.gated.Handle(ctx, req)
	}
	return w.next.Handle(ctx, req)
}
