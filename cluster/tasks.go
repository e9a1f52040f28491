package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/store"
)

// Tasks returns a store for the tasks of an mcp.Server that this node serves at a path (mcp.TaskConfig.Store). The result of a task is
// then found when the node that ran it has ended; a task that was at work there has failed. Results of more than 512 KiB, and those beyond
// 48 MiB of all nodes, an equal part each, are not shared, nor more than 32,768 tasks: the server keeps them in its memory.
//
// The State is written when a task begins and when it ends.
func (n *Node) Tasks(path string) store.Tasks { return &tasks{node: n, path: path} }

// tasks is a [store.Tasks] in the State.
type tasks struct {
	node *Node
	path string

	mu    sync.Mutex
	bytes int                // of those below; guarded by mu
	own   map[string]ownTask // those that this node has written, by key; guarded by mu
}

type ownTask struct {
	bytes   int
	expires time.Time
}

const (
	// maxTaskEntries bounds the tasks that all nodes have in the State, a part for each.
	maxTaskEntries = 32 << 10
	// maxTaskBytes bounds the large tasks that all nodes have in the State, a part for each. They are results.
	maxTaskBytes = 48 << 20
	largeTask    = 1 << 10
)

// taskFormat is the version of taskRecord.
const taskFormat = 1

// taskRecord is the value of a task in the State.
type taskRecord struct {
	Format  int             `json:"v"`
	Node    string          `json:"node"`
	Process string          `json:"process"`
	ID      string          `json:"id"`
	Owner   string          `json:"owner"`
	Expires time.Time       `json:"expires"`
	Over    bool            `json:"over"`
	Data    json.RawMessage `json:"data"`
}

// taskKey is the key of a task. It does not show the id, which may be the only protection of the task.
func (s *tasks) taskKey(id string) string { return "task.id." + digest(s.path, id) }

// ownerKey is what the keys of the ids of an owner's tasks begin with.
func (s *tasks) ownerKey(owner string) string { return "task.of." + digest(s.path, owner) }

func digest(path, of string) string {
	sum := sha256.Sum256([]byte(path + "\x00" + of))
	return hex.EncodeToString(sum[:16])
}

// PutTask implements [store.Tasks].
func (s *tasks) PutTask(ctx context.Context, t store.Task) error {
	ctx, stop := context.WithTimeoutCause(ctx, patience, errAway)
	defer stop()
	n, key, ttl := s.node, s.taskKey(t.ID), time.Until(t.Expires)
	switch {
	case !n.joined.Load():
		return errNotJoined
	case ttl <= 0:
		return nil
	}
	value, err := json.Marshal(taskRecord{taskFormat, n.Name, n.process, t.ID, t.Owner, t.Expires, t.Over, t.Data})
	switch {
	case err != nil:
		return err
	case len(value) > MaxValue:
		return fmt.Errorf("%w: the task has %d bytes with its result; a cluster keeps %d", store.ErrNoRoom, len(value), MaxValue)
	}
	undo, err := s.count(key, ownTask{len(value), t.Expires})
	if err != nil {
		return err
	}
	if err = s.write(ctx, t, key, value, ttl); err != nil {
		undo()
	}
	return s.forClients(err)
}

// forClients words an error of the State, which has keys, for the clients of the server. The log has the error.
func (s *tasks) forClients(err error) error {
	if err == nil || errors.Is(err, store.ErrOver) {
		return err
	}
	s.node.Logger.Warn("a task was not read or written", "err", err)
	return fmt.Errorf("%w; try again", errAway)
}

// write writes a task, and first its place in the list of its owner. A task that has ended in another process stays as it is.
func (s *tasks) write(ctx context.Context, t store.Task, key string, value []byte, ttl time.Duration) error {
	state, id := s.node.State, base64.RawURLEncoding.EncodeToString([]byte(t.ID))
	if _, err := state.Put(ctx, s.ownerKey(t.Owner)+"."+digest(s.path, t.ID), []byte(id), 0, ttl); err != nil && !errors.Is(err, ErrConflict) {
		return err
	}
	for version := uint64(0); ; {
		_, err := state.Put(ctx, key, value, version, ttl)
		if !errors.Is(err, ErrConflict) {
			return err
		}
		e, err := state.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if version = e.Version; version == 0 {
			continue
		}
		r, err := readTask(e)
		if err != nil {
			return err
		}
		if r.Over && r.Process != s.node.process {
			return fmt.Errorf("%w, node %s", store.ErrOver, r.Node)
		}
	}
}

