package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops what a terminal holds and nobody has read. Without a terminal it does nothing.
func flushInput(tty *os.File) { _ = unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH) }
