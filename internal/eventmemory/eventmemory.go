// Package eventmemory keeps the events of streams in memory.
package eventmemory

import (
	"bytes"
	"container/list"
	"context"
	"sync"
	"time"
)

// Bounds of what is kept.
const (
	MaxBytes = 64 << 20
	MaxAge   = 5 * time.Minute
)

// A Store is a [store.Events] in memory. It keeps at most MaxBytes, for at most MaxAge; the
// oldest events are dropped first. The zero value is ready for use.
type Store struct {
	mu      sync.Mutex
	streams map[string][]*list.Element // in order of their positions; guarded by mu
	all     list.List                  // of *keptEvent, oldest first; guarded by mu
	bytes   int                        // guarded by mu
	timer   *time.Timer                // fires when the oldest event expires; guarded by mu
	due     bool                       // timer is set; guarded by mu
}

type keptEvent struct {
	stream   string
	position int64
	event    []byte
	at       time.Time
}

// size returns the approximate memory of an event, in bytes.
func (k *keptEvent) size() int { return len(k.event) + 200 }

// Append implements [store.Events].
func (m *Store) Append(_ context.Context, stream string, position int64, event []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := &keptEvent{stream, position, bytes.Clone(event), time.Now()}
	if m.streams == nil {
		m.streams = map[string][]*list.Element{}
	}
	m.streams[stream] = append(m.streams[stream], m.all.PushBack(k))
	m.bytes += k.size()
	m.prune(k.at)
	m.schedule(k.at)
	return nil
}

// schedule sets the timer to the expiry of the oldest event, if there is one; mu is held.
func (m *Store) schedule(now time.Time) {
	oldest := m.all.Front()
	if m.due || oldest == nil {
		return
	}
	m.due = true
	wait := MaxAge - now.Sub(oldest.Value.(*keptEvent).at)
	if m.timer == nil {
		m.timer = time.AfterFunc(wait, m.expire)
		return
	}
	m.timer.Reset(wait)
}

// expire drops expired events. It runs on the timer.
func (m *Store) expire() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.due = false
	now := time.Now()
	m.prune(now)
	m.schedule(now)
}

// After implements [store.Events].
func (m *Store) After(_ context.Context, stream string, position int64) ([][]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.prune(time.Now())
	var events [][]byte
	for _, e := range m.streams[stream] {
		if k := e.Value.(*keptEvent); k.position > position {
			events = append(events, k.event)
		}
	}
	return events, nil
}

// Forget implements [store.Events].
func (m *Store) Forget(_ context.Context, stream string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.streams[stream] {
		m.bytes -= e.Value.(*keptEvent).size()
		m.all.Remove(e)
	}
	delete(m.streams, stream)
	return nil
}

// prune drops expired events, and the oldest ones over the bound; mu is held.
func (m *Store) prune(now time.Time) {
	for e := m.all.Front(); e != nil; e = m.all.Front() {
		k := e.Value.(*keptEvent)
		if m.bytes <= MaxBytes && now.Sub(k.at) < MaxAge {
			return
		}
		m.bytes -= k.size()
		m.all.Remove(e)
		// The oldest of all is the oldest of its stream.
		if rest := m.streams[k.stream][1:]; len(rest) > 0 {
			m.streams[k.stream] = rest
		} else {
			delete(m.streams, k.stream)
		}
	}
}
