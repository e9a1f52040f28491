//go:build unix

package launch

import (
	"os"
	"syscall"
)

// ended reports whether a process does not exist.
func ended(p *os.Process) bool { return p.Signal(syscall.Signal(0)) != nil }
