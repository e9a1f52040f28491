package instructions

import (
	"bytes"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// memory is the content of files by their paths, as a file system.
type memory map[string][]byte

var (
	_ fs.ReadDirFS = memory(nil)
	_ fs.StatFS    = memory(nil)
)

func (m memory) paths() []string { return slices.Sorted(maps.Keys(m)) }

func (m memory) Open(name string) (fs.File, error) {
	is, err := m.Stat(name)
	if err != nil {
		return nil, err
	}
	return &reading{bytes.NewReader(m[name]), is}, nil
}

func (m memory) ReadDir(name string) ([]fs.DirEntry, error) {
	prefix := name + "/"
	if name == "." {
		prefix = ""
	}
	found := map[string]fs.DirEntry{}
	for p, data := range m {
		rest, ok := strings.CutPrefix(p, prefix)
		if !ok {
			continue
		}
		first, _, deeper := strings.Cut(rest, "/")
		found[first] = fs.FileInfoToDirEntry(info{name: first, size: int64(len(data)), dir: deeper})
	}
	if len(found) == 0 {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	var all []fs.DirEntry
	for _, first := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[first])
	}
	return all, nil
}

func (m memory) Stat(name string) (fs.FileInfo, error) {
	if data, ok := m[name]; ok {
		return info{name: path.Base(name), size: int64(len(data))}, nil
	}
	if _, err := m.ReadDir(name); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return info{name: path.Base(name), dir: true}, nil
}

// reading is an open file of a memory.
type reading struct {
	*bytes.Reader
	is fs.FileInfo
}

func (r *reading) Stat() (fs.FileInfo, error) { return r.is, nil }
func (r *reading) Close() error               { return nil }

// info describes a file or folder of a memory.
type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) IsDir() bool        { return i.dir }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) Sys() any           { return nil }

func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o500
	}
	return 0o400
}

// readUpTo reads a file, and of a longer one the first most bytes and one more.
func readUpTo(fsys fs.FS, name string, most int) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(max(0, most))+1))
}
