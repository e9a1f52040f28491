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

	"github.com/patchbay-dev/patchbay/store"
)

// Tasks returns a store for the tasks of an mcp.Server that this node serves (mcp.TaskConfig.Store). The result of a task is then
// found when the node that ran it has ended; a task that was at work there has failed. Results of more than 512 KiB, and those beyond
// 32 MiB of one node, are not shared: the server keeps them in its memory.
//
// The State is written when a task begins and when it ends.
func (n *Node) Tasks() store.Tasks { return &tasks{node: n} }

// tasks is a [store.Tasks] in the State.
type tasks struct {
	node *Node

	mu    sync.Mutex
	bytes int                // of those below; guarded by mu
	own   map[string]ownTask // what this node has written, by key; guarded by mu
}

type ownTask struct {
	bytes   int
	expires time.Time
}

// maxTaskBytes bounds the tasks that one node has in the State.
const maxTaskBytes = 32 << 20

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

// taskKey is the key of a task. The State does not learn its id, which may be its only protection, from keys that are logged.
func taskKey(id string) string { return "task.id." + digest(id) }

// ownerKey is what the keys of the ids of an owner's tasks begin with.
func ownerKey(owner string) string { return "task.of." + digest(owner) }

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:16])
}

// PutTask implements [store.Tasks].
func (s *tasks) PutTask(ctx context.Context, t store.Task) error {
	n, key, ttl := s.node, taskKey(t.ID), time.Until(t.Expires)
	if ttl <= 0 {
		return nil
	}
	value, err := json.Marshal(taskRecord{taskFormat, n.Name, n.process, t.ID, t.Owner, t.Expires, t.Over, t.Data})
	switch {
	case err != nil:
		return err
	case len(value) > MaxValue:
		return fmt.Errorf("the task has %d bytes with its result; a cluster keeps %d", len(value), MaxValue)
	}
	undo, err := s.count(key, ownTask{len(value), t.Expires})
	if err != nil {
		return err
	}
	version := uint64(0)
	for {
		if _, err = n.State.Put(ctx, key, value, version, ttl); !errors.Is(err, ErrConflict) {
			break
		}
		e, err := n.State.Get(ctx, key)
		if err != nil && !errors.Is(err, ErrNotFound) {
			undo()
			return err
		}
		version = e.Version
	}
	if err == nil && version == 0 {
		id := base64.RawURLEncoding.EncodeToString([]byte(t.ID))
		if _, err = n.State.Put(ctx, ownerKey(t.Owner)+"."+digest(t.ID), []byte(id), 0, ttl); errors.Is(err, ErrConflict) {
			err = nil
		}
	}
	if err != nil {
		undo()
	}
	return err
}

// count counts what this node has in the State. The function undo undoes that.
func (s *tasks) count(key string, t ownTask) (undo func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, had := s.own[key]
	if s.bytes-before.bytes+t.bytes > maxTaskBytes {
		for key, old := range s.own {
			if !time.Now().Before(old.expires) {
				s.bytes -= old.bytes
				delete(s.own, key)
			}
		}
		if before = s.own[key]; s.bytes-before.bytes+t.bytes > maxTaskBytes {
			return nil, fmt.Errorf("this node has %d bytes of tasks in the cluster, and at most %d", s.bytes, maxTaskBytes)
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
	e, err := s.node.State.Get(ctx, taskKey(id))
	if errors.Is(err, ErrNotFound) {
		return store.Task{}, false, nil
	}
	if err != nil {
		return store.Task{}, false, err
	}
	var r taskRecord
	switch err := json.Unmarshal(e.Value, &r); {
	case err != nil:
		return store.Task{}, false, fmt.Errorf("%s: %w", e.Key, err)
	case r.Format > taskFormat:
		return store.Task{}, false, fmt.Errorf("%s has format %d, this node knows %d: update this node", e.Key, r.Format, taskFormat)
	case r.ID != id || !time.Now().Before(r.Expires):
		return store.Task{}, false, nil
	}
	t := store.Task{ID: r.ID, Owner: r.Owner, Expires: r.Expires, Over: r.Over, Data: r.Data}
	if !r.Over && r.Process != s.node.process {
		if t.Elsewhere, err = s.node.lives(ctx, r.Node, r.Process); err != nil {
			return store.Task{}, false, err
		}
	}
	return t, true, nil
}

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
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var ids []string
	for c, err := range s.node.State.Watch(watching, ownerKey(owner)) {
		if err != nil {
			return nil, err
		}
		if c.Key == "" {
			break
		}
		id, err := base64.RawURLEncoding.DecodeString(string(c.Value))
		if err == nil && !c.Deleted && string(id) > after {
			ids = append(ids, string(id))
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
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
