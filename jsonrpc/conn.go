package jsonrpc

// Conn is one two-way wire that carries whole frames, each one message or one
// batch.
//
// Read is called by one goroutine, Write by many at once. Close may be called
// at any time and more than once; it unblocks both, and they return
// [ErrClosed] from then on.
//
// A Conn may also have a method
//
//	WriteContext(ctx context.Context, frame []byte) (sent bool, err error)
//
// which is Write for a caller who waits no longer than ctx lasts. If ctx ends first the
// error is its cause, and sent tells whether the frame goes out all the same, before the
// frames of later writes. The connections of this package have it.
type Conn interface {
	// Read appends the next frame to buf[:0] and returns it. The error is
	// io.EOF at the orderly end, and a [*FrameTooLargeError] for a frame over
	// the bound, which is skipped: the next Read goes on after it. A frame that only
	// grows is the end, with an [*EndlessFrameError].
	Read(buf []byte) (frame []byte, err error)
	// Write sends one frame; frames of several writers do not mix. When it
	// returns nil the frame was handed on, not more. It keeps no reference to
	// frame.
	Write(frame []byte) error
	// Close ends the connection without waiting for the peer.
	Close() error
}
