package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// flushInput drops unread input of a console. For another file it does nothing.
func flushInput(tty *os.File) { _ = windows.FlushConsoleInputBuffer(windows.Handle(tty.Fd())) }
