package auth

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// get returns what parse makes of the file at path, of no bytes if there is none; an empty
// path is no file ever. The error is that of the first reading; after that the value stays as
// it was while the file cannot be read.
func (w *watched[T]) get(path string, parse func([]byte) (T, error)) (T, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.loaded && (path == "" || now.Sub(w.looked) < lookEvery) {
		return w.value, nil
	}
	w.looked = now
	var state fs.FileInfo
	if path != "" {
		var err error
		state, err = os.Stat(path)
		switch {
		case err == nil && w.loaded && w.state != nil && os.SameFile(state, w.state) && state.ModTime().Equal(w.state.ModTime()) && state.Size() == w.state.Size():
			return w.value, nil
		case err == nil:
		case errors.Is(err, fs.ErrNotExist) && w.loaded:
		case w.loaded:
			return w.value, nil
		default:
			return w.value, err
		}
	}
	var content []byte
	var err error
	if state != nil {
		content, err = readFile(path)
	}
	var v T
	if err == nil {
		if v, err = parse(content); err != nil && path != "" {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	if err != nil {
		if w.loaded {
			err = nil
		}
		return w.value, err
	}
	w.loaded, w.state, w.value = true, state, v
	return v, nil
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
