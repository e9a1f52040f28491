package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// open opens a regular file for reading.
func (t target) open() (*os.File, fs.FileInfo, error) {
	f, info, err := t.place.openFile(t.place.dir, t.name())
	if err != nil {
		return nil, nil, t.fault(err)
	}
	return f, info, nil
}

// openFile opens a regular file in a folder of the place for reading. It does not block, on any
// kind of file.
func (p *place) openFile(dir *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(info)
	}
	if err == nil && !p.secrets && isPrivateKey(f) {
		err = errPrivateKey
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// openDir opens a folder. Links below it cannot lead out of it.
func (t target) openDir() (*os.Root, error) {
	dir, err := t.place.dir.OpenRoot(t.name())
	if err == nil {
		return dir, nil
	}
	if info, stat := t.place.dir.Stat(t.name()); stat == nil && !info.IsDir() {
		return nil, fmt.Errorf("%q is not a folder", t.shown)
	}
	return nil, t.fault(err)
}

// regular refuses files that are not regular.
func regular(info fs.FileInfo) error {
	switch kind(info.Mode()) {
	case "file":
		return nil
	case "folder":
		return errors.New("is a folder; list shows its entries")
	}
	return errors.New("is not a regular file")
}

// kind is the word for a type of file.
func kind(m fs.FileMode) string {
	switch {
	case m.IsRegular():
		return "file"
	case m.IsDir():
		return "folder"
	case m&fs.ModeSymlink != 0:
		return "symlink"
	}
	return "other"
}

// fault words an error of the file system with the path that the caller knows.
func (t target) fault(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%q does not exist; list and search show existing files", t.shown)
	}
	return fmt.Errorf("%q: %w", t.shown, bare(err))
}

// bare removes the absolute path, which callers need not know, from an error.
func bare(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// linkTarget is the target of a link as written, or "" if it cannot be read.
func (t target) linkTarget() string {
	to, err := t.place.dir.Readlink(t.name())
	if err != nil {
		return ""
	}
	return filepath.ToSlash(to)
}
