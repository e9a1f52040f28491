package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// Sink opens a file for writing, and creates it with a mode. The flag is [os.O_APPEND] or
// [os.O_TRUNC]. A pipe without a reader is an error, not a wait for one. So is wire, the stream of
// a server over stdio; nil: there is none. A file that is standard output or standard error, as
// /dev/stdout, is continued where that stands, also with os.O_TRUNC.
func Sink(path string, flag int, mode fs.FileMode, wire any) (*os.File, error) {
	there, statErr := os.Stat(path)
	if out, ok := wire.(*os.File); ok && statErr == nil && path != os.DevNull {
		if own, err := out.Stat(); err == nil && os.SameFile(there, own) {
			return nil, fmt.Errorf("%s is standard output, which belongs to the client over stdio", path)
		}
	}
	for _, std := range []*os.File{os.Stdout, os.Stderr} {
		if own, err := std.Stat(); statErr == nil && err == nil && own.Mode().IsRegular() && os.SameFile(there, own) {
			return duplicate(std)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|flag|nonblock, mode)
	if errors.Is(err, syscall.ENXIO) && statErr == nil && there.Mode()&fs.ModeNamedPipe != 0 {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("nobody reads this pipe; start its reader first")}
	}
	return f, err
}
