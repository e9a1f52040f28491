package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/store"
)

// Sessions returns a store for the sessions of an mcp.Server that this node serves at a path (mcp.HTTPConfig.Sessions). When
// a node has died or left, the next request of a session makes the node that gets it continue the session: with the same id,
// client, log level and subscriptions. Calls that still run at a node that was told to end get what their client then sends to the other
// one: answers to questions, and cancellations. Without the store, sessions end with their node.
func (n *Node) Sessions(path string) store.Sessions {
	n.paths.add(path)
	return &sessions{node: n, path: path}
}

// paths are those at which sessions are kept.
type paths struct {
	mu   sync.Mutex
	kept map[string]bool // false: it was warned of a session at this path, which is not kept; guarded by mu
}

func (p *paths) add(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.kept = map[string]bool{}
	}
	p.kept[path] = true
}

// strange reports whether sessions are kept, but not at a path, for the first time for that path.
func (p *paths) strange(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.kept[path]; known || len(p.kept) == 0 || len(p.kept) > maxPaths {
		return false
	}
	p.kept[path] = false
	return true
}

// maxPaths bounds the paths that are known.
const maxPaths = 1000

// sessions is a [store.Sessions] in the State.
type sessions struct {
	node *Node
	path string

	mu     sync.Mutex
	end    func(id string)                          // guarded by mu
	handle func(id string, message json.RawMessage) // guarded by mu
}

// OnTaken implements [store.Sessions].
func (s *sessions) OnTaken(end func(id string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = end
}

// taken ends a session that another node continues.
func (s *sessions) taken(id string) {
	s.mu.Lock()
	end := s.end
	s.mu.Unlock()
	if end != nil {
		end(id)
	}
}

// OnPassed implements [store.SharedSessions].
func (s *sessions) OnPassed(handle func(id string, message json.RawMessage)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle = handle
}

// passed handles a message for a call of a session that another node continues.
func (s *sessions) passed(id string, message json.RawMessage) {
	s.mu.Lock()
	handle := s.handle
	s.mu.Unlock()
	if handle != nil {
		handle(id, message)
	}
}

// Pass implements [store.SharedSessions].
func (s *sessions) Pass(ctx context.Context, id string, message json.RawMessage) error {
	n, key := s.node, sessionKey(s.path, id)
	entry, _ := n.owners.entry(key)
	var failed error
	for _, before := range entry.Before {
		if before != n.Name && n.sees(before) {
			failed = errors.Join(failed, n.pass(ctx, before, key, message))
		}
	}
	return failed
}

// PutSession implements [store.Sessions].
func (s *sessions) PutSession(ctx context.Context, v store.Session) error {
	n, key := s.node, sessionKey(s.path, v.ID)
	if !n.joined.Load() {
		return errNotJoined
	}
	r := record{Node: n.Name, Process: n.process, Principal: v.Principal, Data: v.Data}
	if size := len(r.marshal()); size > MaxValue {
		return fmt.Errorf("%w: the description of the client has %d bytes with its subscriptions; a cluster keeps %d", store.ErrNoRoom, size, MaxValue)
	}
	if err := n.owners.room(key, r, n.Seen()); err != nil {
		return err
	}
	if n.owners.change(key, r) {
		_, err := n.putAgain(ctx, key)
		return err
	}
	if _, err := n.State.Put(ctx, key, r.marshal(), 0, n.SessionIdle); err != nil {
		return err
	}
	n.owners.add(key, r, server{s, v.ID})
	return nil
}

// GetSession implements [store.Sessions].
func (s *sessions) GetSession(ctx context.Context, id string) (store.Session, bool, error) {
	n, key := s.node, sessionKey(s.path, id)
	if !n.owners.has(key) { // what the node has found before
		return store.Session{}, false, nil
	}
	ctx, stop := context.WithTimeout(ctx, node.Wait(ctx, patience/2))
	defer stop()
	e, err := n.State.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return store.Session{}, false, n.sure(ctx)
	}
	if err != nil {
		return store.Session{}, false, err
	}
	r, err := readRecord(e)
	switch {
	case err != nil && !n.newer(r, err):
		return store.Session{}, false, err
	case !n.wrote(r): // another node has taken it since the request was found to be for this one
		return store.Session{}, false, ErrOwner
	case r.Data == nil:
		return store.Session{}, false, nil
	}
	n.owners.add(key, r, server{s, id})
	return store.Session{ID: id, Principal: r.Principal, Data: r.Data}, true, nil
}

// DropSession implements [store.Sessions].
func (s *sessions) DropSession(ctx context.Context, id string) error {
	return s.node.closed(ctx, sessionKey(s.path, id))
}
