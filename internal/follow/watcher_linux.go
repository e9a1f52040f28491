package follow

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// watcher is an inotify instance of its own. fsnotify asks for each write to each file of a folder, so that every line
// of a log that stands beside the file wakes the program; this watcher asks for the end of writing.
type watcher struct {
	file  *os.File
	conn  conn
	heard sync.WaitGroup

	mu      sync.Mutex
	folders map[int32]string // by the number of the watch; guarded by mu
}

// conn runs functions with the descriptor of the file.
type conn interface{ Control(func(fd uintptr)) error }

const folderEvents = unix.IN_CREATE | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_DELETE | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR

// newWatcher returns nil if the system does not notify. It calls changed, on a goroutine of its own, for each change in a
// folder; written says that only the content of the file path has changed. An empty path: some changes are not known.
func newWatcher(changed func(path string, written bool)) *watcher {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil
	}
	w := &watcher{file: os.NewFile(uintptr(fd), "inotify"), folders: map[int32]string{}}
	if w.conn, err = w.file.SyscallConn(); err != nil {
		w.file.Close()
		return nil
	}
	w.heard.Go(func() { w.hear(changed) })
	return w
}

func (w *watcher) hear(changed func(path string, written bool)) {
	buf := make([]byte, 64<<10)
	for {
		n, err := w.file.Read(buf)
		if err != nil {
			return
		}
		for events := buf[:n]; len(events) >= unix.SizeofInotifyEvent; {
			watch, mask := int32(binary.NativeEndian.Uint32(events)), binary.NativeEndian.Uint32(events[4:])
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
			if end > len(events) {
				break
			}
			name := string(bytes.TrimRight(events[unix.SizeofInotifyEvent:end], "\x00"))
			events = events[end:]
			w.mu.Lock()
			dir, known := w.folders[watch]
			if mask&unix.IN_IGNORED != 0 { // the folder is gone, and the watch with it
				delete(w.folders, watch)
			}
			w.mu.Unlock()
			path := ""
			if known {
				path = filepath.Join(dir, name)
			}
			changed(path, known && mask == unix.IN_CLOSE_WRITE)
		}
	}
}

// add begins to watch a folder, also one that is watched.
func (w *watcher) add(dir string) bool {
	added := false
	w.mu.Lock() // before the first event of the watch
	defer w.mu.Unlock()
	err := w.conn.Control(func(fd uintptr) {
		watch, err := unix.InotifyAddWatch(int(fd), dir, folderEvents)
		if added = err == nil; added {
			w.folders[int32(watch)] = dir
		}
	})
	return err == nil && added
}

// close returns after the last call of changed.
func (w *watcher) close() {
	w.file.Close()
	w.heard.Wait()
}
