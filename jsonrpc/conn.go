package jsonrpc

// Conn is a two-way connection that carries whole frames. A frame is one message or one batch.
//
// Read is called by one goroutine, Write by many at once. Close may be called
// at any time and more than once; it unblocks both, and they return
// [ErrClosed] from then on.
//
// A Conn may also have a method
//
//	WriteContext(ctx context.Context, frame []byte) (sent bool, err error)
//
// which is Write bounded by ctx. If ctx ends first, the error is its cause, and sent reports
// whether the frame is still sent, before the frames of later writes. The connections of this
// package have it.
type Conn interface {
	// Read appends the next frame to buf[:0] and returns it. The error is io.EOF at the orderly
	// end, and a [*FrameTooLargeError] for a frame over the bound, which is skipped: the next
	// Read goes on after it. A frame that does not end ends the connection with an
	// [*EndlessFrameError].
	Read(buf []byte) (frame []byte, err error)
	// Write sends one frame; frames of several writers do not mix. A nil error means that the
	// frame was handed on, not that the peer has read it. It keeps no reference to frame.
	Write(frame []byte) error
	// Close ends the connection without waiting for the peer.
	Close() error
}

// NamedConn is a [Conn] with a name for its transport, which recordings of its messages show. A Conn
// without a name is recorded as "custom".
type NamedConn interface {
	Conn

	// Transport returns a short name in lower case, such as "memory".
	Transport() string
}
