package bridge

import (
	"encoding/json"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
)

// late holds notifications that were read by a goroutine other than that of the call, which must go
// on reading. It owns a goroutine while it holds some; the goroutine ends before the call does.
type late struct {
	mu      sync.Mutex
	notes   *engine.Notes // nil before the first; guarded by mu
	telling bool          // the goroutine runs; guarded by mu
	closed  bool          // guarded by mu
	wg      sync.WaitGroup
}

// notifyLate passes on a notification of the call without waiting for its delivery.
func (x *Call) notifyLate(method string, params json.RawMessage) {
	l := &x.late
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.notes == nil {
		l.notes = new(engine.Notes)
	}
	l.notes.Put(engine.Note{Method: method, Params: params})
	if !l.telling {
		l.telling = true
		l.wg.Go(x.tellLate)
	}
}

// tellLate delivers the notifications that notifyLate holds.
func (x *Call) tellLate() {
	l := &x.late
	returned := false
	defer func() {
		if !returned { // a function of the user has ended the goroutine
			l.mu.Lock()
			defer l.mu.Unlock()
			l.telling = false
		}
	}()
	for {
		l.mu.Lock()
		notes, dropped := l.notes.Take()
		l.telling = len(notes) > 0
		l.mu.Unlock()
		if dropped > 0 {
			x.r.Log.Warn("notifications dropped", "method", x.method, "count", dropped)
		}
		if len(notes) == 0 {
			returned = true
			return
		}
		for _, n := range notes {
			x.notify(n.Method, n.Params)
		}
	}
}

// close waits until everything is delivered, and accepts no more.
func (l *late) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.wg.Wait()
}
