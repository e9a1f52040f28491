//go:build unix && !linux

package stdio

import "syscall"

// Other Unix kernels have no parent-death signal; there a child whose parent was killed ends at
// the end of its input.
func dieWithParent(*syscall.SysProcAttr) {}
