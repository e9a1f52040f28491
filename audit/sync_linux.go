package audit

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync waits until the content of a file is on disk.
func datasync(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
