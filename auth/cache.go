package auth

import (
	"container/list"
	"crypto/sha256"
	"sync"
)

// cache holds what is known about credentials, by their hash. When it is full, it drops the least
// recently used.
type cache[V any] struct {
	max int

	mu     sync.Mutex
	byHash map[[sha256.Size]byte]*list.Element // guarded by mu
	used   list.List                           // of *cached[V], the latest first; guarded by mu
}

type cached[V any] struct {
	hash  [sha256.Size]byte
	value V
}

func newCache[V any](max int) *cache[V] {
	return &cache[V]{max: max, byHash: map[[sha256.Size]byte]*list.Element{}}
}

func (c *cache[V]) get(hash [sha256.Size]byte) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byHash[hash]
	if e == nil {
		return v, false
	}
	c.used.MoveToFront(e)
	return e.Value.(*cached[V]).value, true
}

func (c *cache[V]) put(hash [sha256.Size]byte, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byHash[hash]; e != nil {
		e.Value.(*cached[V]).value = v
		c.used.MoveToFront(e)
		return
	}
	c.byHash[hash] = c.used.PushFront(&cached[V]{hash, v})
	if c.used.Len() > c.max {
		c.removeLocked(c.used.Back())
	}
}

func (c *cache[V]) remove(hash [sha256.Size]byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byHash[hash]; e != nil {
		c.removeLocked(e)
	}
}

func (c *cache[V]) removeLocked(e *list.Element) {
	delete(c.byHash, e.Value.(*cached[V]).hash)
	c.used.Remove(e)
}
