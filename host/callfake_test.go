package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// caller is a model that makes the calls in turns, one item for each answer, and then returns all
// results.
type caller struct {
	turns [][]*model.Call

	mu      sync.Mutex
	asked   int                      // guarded by mu
	results map[string]*model.Result // by the id of the call; guarded by mu
}

var _ model.Model = (*caller)(nil)

// calls returns a caller with one answer for each list of calls, each written as: name {arguments}.
func calls(turns ...[]string) *caller {
	m := &caller{}
	for i, turn := range turns {
		var list []*model.Call
		for j, text := range turn {
			name, args, _ := strings.Cut(text, " ")
			list = append(list, &model.Call{ID: fmt.Sprintf("c%d.%d", i+1, j+1), Name: name, Arguments: json.RawMessage(args)})
		}
		m.turns = append(m.turns, list)
	}
	return m
}

func (m *caller) Info() model.Info { return model.Info{Name: "fake/caller"} }

func (m *caller) Generate(ctx context.Context, req *model.Request, emit func(model.Delta)) (*model.Response, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.results == nil {
		m.results = map[string]*model.Result{}
	}
	for _, msg := range req.Messages {
		for _, p := range msg.Parts {
			if p.Result != nil {
				m.results[p.Result.ID] = p.Result
			}
		}
	}
	res := &model.Response{Message: model.Message{Role: model.Assistant}, Stop: model.StopEnd}
	if m.asked < len(m.turns) {
		for _, c := range m.turns[m.asked] {
			res.Message.Parts = append(res.Message.Parts, model.Part{Call: c})
		}
		res.Stop = model.StopCalls
	} else {
		res.Message.Parts = []model.Part{{Text: "done"}}
	}
	m.asked++
	return res, nil
}

// result returns the text of a result as the model received it.
func (m *caller) result(t testing.TB, id string) string {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.results[id]
	if r == nil {
		t.Fatalf("call %s has no result", id)
	}
	return (&model.Message{Parts: r.Parts}).Text()
}

// inMemory is a server of a host that runs in this process.
func inMemory(name string, srv *mcp.Server) host.Server {
	return host.Server{Name: name, Open: func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
		near, far := jsonrpc.Pipe()
		go srv.Serve(context.WithoutCancel(ctx), far) // ends with the session
		return c.Connect(ctx, mcptest.Wire(near))
	}}
}

// closing makes a server whose sessions are closed by the returned function.
func closing(s host.Server) (host.Server, func()) {
	var mu sync.Mutex
	var last *mcp.Session
	open := s.Open
	s.Open = func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
		h, err := open(ctx, c)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			last = h.(*mcp.Session)
		}
		return h, err
	}
	return s, func() {
		mu.Lock()
		defer mu.Unlock()
		last.Close()
	}
}

// newHost returns a host whose servers are ready. It is closed at the end of the test.
func newHost(t testing.TB, h *host.Host, servers ...host.Server) *host.Host {
	t.Helper()
	ready := make(chan string, len(servers))
	var once sync.Map
	h.OnStatus = func(s host.ServerStatus) {
		if s.State != gateway.Ready {
			return
		}
		if _, told := once.LoadOrStore(s.Name, true); !told {
			ready <- s.Name
		}
	}
	for _, s := range servers {
		if err := h.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { h.Close() })
	for range servers {
		<-ready
	}
	return h
}

// approver is a person who only approves.
type approver struct {
	host.Person
	approve func(context.Context, *host.Approval) (host.Verdict, error)
}

func (p approver) Approve(ctx context.Context, a *host.Approval) (host.Verdict, error) {
	return p.approve(ctx, a)
}

// says is a person who always gives the same answer.
func says(a host.Answer) approver {
	return approver{approve: func(context.Context, *host.Approval) (host.Verdict, error) { return host.Verdict{Answer: a}, nil }}
}

// diary keeps the events of a conversation.
type diary struct {
	mu     sync.Mutex
	events []host.Event // guarded by mu
}

func (d *diary) note(e host.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

// of returns the events of some kinds.
func (d *diary) of(kinds ...host.EventKind) (list []host.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		if slices.Contains(kinds, e.Kind) {
			list = append(list, e)
		}
	}
	return list
}

// outcome returns the outcome of a call.
func (d *diary) outcome(t testing.TB, id string) host.Outcome {
	t.Helper()
	for _, e := range d.of(host.Resulted) {
		if e.Call.ID == id {
			return e.Call.Outcome
		}
	}
	t.Fatalf("call %s has no end", id)
	return ""
}

// talk sends one message in a new conversation.
func talk(t testing.TB, h *host.Host) *diary {
	t.Helper()
	d := &diary{}
	c := h.NewConversation()
	c.OnEvent = d.note
	if _, err := c.Send(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	return d
}

func ptr[T any](v T) *T { return &v }
