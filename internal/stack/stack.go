// Package stack keeps deep calls from growing their stacks step by step.
package stack

// Grow grows the stack of this goroutine to what a call through a gateway needs: 32 KiB. The runtime doubles a stack that is full, and
// adjusts all frames that are on it: few where Grow belongs, and about sixty where a call is deepest. A new goroutine, or one whose stack
// the collector has halved while it waited, otherwise spends a tenth to a quarter of its call on that.
//
//go:noinline
func Grow() {
	if never {
		var room [16 << 10]byte // has its place on the stack in any case, and is zeroed only here
		touch(&room)
	}
}

var never bool

// touch keeps the room on the stack.
//
//go:noinline
func touch(room *[16 << 10]byte) { room[0] = 1 }
