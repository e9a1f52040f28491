//go:build unix && !linux

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput drops unread input of a terminal. For another file it does nothing.
func flushInput(tty *os.File) {
	_ = unix.IoctlSetPointerInt(int(tty.Fd()), unix.TIOCFLUSH, unix.TCIFLUSH)
}

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)
