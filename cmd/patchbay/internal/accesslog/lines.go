package accesslog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
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
	fault   func(error) // called with the first of several faults in succession

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
}

// Open opens a log in a file, which it creates with mode 0600 or appends to. When the file is renamed
// or removed, the log continues in a new one within a second, so that it can be rotated. The function
// fault gets the first of several faults in succession, and may be called on another goroutine.
func Open(path string, fault func(error)) (*Log, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	return start(&lines{sink: f, file: f, path: path, looked: time.Now(), fault: fault}), nil
}

// New returns a log that writes to w, a line with each Write.
func New(w io.Writer, fault func(error)) *Log { return start(&lines{sink: w, fault: fault}) }

func openFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
}

func start(l *lines) *Log {
	l.waiting, l.done = make(chan []byte, maxWaiting), make(chan struct{})
	go func() {
		defer close(l.done)
		for line := range l.waiting {
			l.write(line)
		}
	}()
	return &Log{l}
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
		l.fault(fmt.Errorf("the last ones were not written within %v", closeTime))
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
	l.follow()
	l.mu.Lock()
	lost := l.lost
	l.mu.Unlock()
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
		l.faulty, l.torn = false, false
		return
	}
	l.torn = l.torn && n == 0 || n > 0 && line[n-1] != '\n'
	if !l.faulty {
		l.faulty = true
		l.fault(err)
	}
}

// follow opens the file again if its path has become another one or none.
func (l *lines) follow() {
	if l.file == nil || time.Since(l.looked) < lookTime {
		return
	}
	l.looked = time.Now()
	there, err := os.Stat(l.path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return
	}
	if own, statErr := l.file.Stat(); err == nil && (statErr != nil || os.SameFile(there, own)) {
		return
	}
	f, err := openFile(l.path)
	if err != nil { // the lines go on in the renamed file
		if !l.stuck {
			l.stuck = true
			l.fault(err)
		}
		return
	}
	l.file.Close()
	l.sink, l.file, l.torn, l.stuck = f, f, false, false
}
