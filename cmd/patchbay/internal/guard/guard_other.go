//go:build unix && !linux

package guard

import "syscall"

// parentDeath does nothing where the kernel has no such signal; the pipe tells.
func parentDeath(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func lockThread() {}
