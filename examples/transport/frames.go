package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// maxFrame bounds a frame in bytes. A longer frame is skipped and reported, and the
// connection goes on.
const maxFrame = 16 << 20

// frames is a jsonrpc.Conn. Each message follows its length in four bytes, big-endian.
type frames struct {
	conn   net.Conn
	in     *bufio.Reader
	write  sync.Mutex // serializes the frames of several writers
	closed atomic.Bool
}

func newFrames(c net.Conn) *frames { return &frames{conn: c, in: bufio.NewReader(c)} }

// Read implements jsonrpc.Conn.
func (f *frames) Read(buf []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(f.in, head[:]); err != nil {
		return nil, f.ended(err) // io.EOF between two frames is a clean end
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > maxFrame {
		start := make([]byte, 512) // it holds the id of the request to refuse
		if _, err := io.ReadFull(f.in, start); err != nil {
			return nil, f.ended(err)
		}
		if _, err := io.CopyN(io.Discard, f.in, n-int64(len(start))); err != nil {
			return nil, f.ended(err)
		}
		return nil, &jsonrpc.FrameTooLargeError{Limit: maxFrame, Head: start}
	}
	if int64(cap(buf)) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	if _, err := io.ReadFull(f.in, buf); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, f.ended(err)
	}
	return buf, nil
}

// Write implements jsonrpc.Conn.
func (f *frames) Write(frame []byte) error {
	out := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(frame)), uint32(len(frame)))
	f.write.Lock()
	defer f.write.Unlock()
	_, err := f.conn.Write(append(out, frame...))
	return f.ended(err)
}

// Close implements jsonrpc.Conn.
func (f *frames) Close() error {
	if f.closed.Swap(true) {
		return nil
	}
	return f.conn.Close()
}

// ended replaces errors that Close causes by jsonrpc.ErrClosed.
func (f *frames) ended(err error) error {
	if err != nil && f.closed.Load() {
		return jsonrpc.ErrClosed
	}
	return err
}
