package ownfile

import "path/filepath"

// RealPath returns the absolute path, without symbolic links, of a file or folder, which need not
// exist.
func RealPath(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	for dir, rest := path, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
	}
}

// InRealFolder returns the absolute path of a file with the symbolic links in its folder
// resolved. If the file itself is a symbolic link, that is kept, because relative paths in the
// file are relative to the folder of the link.
func InRealFolder(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return filepath.Join(RealPath(filepath.Dir(path)), filepath.Base(path))
}
