package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops unread input of a terminal. For another file it does nothing.
func flushInput(tty *os.File) { _ = unix.IoctlSetInt(int(tty.Fd()), unix.TCFLSH, unix.TCIFLUSH) }

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)
