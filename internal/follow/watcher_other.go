//go:build !linux

package follow

import (
	"sync"

	"github.com/fsnotify/fsnotify"
)

// watcher takes the notifications of the system.
type watcher struct {
	system *fsnotify.Watcher
	heard  sync.WaitGroup
}

// newWatcher returns nil if the system does not notify. It calls changed, on a goroutine of its own, for each change in a
// folder; written says that only the content of the file path has changed. An empty path: some changes are not known.
func newWatcher(changed func(path string, written bool)) *watcher {
	system, err := fsnotify.NewWatcher()
	if err != nil {
		return nil
	}
	w := &watcher{system: system}
	w.heard.Go(func() { w.hear(changed) })
	return w
}

// hear takes the notifications at once: on Windows a watcher does not add a folder while one waits to be taken.
func (w *watcher) hear(changed func(path string, written bool)) {
	for {
		var e fsnotify.Event
		ok := false
		select {
		case e, ok = <-w.system.Events:
		case _, ok = <-w.system.Errors: // some notifications were lost
		}
		if !ok {
			return
		}
		changed(e.Name, e.Op == fsnotify.Write)
	}
}

// add begins to watch a folder, also one that is watched.
func (w *watcher) add(dir string) bool { return w.system.Add(dir) == nil }

// close returns after the last call of changed.
func (w *watcher) close() {
	w.system.Close()
	w.heard.Wait()
}
