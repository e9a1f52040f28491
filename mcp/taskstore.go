package mcp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/store"
)

// maxTaskBytes bounds what memoryTasks keeps.
const maxTaskBytes = 256 << 20

// memoryTasks is a [store.Tasks] in memory. The zero value is ready for use.
type memoryTasks struct {
	mu    sync.Mutex
	tasks map[string]store.Task // guarded by mu
	bytes int                   // guarded by mu
}

// PutTask implements [store.Tasks].
func (m *memoryTasks) PutTask(_ context.Context, t store.Task) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tasks == nil {
		m.tasks = map[string]store.Task{}
	}
	m.drop(t.ID)
	if len(m.tasks) >= maxTasks || m.bytes+len(t.Data) > maxTaskBytes {
		m.makeRoom(len(t.Data))
	}
	if len(m.tasks) >= maxTasks || m.bytes+len(t.Data) > maxTaskBytes {
		return fmt.Errorf("%d tasks of %d bytes are running and kept in memory, which is full; set TaskConfig.Store", len(m.tasks), m.bytes)
	}
	m.tasks[t.ID] = t
	m.bytes += len(t.Data)
	return nil
}

func (m *memoryTasks) drop(id string) {
	m.bytes -= len(m.tasks[id].Data)
	delete(m.tasks, id)
}

// makeRoom drops expired tasks, and then finished ones, those that expire first before others,
// until a tenth is free and there is room for room bytes; mu is held.
func (m *memoryTasks) makeRoom(room int) {
	at := time.Now()
	var over []store.Task
	for id, r := range m.tasks {
		switch {
		case !r.Expires.After(at):
			m.drop(id)
		case r.Over:
			over = append(over, r)
		}
	}
	slices.SortFunc(over, func(a, b store.Task) int { return a.Expires.Compare(b.Expires) })
	for _, r := range over {
		if len(m.tasks) < maxTasks-maxTasks/10 && m.bytes+room < maxTaskBytes-maxTaskBytes/10 {
			return
		}
		m.drop(r.ID)
	}
}

// GetTask implements [store.Tasks].
func (m *memoryTasks) GetTask(_ context.Context, id string) (store.Task, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.tasks[id]
	if ok && !t.Expires.After(time.Now()) {
		m.drop(id)
		ok = false
	}
	return t, ok, nil
}

// ListTasks implements [store.Tasks].
func (m *memoryTasks) ListTasks(_ context.Context, owner, after string, limit int) ([]store.Task, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := time.Now()
	var out []store.Task
	for _, t := range m.tasks {
		if t.Owner == owner && t.ID > after && t.Expires.After(at) {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b store.Task) int { return strings.Compare(a.ID, b.ID) })
	return out[:min(limit, len(out))], nil
}
