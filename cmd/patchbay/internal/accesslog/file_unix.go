//go:build unix

package accesslog

import (
	"io/fs"
	"syscall"
)

// removed reports whether an open file has no name any more.
func removed(info fs.FileInfo) bool {
	at, ok := info.Sys().(*syscall.Stat_t)
	return ok && at.Nlink == 0
}
