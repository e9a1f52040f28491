//go:build unix && !linux

package guard

import "syscall"

// parentDeath does nothing where the kernel lacks such a signal; the pipe reports the end.
func parentDeath(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{} }

func lockThread() {}

// adoptOrphans does nothing: processes that leave the group are out of reach here.
func adoptOrphans() {}

// descendants returns none: processes in the group end with the group.
func descendants() []int { return nil }
