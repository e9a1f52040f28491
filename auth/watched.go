package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// watched is the parsed content of a file, parsed again when the file has changed.
type watched[T any] struct {
	mu     sync.Mutex
	loaded bool        // guarded by mu
	looked time.Time   // at the file; guarded by mu
	state  fs.FileInfo // of the file that value is from; nil: it was not there; guarded by mu
	value  T           // guarded by mu
	waited int         // looks at a file that is being written; guarded by mu
	faults error       // why value is not all of the file; guarded by mu
	unread error       // why the last look has not read the file; guarded by mu
}

const (
	lookEvery      = 500 * time.Millisecond
	writeTime      = 200 * time.Millisecond // after its last change a file may still be being written
	maxWaited      = 2
	maxWatchedFile = 16 << 20 // bytes
)

// get returns the result of parse for the file at path; an empty path is an empty file that never
// changes. It returns errors of the first reading only, and logs later ones: a file that was
// deleted then counts as empty, the value that parse returns with an error is used, and while the
// file cannot be read the value stays. A nil log is allowed.
func (w *watched[T]) get(path string, log *slog.Logger, parse func([]byte) (T, error)) (T, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if w.loaded && (path == "" || now.Sub(w.looked) < lookEvery) {
		return w.value, nil
	}
	w.looked = now
	content, state, err := w.read(path)
	switch {
	case errors.Is(err, errAsBefore):
		w.unread = nil
		return w.value, nil
	case errors.Is(err, errBeingWritten):
		w.looked = now.Add(writeTime - lookEvery)
		return w.value, nil
	case err != nil && w.loaded:
		w.unread = fmt.Errorf("%w; its earlier content stays in use", err)
		if log != nil {
			log.Warn("the file cannot be read; its earlier content stays in use", "err", err)
		}
		return w.value, nil
	case err != nil:
		return w.value, err
	}
	gone := path != "" && state == nil
	v, err := parse(content)
	w.faults, w.unread = nil, nil
	switch {
	case gone:
		w.faults = fmt.Errorf("%s is gone; its credentials are refused", path)
	case err != nil && path != "":
		w.faults = fmt.Errorf("%s has faults; the rest of it is in use\n%w", path, err)
		err = fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case err != nil && !w.loaded:
		return v, err
	case err != nil && log != nil:
		log.Warn("the file has faults; the rest of it is in use", "err", err)
	case gone && w.state != nil && log != nil:
		log.Warn("the file is gone; its credentials are refused", "file", path)
	}
	w.loaded, w.state, w.value = true, state, v
	return v, nil
}

// fault returns why the content of the file is not, or not all, in use, after a get.
func (w *watched[T]) fault() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unread != nil {
		return w.unread
	}
	return w.faults
}

var (
	errAsBefore     = errors.New("the file has not changed")
	errBeingWritten = errors.New("the file is being written")
)

// read reads the file. It is called with mu held.
func (w *watched[T]) read(path string) (content []byte, state fs.FileInfo, err error) {
	if path == "" {
		return nil, nil, nil
	}
	state, err = os.Stat(path) // before it is read: a change after that is seen next time
	switch {
	case w.loaded && errors.Is(err, fs.ErrNotExist):
		return nil, nil, nil
	case err != nil:
		return nil, nil, err
	case w.loaded && !state.Mode().IsRegular():
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	case w.state != nil && os.SameFile(state, w.state) && state.ModTime().Equal(w.state.ModTime()) && state.Size() == w.state.Size():
		return nil, state, errAsBefore
	case w.loaded && w.waited < maxWaited && time.Since(state.ModTime()).Abs() < writeTime:
		w.waited++ // an editor may have emptied it, or written a part
		return nil, state, errBeingWritten
	}
	w.waited = 0
	content, err = readFile(path)
	return content, state, err
}

func readFile(path string) ([]byte, error) {
	content, err := ownfile.ReadNow(path, maxWatchedFile)
	if err == nil && len(content) > maxWatchedFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxWatchedFile)
	}
	return content, err
}
