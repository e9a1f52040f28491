//go:build linux && !race

package nonblock

import (
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// Conn returns c with other calls for Read and Write.
func Conn(c *net.TCPConn) net.Conn {
	raw, err := c.SyscallConn()
	if err != nil {
		return c
	}
	return &conn{TCPConn: c, in: newReader(raw), out: newWriter(raw)}
}

type conn struct {
	*net.TCPConn
	in, out *op
}

// Read implements [net.Conn].
func (c *conn) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return c.TCPConn.Read(b)
	}
	n, no, err := c.in.read(b)
	switch {
	case err != nil:
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			op.Op = "read" // instead of "raw-read"
		}
		return 0, err
	case no != 0:
		return 0, &net.OpError{Op: "read", Net: c.LocalAddr().Network(), Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: os.NewSyscallError("read", no)}
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write implements [net.Conn].
func (c *conn) Write(b []byte) (int, error) { return c.out.write(b, c.TCPConn.Write) }

// TryWrite writes what there is room for, and returns how much that was. It does not wait, and says nothing about errors, which
// the next Write has. It writes nothing if c is not of Conn, and on other systems.
func TryWrite(c net.Conn, b []byte) (n int) {
	if own, ok := c.(*conn); ok {
		n, _ = own.out.write(b, func([]byte) (int, error) { return 0, nil })
	}
	return n
}

// file is one end of a pipe.
type file struct {
	*os.File
	in, out *op
}

// Pipe returns an end of a pipe with other calls for Read and Write.
func Pipe(f *os.File) File {
	raw, err := f.SyscallConn()
	if err != nil || f.SetDeadline(time.Time{}) != nil { // a file that takes no deadline blocks
		return f
	}
	return &file{File: f, in: newReader(raw), out: newWriter(raw)}
}

// Read implements [io.Reader].
func (f *file) Read(b []byte) (int, error) {
	if len(b) > 0 {
		if n, _, err := f.in.read(b); n > 0 && err == nil {
			return n, nil
		}
	}
	return f.File.Read(b) // which says what is wrong
}

// Write implements [io.Writer].
func (f *file) Write(b []byte) (int, error) { return f.out.write(b, f.File.Write) }