// readTask decodes a task.
func readTask(e Entry) (r taskRecord, err error) {
	if err = json.Unmarshal(e.Value, &r); r.Format > taskFormat { // whatever its other members are
		return r, fmt.Errorf("%s has format %d, this node knows %d: update this node", e.Key, r.Format, taskFormat)
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", e.Key, err)
	}
	return r, nil
}

// count counts what this node has in the State. The function undo undoes that.
func (s *tasks) count(key string, t ownTask) (undo func(), err error) {
	if t.bytes <= largeTask {
		t.bytes = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before, had := s.own[key]
	nodes := s.node.Seen()
	full := func() error {
		switch {
		case !had && len(s.own) >= maxTaskEntries/nodes:
			return fmt.Errorf("%w: this node has %d tasks in the cluster, which is the limit", store.ErrNoRoom, len(s.own))
		case s.bytes-before.bytes+t.bytes > maxTaskBytes/nodes:
			return fmt.Errorf("%w: this node has %d bytes of tasks in the cluster, and at most %d", store.ErrNoRoom, s.bytes, maxTaskBytes/nodes)
		}
		return nil
	}
	if full() != nil {
		for key, old := range s.own {
			if !time.Now().Before(old.expires) {
				s.bytes -= old.bytes
				delete(s.own, key)
			}
		}
		before, had = s.own[key]
		if err := full(); err != nil {
			return nil, err
		}
	}
	if s.own == nil {
		s.own = map[string]ownTask{}
	}
	s.bytes += t.bytes - before.bytes
	s.own[key] = t
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.own[key] != t {
			return
		}
		s.bytes -= t.bytes
		if delete(s.own, key); had {
			s.bytes += before.bytes
			s.own[key] = before
		}
	}, nil
}

// GetTask implements [store.Tasks].
func (s *tasks) GetTask(ctx context.Context, id string) (store.Task, bool, error) {
	if !s.node.joined.Load() {
		return store.Task{}, false, errNotJoined
	}
	ctx, stop := context.WithTimeoutCause(ctx, node.Wait(ctx, patience), errAway)
	defer stop()
	for last := uint64(0); ; {
		e, err := s.node.State.Get(ctx, s.taskKey(id))
		if errors.Is(err, ErrNotFound) {
			return store.Task{}, false, nil
		}
		if err != nil {
			return store.Task{}, false, s.forClients(err)
		}
		r, err := readTask(e)
		if err != nil || r.ID != id || !time.Now().Before(r.Expires) {
			return store.Task{}, false, err
		}
		t := store.Task{ID: r.ID, Owner: r.Owner, Expires: r.Expires, Over: r.Over, Data: r.Data}
		if !r.Over && r.Process != s.node.process {
			if t.Elsewhere, err = s.node.lives(ctx, r.Node, r.Process); err != nil {
				return store.Task{}, false, s.forClients(err)
			}
			if !t.Elsewhere && e.Version != last { // it may have ended before its node did
				last = e.Version
				continue
			}
		}
		return t, true, nil
	}
}

// errAway says that the State has not answered in time.
var errAway = errors.New("the cluster does not answer")

// lives reports whether a process has the name of a node.
func (n *Node) lives(ctx context.Context, node, of string) (bool, error) {
	e, err := n.State.Get(ctx, leaseKey(nodeLease(node)))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil && process(e) == of, err
}

// ListTasks implements [store.Tasks].
func (s *tasks) ListTasks(ctx context.Context, owner, after string, limit int) ([]store.Task, error) {
	ctx, stop := context.WithTimeoutCause(ctx, node.Wait(ctx, patience), errAway)
	defer stop()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var ids []string
	for c, err := range s.node.State.Watch(watching, s.ownerKey(owner)) {
		if err != nil {
			return nil, s.forClients(err)
		}
		if c.Key == "" {
			break
		}
		id, err := base64.RawURLEncoding.DecodeString(string(c.Value))
		if err == nil && !c.Deleted && string(id) > after {
			ids = append(ids, string(id))
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	slices.Sort(ids)
	var list []store.Task
	for _, id := range ids {
		if len(list) == limit {
			break
		}
		t, ok, err := s.GetTask(ctx, id)
		if err != nil {
			return nil, err
		}
		if ok && t.Owner == owner {
			list = append(list, t)
		}
	}
	return list, nil
}
