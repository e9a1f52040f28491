package cluster

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a [State] and a [Bus] for the nodes of one process. Its zero value is ready to use.
type Memory struct {
	mu          sync.Mutex
	version     uint64                // guarded by mu
	entries     map[string]*kept      // guarded by mu
	changed     chan struct{}         // closed at the next change, and then replaced; guarded by mu
	listeners   map[string]*listener  // guarded by mu
	subscribers map[string][]*mailbox // guarded by mu
	recent      *recent               // guarded by mu
}

// kept is an entry, or the trace of one that is gone, so that a Watch that was slow tells of it.
type kept struct {
	Change
	expiry *time.Timer // may be nil
}

// Get implements [State].
func (m *Memory) Get(_ context.Context, key string) (Entry, error) {
	if err := Check("key", key); err != nil {
		return Entry{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.entries[key]
	if k == nil || k.Deleted {
		return Entry{}, fmt.Errorf("%s: %w", key, ErrNotFound)
	}
	return k.copy().Entry, nil
}

func (k *kept) copy() Change {
	c := k.Change
	c.Value = bytes.Clone(c.Value)
	return c
}

// Put implements [State].
func (m *Memory) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if err := CheckPut(key, value, ttl); err != nil {
		return 0, err
	}
	return m.change(ctx, key, bytes.Clone(value), version, Seconds(ttl), false)
}

// CheckPut returns an error if Put cannot take its arguments.
func CheckPut(key string, value []byte, ttl time.Duration) error {
	switch err := Check("key", key); {
	case err != nil:
		return err
	case len(value) > MaxValue:
		return fmt.Errorf("key %s: a value of %d bytes, at most %d are allowed", key, len(value), MaxValue)
	case ttl < 0:
		return fmt.Errorf("key %s: ttl %v is negative", key, ttl)
	}
	return nil
}

// Delete implements [State].
func (m *Memory) Delete(ctx context.Context, key string, version uint64) error {
	if err := Check("key", key); err != nil {
		return err
	}
	if version == 0 {
		return fmt.Errorf("%s: %w", key, ErrConflict)
	}
	_, err := m.change(ctx, key, nil, version, 0, true)
	return err
}

func (m *Memory) change(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration, deleted bool) (uint64, error) {
	if ctx.Err() != nil {
		return 0, fmt.Errorf("%s: %w", key, context.Cause(ctx))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	k := m.entries[key]
	if now := k.now(); now != version {
		return 0, fmt.Errorf("%s has version %d and not %d: %w", key, now, version, ErrConflict)
	}
	if k == nil {
		k = &kept{}
		if m.entries == nil {
			m.entries = map[string]*kept{}
		}
		m.entries[key] = k
	}
	m.set(k, key, value, deleted)
	if ttl > 0 {
		next := k.Version
		k.expiry = time.AfterFunc(ttl, func() { m.expire(key, k, next) })
	}
	return k.Version, nil
}

// now returns the version of an entry, 0 if there is none.
func (k *kept) now() uint64 {
	if k == nil || k.Deleted {
		return 0
	}
	return k.Version
}

// set changes an entry and wakes those who watch. The caller holds mu.
func (m *Memory) set(k *kept, key string, value []byte, deleted bool) {
	if k.expiry != nil {
		k.expiry.Stop()
		k.expiry = nil
	}
	m.version++
	k.Change = Change{Entry: Entry{Key: key, Value: value, Version: m.version}, Deleted: deleted}
	if deleted {
		version := m.version
		k.expiry = time.AfterFunc(forget, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			if m.entries[key] == k && k.Version == version {
				delete(m.entries, key)
			}
		})
	}
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// forget is how long a Watch that is slow learns which entries are gone.
const forget = time.Minute

func (m *Memory) expire(key string, k *kept, version uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if k.Version == version {
		k.expiry = nil
		m.set(k, key, nil, true)
	}
}

// Watch implements [State].
func (m *Memory) Watch(ctx context.Context, prefix string) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		if err := Check("prefix", prefix); err != nil {
			yield(Change{}, err)
			return
		}
		var seen uint64
		for first := true; ctx.Err() == nil; first = false {
			list, now, next := m.since(prefix, seen, first)
			for _, c := range list {
				if !yield(c, nil) {
					return
				}
			}
			seen = now
			if first && !yield(Change{}, nil) {
				return
			}
			select {
			case <-next:
			case <-ctx.Done():
			}
		}
	}
}

// since returns what has changed after a version, the version now, and a channel that is closed at the next change.
func (m *Memory) since(prefix string, version uint64, first bool) (list []Change, now uint64, next <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, k := range m.entries {
		if strings.HasPrefix(key, prefix+".") && k.Version > version && !(first && k.Deleted) {
			list = append(list, k.copy())
		}
	}
	slices.SortFunc(list, func(a, b Change) int { return cmp.Compare(a.Version, b.Version) })
	if m.changed == nil {
		m.changed = make(chan struct{})
	}
	return list, m.version, m.changed
}
