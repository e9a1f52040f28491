//go:build !windows

package audit

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// syncFolder makes the name of a new file survive a power cut.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// lockFile locks an open file until it is closed, if it is free.
func lockFile(f *os.File) (free bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}
