//go:build unix && !linux

package guard

import "syscall"

// parentDeath does nothing where the kernel has no such signal; the pipe tells.
func parentDeath(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func lockThread() {}

// adoptOrphans does nothing: what leaves the group is out of reach here.
func adoptOrphans() {}

// descendants finds nobody: those that are in the group are ended with it.
func descendants() []int { return nil }
