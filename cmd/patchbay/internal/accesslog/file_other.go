//go:build !unix

package accesslog

import "io/fs"

// nonblock is not needed: named pipes are not in the file system.
const nonblock = 0

// removed reports whether an open file has no name any more. These systems do not remove open files.
func removed(fs.FileInfo) bool { return false }
