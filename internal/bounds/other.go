//go:build !linux

package bounds

import "os/exec"

// Supported reports whether commands can be limited on this system.
const Supported = false

// Memory returns 0: it is unknown here.
func Memory(map[int]bool) int64 { return 0 }

func measure(int) (memory int64, processes int) { return 0, 0 }

type group struct{}

func newGroup(Limits) *group { return nil }

func (*group) prepare(*exec.Cmd) {}

func (*group) exceeded(Limits) string { return "" }

func (*group) remove() {}
