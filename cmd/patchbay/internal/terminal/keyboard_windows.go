package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// flushInput drops what a console holds and nobody has read. Without a console it does nothing.
func flushInput(tty *os.File) { _ = windows.FlushConsoleInputBuffer(windows.Handle(tty.Fd())) }
