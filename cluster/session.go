package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// sessionKey is the key of a session in the State, which does not learn its id: that is a secret. A session belongs to the path
// at which it was opened.
func sessionKey(path, id string) string {
	sum := sha256.Sum256([]byte(path + "\x00" + id))
	return "session." + hex.EncodeToString(sum[:16])
}

// recordFormat is the version of record. A node does not touch what a newer version has written.
const recordFormat = 1

// record is the value of a session in the State.
type record struct {
	Format    int             `json:"v"`
	Node      string          `json:"node"`
	Principal string          `json:"principal,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"` // of the store.Session; empty: no other node can continue it
}

// errFormat says that a newer version of the program has written a record.
var errFormat = errors.New("a newer version of the program has opened the session; update this node")

func readRecord(e Entry) (r record, err error) {
	if err = json.Unmarshal(e.Value, &r); err != nil {
		return r, fmt.Errorf("%s: %w", e.Key, err)
	}
	if r.Format > recordFormat {
		return r, fmt.Errorf("%s has format %d, this node knows %d: %w", e.Key, r.Format, recordFormat, errFormat)
	}
	return r, nil
}

func (r record) marshal() []byte {
	r.Format = recordFormat
	data, _ := json.Marshal(r) // of strings, and of JSON that was parsed before
	return data
}

// owners knows which node has which session.
type owners struct {
	mu   sync.Mutex
	own  map[string]*owned // sessions of this node; guarded by mu
	seen map[string]string // sessions of others, and their nodes; guarded by mu
}

// owned is a session of this node.
type owned struct {
	users int       // requests that run, event streams too
	last  time.Time // when one began or ended
	taken func()    // ends it here when another node has it; nil: its server cannot
}

// maxSeen bounds what a node remembers of the sessions of others.
const maxSeen = 10_000

// has says whether a session is one of this node.
func (o *owners) has(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.own[key] != nil
}

// kept says whether the server of a session of this node keeps it, and says when it ends.
func (o *owners) kept(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.own[key]
	return s != nil && s.taken != nil
}

// add makes a session one of this node.
func (o *owners) add(key string, taken func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.own == nil {
		o.own = map[string]*owned{}
	}
	delete(o.seen, key)
	s := o.own[key]
	if s == nil {
		s = new(owned)
		o.own[key] = s
	}
	s.last = time.Now()
	if taken != nil {
		s.taken = taken
	}
}

// forget removes a session, and returns it if it was one of this node.
func (o *owners) forget(key string) *owned {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.own[key]
	delete(o.own, key)
	delete(o.seen, key)
	return s
}

// all returns the keys of the sessions of this node.
func (o *owners) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.own))
}

// at returns the node that had a session of others when it was last seen; empty: not known.
func (o *owners) at(key string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.seen[key]
}

// see remembers the node of a session of others.
func (o *owners) see(key, node string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen == nil || len(o.seen) >= maxSeen {
		o.seen = map[string]string{}
	}
	o.seen[key] = node
}

// use counts a request, if its session is one of this node.
func (o *owners) use(key string, by int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.own[key]; s != nil {
		s.users += by
		s.last = time.Now()
	}
}

// due returns the sessions of this node that were in use within a time, and forgets those whose entries have expired.
func (o *owners) due(now time.Time, within, idle time.Duration) (keys []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, s := range o.own {
		switch {
		case s.users > 0 || now.Sub(s.last) <= within:
			keys = append(keys, key)
		case now.Sub(s.last) > 2*idle:
			delete(o.own, key)
		}
	}
	return keys
}

// patience bounds how long a request waits for the State.
const patience = 3 * time.Second

// find returns the node of a session; empty: no node has it. If no node can be reached that has it, this node takes it.
func (n *Node) find(ctx context.Context, key string) (owner string, err error) {
	if n.owners.has(key) {
		return n.Name, nil
	}
	if owner = n.owners.at(key); owner != "" {
		return owner, nil
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	e, err := n.State.Get(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound):
		return "", nil
	case err != nil:
		return "", err
	}
	r, err := readRecord(e)
	if err != nil {
		return "", err
	}
	if r.Node == n.Name || r.Node == "" { // of a process before this one, or of one that has retired
		if other := n.another(); r.Node == "" && n.retired.Load() && other != "" {
			return other, nil
		}
		return n.take(ctx, e, r)
	}
	n.owners.see(key, r.Node)
	return r.Node, nil
}

