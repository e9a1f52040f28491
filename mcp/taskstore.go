package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// TaskStore keeps tasks. Its methods may be called by several goroutines at once.
type TaskStore interface {
	// PutTask keeps a task and replaces the one with the same ID.
	PutTask(ctx context.Context, t TaskRecord) error
	// Task returns a task; false if there is none, or it has expired.
	Task(ctx context.Context, id string) (TaskRecord, bool, error)
	// Tasks returns the first tasks of an owner, at most limit, ordered by id, with ids greater
	// than after.
	Tasks(ctx context.Context, owner, after string, limit int) ([]TaskRecord, error)
}

// TaskRecord is a task in a [TaskStore].
type TaskRecord struct {
	ID, Owner string
	Expires   time.Time
	Over      bool            // its state is final
	Data      json.RawMessage // a DetailedTask of extensions/tasks
}

// maxTaskBytes bounds what memoryTasks keeps.
const maxTaskBytes = 256 << 20

// memoryTasks is a [TaskStore] in memory. The zero value is ready for use.
type memoryTasks struct {
	mu    sync.Mutex
	kept  map[string]TaskRecord // guarded by mu
	bytes int                   // guarded by mu
}

// PutTask implements [TaskStore].
func (m *memoryTasks) PutTask(_ context.Context, t TaskRecord) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[string]TaskRecord{}
	}
	m.drop(t.ID)
	if len(m.kept) >= maxTasks || m.bytes+len(t.Data) > maxTaskBytes {
		m.makeRoom(len(t.Data))
	}
	if len(m.kept) >= maxTasks || m.bytes+len(t.Data) > maxTaskBytes {
		return fmt.Errorf("%d tasks of %d bytes are at work and kept in memory, which is full; set TaskConfig.Store", len(m.kept), m.bytes)
	}
	m.kept[t.ID] = t
	m.bytes += len(t.Data)
	return nil
}

func (m *memoryTasks) drop(id string) {
	m.bytes -= len(m.kept[id].Data)
	delete(m.kept, id)
}

// makeRoom drops expired tasks, and then finished ones, those that expire first before others,
// until a tenth is free and there is room for room bytes; mu is held.
func (m *memoryTasks) makeRoom(room int) {
	at := time.Now()
	var over []TaskRecord
	for id, r := range m.kept {
		switch {
		case !r.Expires.After(at):
			m.drop(id)
		case r.Over:
			over = append(over, r)
		}
	}
	slices.SortFunc(over, func(a, b TaskRecord) int { return a.Expires.Compare(b.Expires) })
	for _, r := range over {
		if len(m.kept) < maxTasks-maxTasks/10 && m.bytes+room < maxTaskBytes-maxTaskBytes/10 {
			return
		}
		m.drop(r.ID)
	}
}

// Task implements [TaskStore].
func (m *memoryTasks) Task(_ context.Context, id string) (TaskRecord, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.kept[id]
	if ok && !t.Expires.After(time.Now()) {
		m.drop(id)
		ok = false
	}
	return t, ok, nil
}

// Tasks implements [TaskStore].
func (m *memoryTasks) Tasks(_ context.Context, owner, after string, limit int) ([]TaskRecord, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := time.Now()
	var out []TaskRecord
	for _, t := range m.kept {
		if t.Owner == owner && t.ID > after && t.Expires.After(at) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b TaskRecord) int { return strings.Compare(a.ID, b.ID) })
	return out[:min(limit, len(out))], nil
}
