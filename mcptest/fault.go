package mcptest

import (
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Damage is what a [Fault] does to a frame.
type Damage int

// The kinds of damage.
const (
	Drop      Damage = iota // the frame is lost
	Delay                   // the frame, and all after it, waits for Fault.Wait
	Duplicate               // the frame is sent twice
	Garbage                 // bytes that are not a message are sent before the frame
	Truncate                // only the first half of the frame is sent
	Close                   // the connection is closed instead
)

// A Fault damages one written frame, or every one.
type Fault struct {
	Frame int // number of the written frame, from 1; 0: each
	Do    Damage
	Wait  time.Duration // of Delay
	Bytes []byte        // of Garbage; nil: bytes that are not JSON
}

// Faults returns conn with faults in its writing direction. To damage the frames that a side
// reads, wrap the other end of its connection.
func Faults(conn jsonrpc.Conn, faults ...Fault) jsonrpc.Conn {
	return &faulty{Conn: conn, faults: faults}
}

type faulty struct {
	jsonrpc.Conn
	faults []Fault

	mu      sync.Mutex // held while writing: a delayed frame delays those after it
	written int        // guarded by mu
}

func (f *faulty) Write(frame []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.written++
	frames := [][]byte{frame}
	for _, fault := range f.faults {
		if fault.Frame != 0 && fault.Frame != f.written {
			continue
		}
		switch fault.Do {
		case Drop:
			return nil
		case Delay:
			time.Sleep(fault.Wait)
		case Duplicate:
			frames = append(frames, frame)
		case Garbage:
			junk := fault.Bytes
			if junk == nil {
				junk = []byte("\x00\xff no message {")
			}
			frames = append([][]byte{junk}, frames...)
		case Truncate:
			frames[len(frames)-1] = frame[:len(frame)/2]
		case Close:
			f.Conn.Close()
			return jsonrpc.ErrClosed
		}
	}
	for _, b := range frames {
		if err := f.Conn.Write(b); err != nil {
			return err
		}
	}
	return nil
}