// take makes this node the owner of a session of a node that has ended. It returns the owner: another node may have been
// faster. Without what another node needs to continue it, the session is lost, and nobody has it.
func (n *Node) take(ctx context.Context, e Entry, r record) (owner string, err error) {
	from := r.Node
	r.Node = n.Name
	if r.Data == nil {
		_ = n.State.Delete(ctx, e.Key, e.Version) // it expires
		n.Logger.Warn("a session was lost with its node", "node", from)
		return "", nil
	}
	switch _, err = n.State.Put(ctx, e.Key, r.marshal(), e.Version, n.SessionIdle); {
	case err == nil:
		n.owners.add(e.Key, nil)
		n.Logger.Info("a session of another node is continued here", "node", from)
		return n.Name, nil
	case !errors.Is(err, ErrConflict):
		return "", err
	}
	if e, err = n.State.Get(ctx, e.Key); errors.Is(err, ErrNotFound) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	if r, err = readRecord(e); err != nil {
		return "", err
	}
	if r.Node == n.Name { // another request has taken it
		n.owners.add(e.Key, nil)
		return n.Name, nil
	}
	n.owners.see(e.Key, r.Node)
	return r.Node, nil
}

// handOver gives a session of this node up, and returns the node that shall take it; this one if none can.
func (n *Node) handOver(ctx context.Context, key string) (owner string, err error) {
	other, given := n.another(), false
	if other == "" {
		return n.Name, nil
	}
	err = n.change(ctx, key, func(ctx context.Context, e Entry, r record) error {
		if r.Data == nil {
			return nil
		}
		r.Node = ""
		_, err := n.State.Put(ctx, key, r.marshal(), e.Version, n.SessionIdle)
		given = err == nil
		return err
	})
	if err != nil || !given {
		return n.Name, err
	}
	n.owners.forget(key)
	return other, nil
}

// opened tells the State of a session whose server does not keep it.
func (n *Node) opened(ctx context.Context, key string) error {
	if n.owners.has(key) { // its server has done that
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	if _, err := n.State.Put(ctx, key, record{Node: n.Name}.marshal(), 0, n.SessionIdle); err != nil {
		return err
	}
	n.owners.add(key, nil)
	return nil
}

// closed forgets a session that has ended.
func (n *Node) closed(ctx context.Context, key string) error {
	n.owners.forget(key)
	return n.change(ctx, key, func(ctx context.Context, e Entry, _ record) error { return n.State.Delete(ctx, key, e.Version) })
}

// renew keeps the entries of this node's sessions that are in use, until stopped is closed.
func (n *Node) renew() {
	every := n.SessionIdle / 4
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-n.stopped:
			return
		case now := <-tick.C:
			for _, key := range n.owners.due(now, every, n.SessionIdle) {
				err := n.change(context.Background(), key, func(ctx context.Context, e Entry, _ record) error {
					_, err := n.State.Put(ctx, key, e.Value, e.Version, n.SessionIdle)
					return err
				})
				if err != nil {
					n.Logger.Warn("the entry of a session was not renewed", "err", err)
				}
			}
		}
	}
}

// change changes the entry of a session of this node. That it is gone, or has another owner, is not an error.
func (n *Node) change(ctx context.Context, key string, f func(context.Context, Entry, record) error) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	for {
		e, err := n.State.Get(ctx, key)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		var r record
		if err == nil {
			r, err = readRecord(e)
		}
		if err == nil && r.Node == n.Name {
			err = f(ctx, e, r)
		}
		if !errors.Is(err, ErrConflict) { // with another change of this node, or with one that has taken the session
			return err
		}
	}
}

// verify ends the sessions of this node that others have taken while it was not seen.
func (n *Node) verify(ctx context.Context) error {
	for _, key := range n.owners.all() {
		e, err := n.State.Get(ctx, key)
		if errors.Is(err, ErrNotFound) { // the State has lost it, or it was idle for long
			_, err = n.State.Put(ctx, key, record{Node: n.Name}.marshal(), 0, n.SessionIdle)
			if err == nil {
				continue
			}
		}
		if err != nil && !errors.Is(err, ErrConflict) {
			return err
		}
		if err == nil {
			if r, err := readRecord(e); err == nil && r.Node == n.Name {
				continue
			}
		}
		if s := n.owners.forget(key); s != nil && s.taken != nil {
			s.taken()
		}
	}
	return nil
}

// refuse answers with a JSON-RPC error for people, without an id: the message was not read.
func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":%q}}`, text)
}
