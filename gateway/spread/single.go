package spread

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/note"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// session has the optional methods of a [gateway.Upstream], as a [*mcp.Session] has them.
type session interface {
	gateway.Upstream
	Revision() mcp.Revision
	Watch(ctx context.Context, uris ...string) iter.Seq2[mcp.Event, error]
	ListVersion(method string) (version uint64, heard bool)
	Asks() bool
	TakeTurns()
	Turns() (waiting int, asked time.Time, principal string)
	AsksRoots() bool
	Reach() (changed <-chan struct{}, err error)
	Raw(ctx context.Context, method string, params any, opts ...mcp.CallOption) (json.RawMessage, error)
}

// newSingle returns a connection to one replica of a group.
func newSingle(g *Group, l *line) gateway.Upstream {
	s := single{g, l}
	if all, ok := l.up.(session); ok {
		return &singleSession{all, s}
	}
	return &singleUpstream{l.up, s}
}

// single sends requests to one replica, whose breaker may refuse them.
type single struct {
	g *Group
	l *line
}

type singleSession struct {
	session
	single
}

func (s *singleSession) Err() error { return s.l.err() }

func (s *singleSession) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	return s.handle(ctx, req)
}

type singleUpstream struct {
	gateway.Upstream
	single
}

func (s *singleUpstream) Err() error { return s.l.err() }

func (s *singleUpstream) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	return s.handle(ctx, req)
}

func (s *single) handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if !counts(req.Method) {
		return s.l.up.Handle(ctx, req)
	}
	r := s.l.r
	// A replica that the operator takes out still answers its sessions, until their connections are closed.
	if err := r.breaker.Allow(); err != nil {
		if s.g.pick(req, func(other *replica) bool { return other != r && other.allow() == nil }) == nil {
			return nil, err
		}
		go s.l.up.Close() // bounded in time; the gateway then opens a connection to another replica
		return nil, unsent{mcp.Errorf(jsonrpc.CodeInternal, "%v. This request was not sent; the next one goes to another replica, which lacks the state that this one kept for you", err)}
	}
	if len(s.g.replicas) > 1 {
		_ = note.Attempt(ctx, r.Name) // the first one has no line
	}
	return s.l.send(ctx, req, true, false)
}

// counts reports whether a request tells something about the server: not one that the session itself
// answers, nor a subscription, which has no end.
func counts(method string) bool {
	return method != revision.MethodDiscover && method != revision.MethodListen && method != revision.NoteRootsChanged
}

// calls reports whether a request calls a tool.
func calls(req *mcp.Request) bool { return req.Method == revision.MethodCall }
