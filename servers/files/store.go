package files

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// A file is stored in two steps: written beside its destination under a temporary
// name, and renamed when it is on the disk.

// storing holds the options of store.
type storing struct {
	parents   bool        // create missing folders
	overwrite bool        // it may replace a file
	read      fs.FileInfo // the file that was read, if it must be unchanged
	mode      fs.FileMode // of a new file; 0: the system's default
}

// change waits for the turn to change files, and holds it until release is called.
func (s *server) change(ctx context.Context) (release func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// store creates or replaces a file and reports whether it replaced one. The caller
// holds the turn.
func (t target) store(ctx context.Context, data io.Reader, how storing) (replaced bool, err error) {
	folder, err := t.parent(how.parents)
	if err != nil {
		return false, err
	}
	defer folder.Close()
	base := filepath.FromSlash(path.Base(t.rel))
	old, err := folder.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return false, t.fault(err)
	}
	if err := t.mayStore(old, how); err != nil {
		return false, err
	}
	mode := fs.FileMode(0o666)
	if old != nil || how.mode != 0 {
		mode = 0o600 // until it is whole
	}
	temp := ".patchbay-" + rand.Text() + ".tmp"
	f, err := folder.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return false, t.fault(err)
	}
	kept := false
	defer func() {
		if !kept {
			f.Close()
			folder.Remove(temp)
		}
	}()
	if _, err := io.Copy(f, &stoppable{ctx, data}); err != nil {
		return false, t.fault(err)
	}
	switch {
	case old != nil:
		err = f.Chmod(old.Mode().Perm())
	case how.mode != 0:
		err = f.Chmod(how.mode.Perm())
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return false, t.fault(err)
	}
	if old == nil {
		err = linkNew(folder, temp, base)
		if errors.Is(err, fs.ErrExist) {
			return false, t.exists()
		}
	} else {
		err = folder.Rename(temp, base)
	}
	if err != nil {
		return false, t.fault(err)
	}
	kept = true
	syncFolder(folder)
	return old != nil, nil
}

// mayStore returns an error if a file must not replace old, which may be nil.
func (t target) mayStore(old fs.FileInfo, how storing) error {
	if old == nil {
		if how.read != nil {
			return fmt.Errorf("%q was removed meanwhile; nothing was written", t.shown)
		}
		return nil
	}
	switch kind(old.Mode()) {
	case "file":
	case "folder":
		return fmt.Errorf("%q is a folder", t.shown)
	case "symlink":
		return fmt.Errorf("%q is a link to %q; write to that instead", t.shown, text.Short(t.linkTarget()))
	default:
		return fmt.Errorf("%q is not a regular file", t.shown)
	}
	switch {
	case !how.overwrite:
		return t.exists()
	case old.Mode().Perm()&0o222 == 0:
		return fmt.Errorf("%q is write-protected", t.shown)
	case how.read != nil && !unchanged(how.read, old):
		return fmt.Errorf("%q was changed by another program meanwhile; nothing was written, read it again", t.shown)
	}
	return nil
}

func (t target) exists() error {
	return fmt.Errorf("%q exists; edit it, or set overwrite to replace it", t.shown)
}

// unchanged reports whether a file has the same state as before.
func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// parent opens the folder of the target, and creates it if that is wanted.
func (t target) parent(create bool) (*os.Root, error) {
	if t.rel == "." {
		return nil, fmt.Errorf("%q is a root, not a file in it", t.shown)
	}
	name := filepath.FromSlash(path.Dir(t.rel))
	if create && name != "." {
		if err := t.place.dir.MkdirAll(name, 0o777); err != nil {
			return nil, t.fault(err)
		}
	}
	dir, err := t.place.dir.OpenRoot(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the folder of %q does not exist; set parents to create it", t.shown)
	}
	if err != nil {
		return nil, t.fault(err)
	}
	return dir, nil
}

// linkNew renames a file without replacing another. The old name remains if it cannot
// be removed.
func linkNew(dir *os.Root, old, name string) error {
	err := dir.Link(old, name)
	if err == nil {
		dir.Remove(old)
		return nil
	}
	if errors.Is(err, fs.ErrExist) {
		return err
	}
	// The file system does not support links. A file that another program creates at this
	// moment is lost.
	if _, err := dir.Lstat(name); err == nil {
		return fs.ErrExist
	}
	return dir.Rename(old, name)
}

// syncFolder makes a rename durable. Not every system supports it; the file is whole
// in any case.
func syncFolder(dir *os.Root) {
	if f, err := dir.Open("."); err == nil {
		f.Sync()
		f.Close()
	}
}

// stoppable is a reader that ends with a context.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s *stoppable) Read(p []byte) (int, error) {
	if s.ctx.Err() != nil {
		return 0, context.Cause(s.ctx)
	}
	return s.r.Read(p)
}
