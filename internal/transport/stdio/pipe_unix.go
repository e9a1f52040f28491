//go:build unix

package stdio

import (
	"os"
	"os/signal"
	"syscall"
)

// catchPipe makes a write to a standard output without a reader return an error; by default the
// Go runtime ends the program.
func catchPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
