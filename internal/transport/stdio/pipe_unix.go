//go:build unix

package stdio

import (
	"os"
	"os/signal"
	"syscall"
)

// catchPipe makes a write to standard output whose reader is gone an error; the Go
// runtime would end the program instead.
func catchPipe() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
