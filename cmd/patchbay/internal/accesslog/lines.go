package accesslog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

const (
	maxWaiting = 4096            // lines that wait for the file; more are lost
	lookTime   = time.Second     // between two looks whether the file has been renamed
	closeTime  = 1 * time.Second // for the lines that remain at the end
)

// lines writes lines to a file in the background. It owns a goroutine, which ends with close.
type lines struct {
	waiting chan []byte
	done    chan struct{}
	fault   func(error) // called with the first of several faults in succession, and with nil after the last

	mu     sync.Mutex
	lost   int  // lines since the last one that was written; guarded by mu
	closed bool // guarded by mu

	// Used only by the goroutine.
	sink   io.Writer
	file   *os.File // the sink, if it is opened by path
	path   string
	looked time.Time // when the file was last compared with its path
	faulty bool      // the last write has failed
	torn   bool      // only a part of a line was written
	stuck  bool      // the path could not be opened again
	gone   bool      // the file was removed, and its path could not be opened again
	unseen int       // lines since the file was last seen at its path
}

// Open opens a log in a file, which it creates with mode 0600 or appends to. When the file is renamed
// or removed, the log continues in a new one within a second, so that it can be rotated. Until that can
// be opened, it continues in the renamed one. The file must not be wire, the stream of a server over
// stdio; nil: there is none. The function fault gets the first of several faults in succession, and nil
// when the log works again. It may be called on another goroutine.
func Open(path string, wire any, fault func(error)) (*Log, error) {
	f, err := ownfile.Sink(path, os.O_APPEND, 0o600, wire)
	if err != nil {
		return nil, err
	}
	return start(&lines{sink: f, file: f, path: path, looked: time.Now(), torn: endsTorn(path), fault: fault}), nil
}

// New returns a log that writes to w, a line with each Write.
func New(w io.Writer, fault func(error)) *Log { return start(&lines{sink: w, fault: fault}) }

// endsTorn reports whether a file ends within a line, as one does that was left by a full disk.
func endsTorn(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var last [1]byte
	_, err = f.ReadAt(last[:], info.Size()-1)
	return err == nil && last[0] != '\n'
}

// takeBack removes the last n bytes of the file, if this process has written them at its end.
func (l *lines) takeBack(n int) bool {
	if l.file == nil {
		return false
	}
	end, err := l.file.Seek(0, io.SeekCurrent)
	if err != nil || end < int64(n) {
		return false
	}
	info, err := l.file.Stat()
	return err == nil && info.Mode().IsRegular() && info.Size() == end && l.file.Truncate(end-int64(n)) == nil
}

func start(l *lines) *Log {
	l.waiting, l.done = make(chan []byte, maxWaiting), make(chan struct{})
	go func() {
		defer close(l.done)
		for line := range l.waiting {
			l.write(line)
		}
	}()
	return &Log{lines: l}
}

// add queues a line, or counts it as lost if there is no room.
func (l *lines) add(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	select {
	case l.waiting <- line:
	default:
		l.lost++
	}
}

func (l *lines) close() {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.waiting)
	}
	l.mu.Unlock()
	select {
	case <-l.done:
	case <-time.After(closeTime):
		l.fault(fmt.Errorf("the last lines are lost: they were not written within %v", closeTime))
		return // the goroutine has the file
	}
	if l.file == nil {
		return
	}
	if err := l.file.Close(); err != nil {
		l.fault(err)
	}
}

// write writes a line, after one that counts the lines that were lost before it.
func (l *lines) write(line []byte) {
	gone := l.follow()
	l.mu.Lock()
	if gone {
		l.lost++
	}
	lost := l.lost
	l.mu.Unlock()
	if gone {
		return
	}
	if lost > 0 {
		note, _ := json.Marshal(struct { // no member of it can fail
			Time string `json:"time"`
			Lost int    `json:"lost"`
		}{now(), lost})
		line = append(append(note, '\n'), line...)
	}
	if l.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := l.sink.Write(line)
	l.mu.Lock()
	if err == nil {
		l.lost -= lost
	} else {
		l.lost++
	}
	l.mu.Unlock()
	if err == nil {
		was := l.faulty
		l.faulty, l.torn = false, false
		l.unseen++
		if was && !l.stuck {
			l.fault(nil)
		}
		return
	}
	if n > 0 && !l.takeBack(n) {
		l.torn = line[n-1] != '\n'
	}
	if !l.faulty {
		l.faulty = true
		l.fault(fmt.Errorf("lines are lost: %w", err))
	}
}

// follow opens the file again if its path has become another one or none. It reports whether there
// is no file to write to: the log was removed and its path cannot be opened.
func (l *lines) follow() (gone bool) {
	if l.file == nil || time.Since(l.looked) < lookTime {
		return l.gone
	}
	l.looked = time.Now()
	there, err := os.Stat(l.path)
	own, statErr := l.file.Stat()
	if err == nil && statErr == nil && os.SameFile(there, own) {
		l.gone, l.unseen = false, 0
		l.unstick()
		return false
	}
	if statErr == nil && removed(own) { // its lines are lost, also the last ones
		l.mu.Lock()
		l.lost += l.unseen
		l.mu.Unlock()
		l.gone = true
	} else if err != nil && !errors.Is(err, os.ErrNotExist) {
		return l.gone // the file may be where it was
	}
	l.unseen = 0
	f, err := ownfile.Sink(l.path, os.O_APPEND, 0o600, nil)
	if err == nil {
		l.file.Close()
		l.sink, l.file, l.torn, l.gone = f, f, endsTorn(l.path), false
		l.unstick()
		return false
	}
	if !l.stuck {
		l.stuck = true
		if !l.gone {
			l.fault(fmt.Errorf("lines go on in the renamed file: %w", err))
		} else {
			l.fault(fmt.Errorf("lines are lost: %w", err))
		}
	}
	return l.gone
}

// unstick notes that the file at the path is in use. Of lines that still cannot be written there was a
// fault already, and there is news when they can.
func (l *lines) unstick() {
	if was := l.stuck; was {
		l.stuck = false
		if !l.faulty {
			l.fault(nil)
		}
	}
}
