//go:build unix && !linux

package stdio

import (
	"os"
	"syscall"
)

const diesWithParent = false

// alive reports whether a process runs.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Signal(syscall.Signal(0)) == nil
}
