//go:build !windows

package ownfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock of an open file, if it is free, together with others if it is shared. Closing
// the file releases it.
func tryLock(f *os.File, shared bool) (bool, error) {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return false, nil
	}
	return err == nil, err
}

func rename(from, to string) error { return os.Rename(from, to) }

// syncDir makes a rename survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// nonblock keeps opening a pipe from waiting for the other side.
const nonblock = unix.O_NONBLOCK

// openNow opens a file for reading without waiting for a writer of a pipe.
func openNow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|nonblock, 0)
}

// duplicate returns another descriptor of an open file, with the same offset.
func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "dup", Path: f.Name(), Err: err}
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
