package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// root is one of the server's folders.
type root struct {
	path string // absolute, as given
	real string // absolute, with links resolved

	mu     sync.Mutex
	dir    *os.Root // guarded by mu
	closed bool     // guarded by mu
}

// Check returns an error if a folder could not be opened: it does not exist, or is a
// file.
func (o Options) Check() error {
	for _, dir := range orHere(o.Roots) {
		if err := checkRoot(dir); err != nil {
			return err
		}
	}
	return nil
}

func checkRoot(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("folder %q does not exist; create it, or name another", dir)
	case err != nil:
		return fmt.Errorf("folder %q: %w", dir, err)
	case !info.IsDir():
		return fmt.Errorf("%q is not a folder; name the folder that it is in", dir)
	}
	return nil
}

func orHere(dirs []string) []string {
	if len(dirs) == 0 {
		return []string{"."}
	}
	return dirs
}

// openRoots opens the folders. Of nested ones it opens the outermost.
func openRoots(dirs []string) (_ []*root, err error) {
	var roots []*root
	defer func() {
		if err != nil {
			closeRoots(roots)
		}
	}()
	for _, dir := range orHere(dirs) {
		if err := checkRoot(dir); err != nil {
			return nil, err
		}
		r := &root{}
		if r.path, err = filepath.Abs(dir); err != nil {
			return nil, fmt.Errorf("folder %q: %w", dir, err)
		}
		if r.real, err = filepath.EvalSymlinks(r.path); err != nil {
			return nil, fmt.Errorf("folder %q: %w", dir, err)
		}
		within := func(inner, outer *root) bool {
			_, ok := host.below(filepath.ToSlash(outer.real), filepath.ToSlash(inner.real))
			return ok
		}
		if slices.ContainsFunc(roots, func(other *root) bool { return within(r, other) }) {
			continue
		}
		roots = slices.DeleteFunc(roots, func(other *root) bool {
			if !within(other, r) {
				return false
			}
			other.close()
			return true
		})
		if r.dir, err = os.OpenRoot(r.path); err != nil {
			return nil, fmt.Errorf("folder %q: %w", dir, err)
		}
		roots = append(roots, r)
	}
	return roots, nil
}

func closeRoots(roots []*root) error {
	var errs []error
	for _, r := range roots {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}

func (r *root) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.dir == nil {
		return nil
	}
	return r.dir.Close()
}

// open returns the folder. It reads the file system with mu held, which other callers
// would wait for anyway. If the folder was removed and created again, it returns the
// new one; accesses in progress in the old one fail.
func (r *root) open() *os.Root {
	r.mu.Lock()
	defer r.mu.Unlock()
	is, err := os.Stat(r.path)
	if err != nil || r.closed {
		return r.dir // calls report the error
	}
	if was, err := r.dir.Stat("."); err == nil && os.SameFile(was, is) {
		return r.dir
	}
	// It must still be a folder, because a link in its place may lead anywhere.
	if real, err := filepath.EvalSymlinks(r.path); err != nil || real != r.real {
		return r.dir
	}
	again, err := os.OpenRoot(r.real)
	if err != nil {
		return r.dir
	}
	r.dir.Close()
	r.dir = again
	return again
}
