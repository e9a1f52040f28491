package guard

import (
	"runtime"
	"syscall"
)

// parentDeath has the kernel send a signal to a child when its parent is gone.
func parentDeath(s syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: s} }

func lockThread() { runtime.LockOSThread() }
