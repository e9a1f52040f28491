// Package resultcache keeps results of calls that read, for a time, until a call writes.
//
// # Guarantees
//
//   - A result is returned only for the key that it was kept for, and before its time is over.
//   - A call that may write drops all results, when it begins and when it ends. Results of reads that
//     were in progress meanwhile are not kept.
//   - A cache holds at most 4 MiB, and results of at most 512 KiB. The oldest are dropped first.
package resultcache

import (
	chain "container/list"
	"sync"
	"time"
)

// Bounds of one cache, in bytes.
const (
	maxBytes = 4 << 20
	maxOne   = 512 << 10
	overhead = 200 // of a result, besides its own bytes
)

// Cache holds results. The zero value is empty. It may be used by several goroutines at once.
type Cache[K comparable, V any] struct {
	mu      sync.Mutex
	bytes   int                  // guarded by mu
	entries map[K]*chain.Element // of *kept; guarded by mu
	order   chain.List           // most recently stored first; guarded by mu
	writing int                  // calls in progress that may change something; guarded by mu
	changes uint64               // number of times the cache was emptied; guarded by mu
}

type kept[K comparable, V any] struct {
	key   K
	value V
	bytes int
	until time.Time
}

// Ticket is one call that reads, as the cache sees it.
type Ticket[K comparable, V any] struct {
	cache   *Cache[K, V]
	key     K
	changes uint64 // when the call began
}

// Read is called before a call that reads.
func (c *Cache[K, V]) Read(key K) *Ticket[K, V] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &Ticket[K, V]{c, key, c.changes}
}

// Write is called before a call that may write; the caller calls done after it, whatever its outcome.
func (c *Cache[K, V]) Write() (done func()) {
	c.mu.Lock()
	c.writing++
	c.mu.Unlock()
	c.Drop()
	return func() {
		c.Drop()
		c.mu.Lock()
		defer c.mu.Unlock()
		c.writing--
	}
}

// Hit returns the kept result, if there is one that has not expired. It must not be modified.
func (t *Ticket[K, V]) Hit() (value V, ok bool) {
	c := t.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[t.key]
	if e == nil {
		return value, false
	}
	one := e.Value.(*kept[K, V])
	if !time.Now().Before(one.until) {
		c.remove(e)
		return value, false
	}
	return one.value, true
}

// Keep stores the result of the call, with the number of its bytes and of those of its key, unless the
// cache was emptied in the meantime.
func (t *Ticket[K, V]) Keep(value V, bytes int, ttl time.Duration) {
	bytes += overhead
	if bytes > maxOne {
		return
	}
	c := t.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing > 0 || c.changes != t.changes {
		return
	}
	if e := c.entries[t.key]; e != nil {
		c.remove(e)
	}
	if c.entries == nil {
		c.entries = map[K]*chain.Element{}
	}
	c.entries[t.key] = c.order.PushFront(&kept[K, V]{t.key, value, bytes, time.Now().Add(ttl)})
	for c.bytes += bytes; c.bytes > maxBytes; {
		c.remove(c.order.Back())
	}
}

// remove removes one result; mu is held.
func (c *Cache[K, V]) remove(e *chain.Element) {
	one := c.order.Remove(e).(*kept[K, V])
	delete(c.entries, one.key)
	c.bytes -= one.bytes
}

// Drop empties the cache and keeps results of calls in progress out of it.
func (c *Cache[K, V]) Drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.bytes, c.entries = 0, nil
	c.order.Init()
}
