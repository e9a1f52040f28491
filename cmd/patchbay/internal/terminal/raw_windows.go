package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// prepareOutput makes a console process escape sequences, and not add a carriage return to a line
// feed.
func prepareOutput(out *os.File) (restore func()) {
	h := windows.Handle(out.Fd())
	var mode uint32
	if windows.GetConsoleMode(h, &mode) != nil {
		return func() {}
	}
	_ = windows.SetConsoleMode(h, mode|windows.ENABLE_PROCESSED_OUTPUT|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING|windows.DISABLE_NEWLINE_AUTO_RETURN)
	return func() { _ = windows.SetConsoleMode(h, mode) }
}

// withoutInterrupt makes ctrl-C a key that sends no signal.
func withoutInterrupt(in *os.File) {
	h := windows.Handle(in.Fd())
	var mode uint32
	if windows.GetConsoleMode(h, &mode) == nil {
		_ = windows.SetConsoleMode(h, mode&^windows.ENABLE_PROCESSED_INPUT)
	}
}
