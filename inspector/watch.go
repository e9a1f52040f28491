package inspector

import "sync"

// watch counts the administrators who look at the page, for [Page.Watch].
type watch struct {
	mu   sync.Mutex
	open int    // streams of events; guarded by mu
	stop func() // of Page.Watch; guarded by mu
}

// looks is called when an administrator opens a stream of events; done when it ends.
func (p *Page) looks() (done func()) {
	if p.Watch == nil {
		return func() {}
	}
	w := &p.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open++; w.open == 1 {
		w.stop = p.Watch()
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.open--; w.open == 0 {
			w.stop()
		}
	}
}

// looked reports whether somebody looks.
func (w *watch) looked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open > 0
}
