package ownfile

import "path/filepath"

// RealPath is the one absolute path of a file or folder, which need not be there, without symbolic
// links.
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

// InRealFolder is the one absolute path of a file by the name that it has in its folder: symbolic links
// on the way to the folder are resolved, and one that the file itself is is kept. Relative paths in a
// file that is read by that name are relative to that folder.
func InRealFolder(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return filepath.Join(RealPath(filepath.Dir(path)), filepath.Base(path))
}
