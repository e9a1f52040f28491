package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// node is a simulated server: its sessions take as long and fail as the test says.
type node struct {
	name string

	mu      sync.Mutex
	takes   time.Duration                   // for a call; guarded by mu
	fails   func(n int) error               // what the nth call, from 1, fails with; guarded by mu
	refuses error                           // what Open fails with; guarded by mu
	deaf    bool                            // it does not answer checks; guarded by mu
	calls   int                             // that came; guarded by mu
	checks  int                             // that came; guarded by mu
	opened  int                             // sessions; guarded by mu
	client  *mcp.Client                     // of the last session; guarded by mu
	at      func(ctx context.Context) error // what a call does, nil: nothing; guarded by mu
}

// server returns the node as a server of a host.
func (n *node) server(group string) host.Server {
	return host.Server{Name: n.name, Group: group, Open: func(_ context.Context, c *mcp.Client) (mcp.Handler, error) {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.refuses != nil {
			return nil, n.refuses
		}
		n.opened++
		n.client = c
		return &nodeSession{n: n, done: make(chan struct{})}, nil
	}}
}

// set changes a property of the node.
func (n *node) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// count returns the calls since the last count.
func (n *node) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.calls
	n.calls = 0
	return c
}

// seen returns the number of checks and sessions.
func (n *node) seen() (checks, opened int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.checks, n.opened
}

// nodeSession is a session with a node.
type nodeSession struct {
	n    *node
	once sync.Once
	done chan struct{}
}

func (s *nodeSession) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	switch req.Method {
	case "server/discover":
		return &mcp.ServerInfo{Implementation: mcp.Implementation{Name: s.n.name}, Capabilities: mcp.Capabilities{"tools": json.RawMessage(`{}`)}}, nil
	case "tools/list":
		return mcp.RawResult(`{"tools":[{"name":"work","description":"as ` + s.n.name + ` has it","inputSchema":{"type":"object"}}]}`), nil
	case "tools/call":
		return s.work(ctx)
	}
	return nil, mcp.Errorf(jsonrpc.CodeMethodNotFound, "no")
}

func (s *nodeSession) Done() <-chan struct{}  { return s.done }
func (s *nodeSession) Err() error             { return errors.New("gone") }
func (s *nodeSession) Revision() mcp.Revision { return mcp.V2025_11_25 }

func (s *nodeSession) Close() error {
	s.once.Do(func() { close(s.done) })
	return nil
}

func (s *nodeSession) Watch(ctx context.Context, _ ...string) iter.Seq2[mcp.Event, error] {
	return func(func(mcp.Event, error) bool) {
		select {
		case <-ctx.Done():
		case <-s.done:
		}
	}
}

func (s *nodeSession) Raw(ctx context.Context, _ string, _ any, _ ...mcp.CallOption) (json.RawMessage, error) {
	s.n.mu.Lock()
	s.n.checks++
	deaf := s.n.deaf
	s.n.mu.Unlock()
	if deaf {
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-s.done:
			return nil, mcp.ErrClosed
		}
	}
	return json.RawMessage(`{}`), nil
}

func (s *nodeSession) work(ctx context.Context) (mcp.Result, error) {
	s.n.mu.Lock()
	s.n.calls++
	takes, fails, at, nth := s.n.takes, s.n.fails, s.n.at, s.n.calls
	s.n.mu.Unlock()
	if at != nil {
		if err := at(ctx); err != nil {
			return nil, err
		}
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-s.done:
		return nil, mcp.ErrClosed
	}
	if fails != nil {
		if err := fails(nth); err != nil {
			return nil, err
		}
	}
	return &mcp.ToolResult{Content: []mcp.Content{mcp.Text("by " + s.n.name)}}, nil
}

// work calls the tool of a node, or of a group.
func work(ctx context.Context, h *host.Host, name string) (text string, err error) {
	err = h.Use(ctx, name, func(s *mcp.Session) error {
		res, err := s.CallTool(ctx, "work", nil, mcp.IdleTimeout(-1))
		if err == nil {
			text = res.Text()
		}
		return err
	})
	return text, err
}

// status returns the status of a server.
func status(t *testing.T, h *host.Host, name string) host.ServerStatus {
	t.Helper()
	for _, s := range h.Servers() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no server %q", name)
	return host.ServerStatus{}
}

// added adds servers.
func added(t *testing.T, h *host.Host, list ...host.Server) {
	t.Helper()
	for _, s := range list {
		if err := h.Add(s); err != nil {
			t.Fatal(err)
		}
	}
}
