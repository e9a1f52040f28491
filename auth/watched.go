package auth

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// watched is what a file says, read again when the file has changed.
type watched[T any] struct {
	mu     sync.Mutex
	loaded bool        // guarded by mu
	looked time.Time   // at the file; guarded by mu
	state  fs.FileInfo // of the file that value is from; nil: it was not there; guarded by mu
	value  T           // guarded by mu
}

const (
	lookEvery      = time.Second
	maxWatchedFile = 16 << 20 // bytes
)

// get returns what parse makes of the file at path; an empty path is a file without bytes
// that never changes. The error is that of the first reading. After that, a file that is gone
// has no bytes, and while one cannot be read the value stays, which log is told of; it may be
// nil.
func (w *watched[T]) get(path string, log *slog.Logger, parse func([]byte) (T, error)) (T, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.loaded && (path == "" || now.Sub(w.looked) < lookEvery) {
		return w.value, nil
	}
	w.looked = now
	v, state, err := w.read(path, parse)
	switch {
	case err == nil:
		w.loaded, w.state, w.value = true, state, v
	case !w.loaded:
		return v, err
	case log != nil:
		log.Warn("file not read again; what it said before counts", "err", err)
	}
	return w.value, nil
}

// read reads the file, if it is not the one that value is from. It is called with mu held.
func (w *watched[T]) read(path string, parse func([]byte) (T, error)) (v T, state fs.FileInfo, err error) {
	var content []byte
	if path != "" {
		state, err = os.Stat(path) // before it is read: a change after that is seen next time
		switch {
		case w.loaded && errors.Is(err, fs.ErrNotExist):
			state = nil
		case err != nil:
			return v, nil, err
		case w.state != nil && os.SameFile(state, w.state) && state.ModTime().Equal(w.state.ModTime()) && state.Size() == w.state.Size():
			return w.value, state, nil
		default:
			if content, err = readFile(path); err != nil {
				return v, nil, err
			}
		}
	}
	if v, err = parse(content); err != nil && path != "" {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return v, state, err
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxWatchedFile+1))
	if err == nil && len(content) > maxWatchedFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxWatchedFile)
	}
	return content, err
}
