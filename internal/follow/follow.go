// Package follow reads a file again whenever it may have changed.
//
// It uses the change notifications of the system. A change without a notification, as on some
// network folders, or on Linux while a program keeps the file open for writing, is noticed within 10
// seconds, and the return of a folder that was removed within a second. Editors write in several steps: File looks at the file when nothing has happened for 150 ms,
// and reports a fault only if a second later it is still the same. Other files of the folder may change all the time.
package follow

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// Editors write in several steps.
	settleTime = 150 * time.Millisecond

	// A file may be half written if its fault is younger.
	halfWritten = time.Second

	// LookAgain bounds how long a change may go unnoticed where the system does not notify.
	LookAgain = 10 * time.Second

	// folderTime is the time between two looks while the folder of the file does not exist, because
	// nothing notifies of its return.
	folderTime = time.Second
)

// Look is the result of a look at a file.
type Look struct {
	Fault string          // in lines for people; empty: there is none
	Wrong bool            // the fault is in the file, not in those who may use it
	Also  []string        // other files to watch
	Again <-chan struct{} // closed when it is time for another look; nil: only changes of files cause one
}

// File calls look at once, and whenever a file may have changed, until ctx ends. It calls fault
// with each new fault, and calls right when the file has no fault any more. All three are called on
// the goroutine of File.
func File(ctx context.Context, path string, look func() Look, fault func(text string), right func()) {
	w := Start(path)
	defer w.Close()
	w.named = true
	var told Look    // the last reported look
	var young string // a fault that is not reported yet
	var since time.Time
	for ctx.Err() == nil {
		n := look()
		w.also, w.again = n.Also, n.Again
		switch {
		case n.Fault != "" && n.Fault != told.Fault:
			if n.Fault != young {
				young, since = n.Fault, time.Now()
			}
			if left := halfWritten - time.Since(since); left > 0 && w.Wait(ctx, left) {
				continue
			}
			fault(n.Fault)
		case n.Fault == "" && n.Again == nil && told.Wrong:
			right()
		}
		young = ""
		if n.Again == nil {
			told = n
		} else { // a person has yet to decide whether there is a fault, and then gets it
			told.Fault = ""
		}
		w.Wait(ctx, LookAgain)
	}
}

// Watch waits for changes of a file or of others: of its content, its name, or the file it links
// to. Folders that were watched once stay watched.
type Watch struct {
	path    string
	also    []string
	again   <-chan struct{} // closed: the wait is over; nil: only changes end it
	watcher *watcher        // nil if the system does not notify
	folders map[string]bool // those that the watcher has taken
	named   bool            // writes of other files in the folders do not count
	names   atomic.Value    // []string: the names of the files, if named
	changed chan struct{}   // has an element after a notification
	missing bool            // the folder of path cannot be watched
}

// Start begins to watch a file, which need not exist. Close ends that.
func Start(path string) *Watch {
	w := &Watch{path: path, folders: map[string]bool{}, changed: make(chan struct{}, 1)}
	w.watcher = newWatcher(w.notified) // without one, LookAgain bounds the delay
	return w
}

// notified takes a notification.
func (w *Watch) notified(path string, written bool) {
	if written && w.foreign(path) {
		return
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// foreign reports whether a name is not that of a file that is watched alone, as that of a log in the same
// folder. A file or a link that is replaced is created or renamed, not only written.
func (w *Watch) foreign(path string) bool {
	names, alone := w.names.Load().([]string)
	return alone && !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, filepath.Base(path)) })
}

// Also begins to watch the folders of other files, in place of those of an earlier call.
func (w *Watch) Also(files ...string) {
	w.also = files
	w.add()
}

// Close ends the watch.
func (w *Watch) Close() {
	if w.watcher != nil {
		w.watcher.close()
	}
}

// add watches folders, because a file may be replaced. It reports whether one of them was not
// watched before.
func (w *Watch) add() (grown bool) {
	if w.watcher == nil {
		return false
	}
	before := maps.Clone(w.folders)
	w.missing = false
	var files, names []string
	for _, path := range append([]string{w.path}, w.also...) {
		files = append(files, path)
		if target, err := filepath.EvalSymlinks(path); err == nil {
			files = append(files, target)
		}
	}
	for _, file := range files {
		names = append(names, filepath.Base(file))
	}
	if w.named {
		w.names.Store(names)
	}
	for _, file := range files {
		w.folder(filepath.Dir(file))
	}
	for dir := range w.folders {
		grown = grown || !before[dir]
	}
	return grown
}

func (w *Watch) folder(dir string) {
	if w.watcher.add(dir) { // also a known one, which may have been created again
		w.folders[dir] = true
		return
	}
	delete(w.folders, dir)
	w.missing = w.missing || dir == filepath.Dir(w.path)
}

// Wait waits until something has happened in the folder of the file and no more follows, but not
// for longer than d; false if nothing has happened. It returns true at once when it begins to watch
// a folder, as the file may have changed since the caller looked at it.
func (w *Watch) Wait(ctx context.Context, d time.Duration) bool {
	if w.add() {
		return true
	}
	if w.missing {
		d = min(d, folderTime)
	}
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-w.changed:
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
		case <-w.changed:
		case <-settled.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
