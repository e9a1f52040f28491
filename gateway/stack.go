package gateway

// deepen grows the stack of a goroutine to what a call through a gateway needs. The runtime doubles a stack that is full, and adjusts
// all frames that are on it: few here, and about sixty where a call is deepest. A new goroutine, or one whose stack the collector has
// halved while it waited, spent a tenth to a quarter of its call on that.
//
//go:noinline
func deepen() {
	var room [16 << 10]byte
	touch(&room)
}

// touch keeps the room on the stack.
//
//go:noinline
func touch(room *[16 << 10]byte) { room[0] = 1 }
