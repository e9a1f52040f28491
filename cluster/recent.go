package cluster

import (
	"context"
	"sync"
	"time"
)

// Recent returns a State for what may be lost ([Node.Events]): it has 64 MiB, and the oldest entries go first.
func (m *Memory) Recent() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.recent == nil {
		m.recent = new(recent)
	}
	return m.recent
}

// recent is a State whose oldest entries go when there are too many bytes.
type recent struct {
	Memory

	putting sync.Mutex
	entries []Entry // without values, oldest first; guarded by putting
	sizes   []int   // of them; guarded by putting
	bytes   int     // guarded by putting
}

// maxRecentBytes bounds a recent.
const maxRecentBytes = 64 << 20

// Put implements [State].
func (r *recent) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	version, err := r.Memory.Put(ctx, key, value, version, ttl)
	if err != nil {
		return 0, err
	}
	r.putting.Lock()
	defer r.putting.Unlock()
	r.entries, r.sizes, r.bytes = append(r.entries, Entry{Key: key, Version: version}), append(r.sizes, len(value)), r.bytes+len(value)
	for r.bytes > maxRecentBytes {
		_ = r.Memory.Delete(ctx, r.entries[0].Key, r.entries[0].Version) // it may have expired
		r.bytes -= r.sizes[0]
		r.entries, r.sizes = r.entries[1:], r.sizes[1:]
	}
	return version, nil
}
