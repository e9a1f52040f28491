package engine

import (
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/trace"
)

// Tap takes the frames of a connection, as bytes before decoding or after encoding, and the events
// of the connection. A nil Tap takes none. Its fields are set before use.
type Tap struct {
	Transport string // as in [trace.Frame]
	Conn      string // as in [trace.Frame]; empty: the frames name it

	// Tell is called with each frame, whose bytes it must not keep or change. It must not block
	// for long. If nil, the frames are recorded elsewhere.
	Tell func(trace.Frame)

	// Watched is false while frames need not be made. Nil means that they always are.
	Watched *atomic.Bool

	Causes *Causes     // of the frames of a client; nil: they have none
	Opener trace.Cause // the cause of the start and the end of the connection
}

// On reports whether frames are wanted now.
func (t *Tap) On() bool { return t != nil && (t.Watched == nil || t.Watched.Load()) }

// Frame stamps a frame with the time and its cause, and passes it on. It is called where the bytes
// are read or written, so that the frames of a connection have the order of the wire.
func (t *Tap) Frame(f trace.Frame) {
	if !t.On() || t.Tell == nil {
		return
	}
	f.Time, f.Transport = time.Now(), t.Transport
	if t.Conn != "" {
		f.Conn = t.Conn
	}
	if t.Causes != nil && (f.Dir == trace.In || f.For == (trace.Cause{})) {
		f.For = t.Causes.of(&f)
	}
	if f.For == (trace.Cause{}) && f.HTTP == nil {
		switch f.Kind {
		case trace.KindStart, trace.KindExit, trace.KindOpen, trace.KindClose, trace.KindSession:
			f.For = t.Opener
		}
	}
	t.Tell(f)
}

// Unrecorded returns a tap for a part of the connection whose frames are recorded elsewhere: it
// registers causes only. It returns nil for nil.
func (t *Tap) Unrecorded() *Tap {
	if t == nil {
		return nil
	}
	return &Tap{Watched: t.Watched, Causes: t.Causes}
}

// Peek returns the cause of a message that is about to be sent or was received, without passing it
// on.
func (t *Tap) Peek(dir trace.Dir, msg []byte) trace.Cause {
	if t.Causes == nil {
		return trace.Cause{}
	}
	return t.Causes.of(&trace.Frame{Dir: dir, Msg: msg})
}
