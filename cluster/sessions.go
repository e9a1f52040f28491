package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/patchbay-dev/patchbay/store"
)

// Sessions returns a store for the sessions of an mcp.Server that this node serves at a path (mcp.HTTPConfig.Sessions). When
// a node has died or left, the next request of a session makes the node that gets it continue the session: with the same id,
// client, log level and subscriptions. Without the store, sessions end with their node.
func (n *Node) Sessions(path string) store.Sessions { return &sessions{node: n, path: path} }

// sessions is a [store.Sessions] in the State.
type sessions struct {
	node *Node
	path string

	mu  sync.Mutex
	end func(id string) // guarded by mu
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

// PutSession implements [store.Sessions].
func (s *sessions) PutSession(ctx context.Context, v store.Session) error {
	n, key := s.node, sessionKey(s.path, v.ID)
	r := record{Node: n.Name, Process: n.process, Principal: v.Principal, Data: v.Data}
	if size := len(r.marshal()); size > MaxValue {
		return fmt.Errorf("the description of the client has %d bytes with its subscriptions; a cluster keeps %d", size, MaxValue)
	}
	if n.owners.change(key, r) {
		_, err := n.putAgain(ctx, key)
		return err
	}
	if _, err := n.State.Put(ctx, key, r.marshal(), 0, n.SessionIdle); err != nil {
		return err
	}
	n.owners.add(key, r, func() { s.taken(v.ID) })
	return nil
}

// GetSession implements [store.Sessions].
func (s *sessions) GetSession(ctx context.Context, id string) (store.Session, bool, error) {
	n, key := s.node, sessionKey(s.path, id)
	if !n.owners.has(key) { // what the node has found before
		return store.Session{}, false, nil
	}
	e, err := n.State.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return store.Session{}, false, n.whole(ctx)
	}
	if err != nil {
		return store.Session{}, false, err
	}
	r, err := readRecord(e)
	switch {
	case err != nil:
		return store.Session{}, false, err
	case !n.wrote(r): // another node has taken it since the request was found to be for this one
		return store.Session{}, false, ErrOwner
	case r.Data == nil:
		return store.Session{}, false, nil
	}
	n.owners.add(key, r, func() { s.taken(id) })
	return store.Session{ID: id, Principal: r.Principal, Data: r.Data}, true, nil
}

// DropSession implements [store.Sessions].
func (s *sessions) DropSession(ctx context.Context, id string) error {
	return s.node.closed(ctx, sessionKey(s.path, id))
}
