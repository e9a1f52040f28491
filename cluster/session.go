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

	"github.com/patchbay-dev/patchbay/store"
)

// sessionKey is the key of a session in the State, which does not learn its id: that is a secret. A session belongs to the path
// at which it was opened.
func sessionKey(path, id string) string {
	text, key := make([]byte, 0, 128), make([]byte, 0, 40)
	sum := sha256.Sum256(append(append(append(text, path...), 0), id...))
	return string(hex.AppendEncode(append(key, "session."...), sum[:16]))
}

// recordFormat is the version of record. A node does not change what a newer version has written, and forwards requests of such a session
// to its node. It grows with the version of Data (package engine) too, as a node takes a session before it reads that.
const recordFormat = 1

// record is the value of a session in the State. Node means the same in each format.
type record struct {
	Format    int             `json:"v"`
	Node      string          `json:"node"`    // empty: it has given the session up
	Process   string          `json:"process"` // of the node: a later process of that name has not the session
	Principal string          `json:"principal,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`   // of the store.Session; empty: no other node can continue it
	Before    []string        `json:"before,omitempty"` // nodes that have given it up, where calls of it may still run, oldest first
}

// maxBefore bounds record.Before.
const maxBefore = 3

// errFormat says that a newer version of the program has written a record.
var errFormat = errors.New("a newer version of the program has opened the session; update this node")

// errRecord says that the State has something else in place of a record.
var errRecord = errors.New("the record of the session in the cluster cannot be read; if that stays so, call initialize again, without Mcp-Session-Id")

// readRecord decodes a record. With the error errFormat it returns the node and the process of the session.
func readRecord(e Entry) (r record, err error) {
	err = json.Unmarshal(e.Value, &r)
	newer := r.Format > recordFormat // and other members may be of other types
	if (err == nil || newer) && r.Node != "" {
		err = Check("key", leaseKey(nodeLease(r.Node)))
	} else if newer {
		err = nil
	}
	switch {
	case err != nil:
		return r, fmt.Errorf("%s: %w (%w)", e.Key, errRecord, err)
	case newer:
		return record{Node: r.Node, Process: r.Process}, fmt.Errorf("%s has format %d, this node knows %d: %w", e.Key, r.Format, recordFormat, errFormat)
	}
	return r, nil
}

// newer says whether the record that readRecord has returned with an error is of a newer format, and names another node. That one has
// the session, if it has not ended.
func (n *Node) newer(r record, err error) bool {
	return errors.Is(err, errFormat) && r.Node != "" && r.Node != n.Name
}

// size is about how many bytes an entry has in the State.
func (r record) size() int { return len(r.Data) + len(r.Principal) + 300 }

func (r record) marshal() []byte {
	r.Format = recordFormat
	data, _ := json.Marshal(r) // of strings, and of JSON that was parsed before
	return data
}

// owners knows which node has which session.
type owners struct {
	mu    sync.Mutex
	own   map[string]*owned // sessions of this node; guarded by mu
	given map[string]server // of sessions that this node has given up; guarded by mu
	bytes map[string]int    // what the State has of the sessions of this node, by principal; guarded by mu
	total int               // of all principals; guarded by mu
	seen  map[string]string // sessions of others, and their nodes; guarded by mu
}

// server has a session in an mcp.Server of this node. The zero value stands for a server that does not keep its sessions.
type server struct {
	sessions *sessions
	id       string
}

// owned is a session of this node.
type owned struct {
	users int       // requests that run, event streams too
	last  time.Time // when one began or ended
	at    server
	entry record // what the State shall have of it
	bytes int    // of that, about
}

// maxSeen bounds what a node remembers of the sessions of others.
const maxSeen = 10_000

// has says whether a session is one of this node.
func (o *owners) has(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.own[key] != nil
}

// unkept says whether a session is one of this node whose server does not keep it, and so does not say when it ends.
func (o *owners) unkept(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.own[key]
	return s != nil && s.at == (server{}) && s.entry.Data == nil
}

// entry returns what the State shall have of a session of this node.
func (o *owners) entry(key string) (r record, own bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.own[key]; s != nil {
		return s.entry, true
	}
	return record{}, false
}

// add makes a session one of this node.
func (o *owners) add(key string, entry record, at server) {
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
	o.set(s, entry)
	if at != (server{}) {
		s.at = at
	}
}

// change notes what the State shall have of a session, and reports whether it is one of this node.
func (o *owners) change(key string, entry record) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.own[key]
	if s != nil {
		entry.Before = s.entry.Before
		o.set(s, entry)
	}
	return s != nil
}

// forget removes a session of this node, and returns it.
func (o *owners) forget(key string) *owned {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.seen, key)
	return o.remove(key)
}

// remove forgets a session of this node, which may not be there; mu is held.
func (o *owners) remove(key string) *owned {
	s := o.own[key]
	if s != nil {
		o.count(s.entry.Principal, -s.bytes)
		delete(o.own, key)
	}
	return s
}

// set notes what the State shall have of a session; mu is held.
func (o *owners) set(s *owned, entry record) {
	o.count(s.entry.Principal, -s.bytes)
	s.entry, s.bytes = entry, entry.size()
	o.count(entry.Principal, s.bytes)
}

