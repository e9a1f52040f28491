// Package follow looks at a file again whenever it may have changed.
//
// The system tells of changes where it can. What it does not tell, as on some network folders, is seen
// within 10 seconds. An editor writes in several steps: a look comes when nothing has happened for 150
// ms, and a fault is told only if the file does not change again within a second.
package follow

import (
	"context"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// Editors write in several steps.
	settleTime = 150 * time.Millisecond

	// A file with faults may be one that is half written, if it changes again within this time.
	halfWritten = time.Second

	// LookAgain is how long a change may stay unseen where the system does not tell.
	LookAgain = 10 * time.Second
)

// Look is what a look at a file has shown.
type Look struct {
	Fault string          // in lines for people; empty: there is none
	Wrong bool            // the fault is one of the file, and not of those who may use it
	Also  []string        // other files that count
	Again <-chan struct{} // closed when it is time for another look; nil: only files say that
}

// File calls look at once, and whenever a file may have changed, until ctx ends. It calls fault with a
// fault that is new, and right when the file has none any more. All are called on the goroutine of File.
func File(ctx context.Context, path string, look func() Look, fault func(text string), right func()) {
	w := Start(path)
	defer w.Close()
	var told Look // what was said of the file
	for ctx.Err() == nil {
		n := look()
		w.also, w.again = n.Also, n.Again
		switch {
		case n.Fault != "" && n.Fault != told.Fault:
			if w.Wait(ctx, halfWritten) {
				continue
			}
			fault(n.Fault)
		case n.Fault == "" && n.Again == nil && told.Wrong:
			right()
		}
		if n.Again == nil {
			told = n
		} else { // the person has yet to say whether there is a fault, and is told of it then
			told.Fault = ""
		}
		w.Wait(ctx, LookAgain)
	}
}

// Watch tells that a file may have changed: its content, what it links to, or its name; or one of
// others. Folders that were looked at once still are.
type Watch struct {
	path    string
	also    []string
	again   <-chan struct{}   // closed: the wait is over; nil: it never is for that
	watcher *fsnotify.Watcher // nil if the system does not tell
}

// Start begins to watch a file, which need not exist. Close ends that.
func Start(path string) *Watch {
	w := &Watch{path: path}
	w.watcher, _ = fsnotify.NewWatcher() // without one, LookAgain does
	return w
}

// Close ends the watch.
func (w *Watch) Close() {
	if w.watcher != nil {
		w.watcher.Close()
	}
}

// Wait waits until something has happened in the folder of the file, and that has
// settled, but not for longer than d; false if nothing has.
func (w *Watch) Wait(ctx context.Context, d time.Duration) bool {
	var events <-chan fsnotify.Event
	var faults <-chan error
	if w.watcher != nil {
		events, faults = w.watcher.Events, w.watcher.Errors
		// Folders, since a file may be replaced. They may have come anew.
		for _, path := range append([]string{w.path}, w.also...) {
			w.watcher.Add(filepath.Dir(path))
			if target, err := filepath.EvalSymlinks(path); err == nil {
				w.watcher.Add(filepath.Dir(target))
			}
		}
	}
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-events:
	case <-faults: // some events were lost
	case <-w.again:
		return true
	case <-late.C:
		return false
	case <-ctx.Done():
		return false
	}
	settled := time.NewTimer(settleTime)
	defer settled.Stop()
	for {
		select {
		case <-events:
		case <-faults:
		case <-settled.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
