package inspector

import "sync"

// bell tells listeners that something has changed. The zero value is ready for use.
type bell struct {
	mu  sync.Mutex
	now chan struct{} // closed by the next ring; nil: nobody listens; guarded by mu
}

// ring wakes those who have called heard. It does not wait for them.
func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now != nil {
		close(b.now)
		b.now = nil
	}
}

// heard returns a channel that the next ring closes.
func (b *bell) heard() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.now == nil {
		b.now = make(chan struct{})
	}
	return b.now
}