// count counts bytes of a principal; mu is held.
func (o *owners) count(principal string, by int) {
	o.total += by
	if o.bytes == nil {
		o.bytes = map[string]int{}
	}
	if o.bytes[principal] += by; o.bytes[principal] == 0 {
		delete(o.bytes, principal)
	}
}

// Bounds of what the State has of sessions, in bytes, for all nodes, each of which has an equal part. A principal has a quarter of that.
const (
	maxSessionBytes = 128 << 20
	principalPart   = 4
)

// room returns an error if a session, with what the State shall have of it, is too much for a part of the bytes of all sessions.
func (o *owners) room(key string, entry record, nodes int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	more, most := entry.size(), maxSessionBytes/nodes
	if s := o.own[key]; s != nil {
		more -= s.bytes
	}
	switch {
	case more <= 0: // it is there, perhaps beyond a part that has become smaller
		return nil
	case o.bytes[entry.Principal]+more > most/principalPart:
		return fmt.Errorf("%w for another session: what the clients of this caller have said of themselves takes the %d bytes that it may have at a node; end some sessions", store.ErrNoRoom, most/principalPart)
	case o.total+more > most:
		return fmt.Errorf("%w for another session: what clients have said of themselves takes the %d bytes that a node may have; try again later", store.ErrNoRoom, most)
	}
	return nil
}

// give removes a session of this node that another one is to continue.
func (o *owners) give(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.own[key]; s != nil && s.at != (server{}) {
		if o.given == nil {
			o.given = map[string]server{}
		}
		o.given[key] = s.at
	}
	o.remove(key)
	delete(o.seen, key)
}

// had returns where a session is that this node has given up.
func (o *owners) had(key string) (at server, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok = o.given[key]
	return at, ok
}

// unsee forgets which other node had a session. This node may have taken it meanwhile.
func (o *owners) unsee(key string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.seen, key)
}

// all returns the keys of the sessions of this node.
func (o *owners) all() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Keys(o.own))
}

// idle returns the sessions of this node that have no request, and that another one can continue.
func (o *owners) idle() (keys []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for key, s := range o.own {
		if s.users == 0 && s.entry.Data != nil {
			keys = append(keys, key)
		}
	}
	return keys
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
			o.remove(key)
		}
	}
	return keys
}

// patience bounds how long a request waits for the State.
const patience = 3 * time.Second

// find returns the node of a session; empty: no node has it. If no node can be reached that has it, this node takes it. The request came
// at a time, and does not wait for longer than answerTime.
func (n *Node) find(ctx context.Context, key string, since time.Time) (owner string, err error) {
	if n.owners.has(key) {
		return n.Name, nil
	}
	if owner = n.owners.at(key); owner != "" {
		return owner, nil
	}
	ctx, stop := context.WithTimeout(ctx, min(patience, time.Until(since.Add(answerTime))))
	defer stop()
	e, err := n.State.Get(ctx, key)
	switch {
	case errors.Is(err, ErrNotFound):
		return "", n.sure(ctx)
	case err != nil:
		return "", err
	}
	r, err := readRecord(e)
	if err != nil && !n.newer(r, err) {
		return "", err
	}
	if r.Node == n.Name || r.Node == "" { // of a process before this one, or of one that has retired
		other := ""
		switch {
		case r.Node != "":
		case n.retired.Load():
			other = n.another()
		default:
			other = n.others.last(n.staying()) // see another
		}
		if other != "" {
			return other, nil
		}
		return n.take(ctx, e, r)
	}
	n.owners.see(key, r.Node)
	return r.Node, nil
}

// take makes this node the owner of a session that no node has: the one that had it has ended, or gives it up. It returns the owner:
// another node may have been faster. Without what another node needs to continue it, the session is lost, and nobody has it.
func (n *Node) take(ctx context.Context, e Entry, r record) (owner string, err error) {
	for {
		from := r.Node
		r.Node, r.Process = n.Name, n.process
		if r.Data == nil {
			_ = n.State.Delete(ctx, e.Key, e.Version) // it expires
			n.Logger.Warn("a session was lost with its node", "node", from)
			return "", nil
		}
		switch _, err = n.State.Put(ctx, e.Key, r.marshal(), e.Version, n.SessionIdle); {
		case err == nil:
			n.owners.add(e.Key, r, server{})
			n.Logger.Info("a session of another node is continued here", "node", from)
			return n.Name, nil
		case !errors.Is(err, ErrConflict):
			return "", err
		}
		if e, err = n.State.Get(ctx, e.Key); errors.Is(err, ErrNotFound) {
			return "", n.sure(ctx)
		} else if err != nil {
			return "", err
		}
		if r, err = readRecord(e); err != nil && !n.newer(r, err) {
			return "", err
		}
		switch {
		case n.wrote(r): // another request has taken it
			n.owners.add(e.Key, r, server{})
			return n.Name, nil
		case r.Node != "" && r.Node != n.Name:
			n.owners.see(e.Key, r.Node)
			return r.Node, nil
		} // else another node has taken it, and given it up already
	}
}

