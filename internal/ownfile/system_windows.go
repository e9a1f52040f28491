package ownfile

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// tryLock takes the lock of an open file, if it is free, together with others if it is shared. Closing
// the file releases it.
func tryLock(f *os.File, shared bool) (bool, error) {
	how := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		how |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// nonblock is not needed: folders do not contain pipes.
const nonblock = 0

// A file that another process is reading or replacing, such as a virus scanner, is available
// again soon.
const busyTries = 50

func busy(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

// openNow opens a file for reading. Folders do not contain pipes on Windows.
func openNow(path string) (f *os.File, err error) {
	for range busyTries {
		if f, err = os.Open(path); !busy(err) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return f, err
}

func rename(from, to string) (err error) {
	for range busyTries {
		if err = os.Rename(from, to); !busy(err) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return err
}

// syncDir does nothing: Windows cannot sync folders.
func syncDir(string) error { return nil }

// duplicate returns another handle of an open file, with the same offset.
func duplicate(f *os.File) (*os.File, error) {
	var h windows.Handle
	self := windows.CurrentProcess()
	if err := windows.DuplicateHandle(self, windows.Handle(f.Fd()), self, &h, 0, false, windows.DUPLICATE_SAME_ACCESS); err != nil {
		return nil, &os.PathError{Op: "dup", Path: f.Name(), Err: err}
	}
	return os.NewFile(uintptr(h), f.Name()), nil
}