// handOver gives a session of this node up, and returns the node that shall take it; this one if none can.
func (n *Node) handOver(ctx context.Context, key string) (owner string, err error) {
	other, given := n.another(), false
	if other == "" {
		return n.Name, nil
	}
	_ = n.flush(flushTime) // so that the other one has the events of the session; it is logged
	err = n.change(ctx, key, func(ctx context.Context, e Entry, r record) error {
		if r.Data == nil {
			return nil
		}
		r.Node, r.Process = "", ""
		r.Before = append(r.Before, n.Name)
		r.Before = r.Before[max(len(r.Before)-maxBefore, 0):]
		_, err := n.State.Put(ctx, key, r.marshal(), e.Version, n.SessionIdle)
		given = err == nil
		return err
	})
	if err != nil {
		return n.Name, err
	}
	if !given {
		ctx, stop := context.WithTimeout(ctx, patience)
		defer stop()
		e, err := n.State.Get(ctx, key)
		if errors.Is(err, ErrNotFound) {
			return n.Name, nil // it has ended
		}
		var r record
		if err == nil {
			r, err = readRecord(e)
		}
		if err != nil && !n.newer(r, err) || n.wrote(r) {
			return n.Name, err
		}
		n.owners.give(key) // another request has given it up at the same moment
		return n.find(ctx, key, time.Now())
	}
	n.owners.give(key)
	return other, nil
}

// handIdle gives up the sessions without a request, so that the next one need not find that this node has ended. It ends with the node.
func (n *Node) handIdle() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		<-n.stopped
		stop()
	}()
	for _, key := range n.owners.idle() {
		if _, err := n.handOver(ctx, key); err != nil { // then others find that the node has ended
			return
		}
	}
}

// opened tells the State of a session whose server does not keep it.
func (n *Node) opened(ctx context.Context, key string) error {
	if n.owners.has(key) { // its server has done that
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	r := record{Node: n.Name, Process: n.process}
	if _, err := n.State.Put(ctx, key, r.marshal(), 0, n.SessionIdle); err != nil {
		return err
	}
	n.owners.add(key, r, server{})
	return nil
}

// closed forgets a session that has ended.
func (n *Node) closed(ctx context.Context, key string) error {
	n.owners.forget(key) // so that an entry that is gone is not put again
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
				if _, err := n.putAgain(context.Background(), key); err != nil {
					n.Logger.Warn("the entry of a session was not renewed", "err", err)
				}
			}
		}
	}
}

// wrote says whether this process has written a record as the owner of its session.
func (n *Node) wrote(r record) bool { return r.Node == n.Name && r.Process == n.process }

// change changes the entry of a session of this node. If the State has lost it, f gets what it was, with version 0. That another
// node has the session is not an error.
func (n *Node) change(ctx context.Context, key string, f func(context.Context, Entry, record) error) error {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	for {
		var r record
		mine := false
		e, err := n.State.Get(ctx, key)
		if errors.Is(err, ErrNotFound) {
			e, err = Entry{Key: key}, nil
			r, mine = n.owners.entry(key)
		} else if err == nil {
			if r, err = readRecord(e); errors.Is(err, errFormat) { // a node of a newer version has taken it
				return nil
			}
			mine = err == nil && n.wrote(r)
		}
		if mine {
			err = f(ctx, e, r)
		}
		if !errors.Is(err, ErrConflict) { // with another change of this node, or with one that has taken the session
			return err
		}
	}
}

// putAgain writes the entry of a session of this node once more, for its time, and because the State may have lost it. It reports
// whether this node still has the session.
func (n *Node) putAgain(ctx context.Context, key string) (kept bool, err error) {
	err = n.change(ctx, key, func(ctx context.Context, e Entry, r record) error {
		if now, ok := n.owners.entry(key); ok { // which was perhaps not written when it changed
			r = now
		}
		_, err := n.State.Put(ctx, key, r.marshal(), e.Version, n.SessionIdle)
		kept = err == nil
		return err
	})
	return kept, err
}

// verify ends the sessions of this node that others have taken while it was not seen. The entries of the others are written once
// more: a node that is about to take such a session then does not get it.
func (n *Node) verify(ctx context.Context) error {
	if err := n.whole(ctx); err != nil && !errors.Is(err, errLoss) {
		return err
	}
	var failed error
	var mu sync.Mutex
	var working sync.WaitGroup
	keys := make(chan string)
	for range verifying {
		working.Go(func() {
			for key := range keys {
				if err := n.verifyOne(ctx, key); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	for _, key := range n.owners.all() {
		keys <- key
	}
	close(keys)
	working.Wait()
	return failed
}

// verifying is how many sessions are verified at once.
const verifying = 16

func (n *Node) verifyOne(ctx context.Context, key string) error {
	kept, err := n.putAgain(ctx, key)
	if errors.Is(err, errRecord) { // then the session is lost, and not the node
		n.Logger.Warn("a session was lost", "err", err)
		kept, err = false, nil
	}
	if err != nil || kept {
		return err
	}
	if s := n.owners.forget(key); s != nil && s.at != (server{}) {
		s.at.sessions.taken(s.at.id)
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
