package nonblock

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/wine"
)

// long is more than the buffers of a socket or a pipe hold.
var long = bytes.Repeat([]byte("0123456789abcdef"), 1<<19)

// connected returns both ends of a connection, the first one from Conn.
func connected(t *testing.T) (near net.Conn, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	dialed, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	near, far = Conn(accepted.(*net.TCPConn)), dialed.(*net.TCPConn)
	t.Cleanup(func() { near.Close(); far.Close() })
	return near, far
}

// passes sends long from one end to the other, and its end.
func passes(t *testing.T, from io.WriteCloser, to io.Reader) {
	t.Helper()
	sent := make(chan error, 1)
	go func() {
		n, err := from.Write(long)
		if err == nil && n != len(long) {
			err = io.ErrShortWrite
		}
		sent <- errors.Join(err, from.Close())
	}()
	got, err := io.ReadAll(to)
	if err != nil || !bytes.Equal(got, long) {
		t.Errorf("read %d bytes, %v; want the %d that were sent", len(got), err, len(long))
	}
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestAllBytesPass(t *testing.T) {
	t.Run("to a connection", func(t *testing.T) {
		near, far := connected(t)
		passes(t, far, near)
	})
	t.Run("from a connection", func(t *testing.T) {
		near, far := connected(t)
		passes(t, near, far)
	})
	t.Run("pipe", func(t *testing.T) {
		r, w := piped(t)
		passes(t, w, r)
	})
}

// piped returns both ends of a pipe, from Pipe.
func piped(t *testing.T) (r, w pipeEnd) {
	t.Helper()
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r, w = pipeEnd{Pipe(out), out}, pipeEnd{Pipe(in), in}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

type pipeEnd struct {
	File
	file *os.File
}

func (e pipeEnd) Close() error { return e.file.Close() }

// A Read that waits ends by a deadline and by Close, and the errors are those of package net.
func TestReadEnds(t *testing.T) {
	read := func(c net.Conn) chan error {
		err := make(chan error, 1)
		go func() {
			_, e := c.Read(make([]byte, 1))
			err <- e
		}()
		return err
	}
	check := func(t *testing.T, got, want error) {
		t.Helper()
		var op *net.OpError
		if !errors.Is(got, want) || !errors.As(got, &op) || op.Op != "read" || op.Timeout() != (want == os.ErrDeadlineExceeded) {
			t.Errorf("Read: %#v, want %v of a read", got, want)
		}
	}
	t.Run("deadline", func(t *testing.T) {
		near, far := connected(t)
		err := read(near)
		near.SetReadDeadline(time.Unix(1, 0))
		check(t, <-err, os.ErrDeadlineExceeded)
		near.SetReadDeadline(time.Time{})
		far.Write([]byte("x"))
		if err := <-read(near); err != nil {
			t.Errorf("Read after a deadline: %v", err)
		}
	})
	t.Run("close", func(t *testing.T) {
		near, _ := connected(t)
		err := read(near)
		near.Close()
		check(t, <-err, net.ErrClosed)
	})
	t.Run("reset", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			t.Skip("Windows has another number for the error")
		}
		near, far := connected(t)
		far.SetLinger(0)
		far.Close()
		check(t, <-read(near), syscall.ECONNRESET)
	})
	t.Run("pipe", func(t *testing.T) {
		wine.Skip(t, "a Read of a pipe does not always end")
		r, _ := piped(t)
		err := make(chan error, 1)
		go func() {
			_, e := r.Read(make([]byte, 1))
			err <- e
		}()
		r.Close()
		if err := <-err; !errors.Is(err, os.ErrClosed) {
			t.Errorf("Read: %v, want %v", err, os.ErrClosed)
		}
	})
}

// A Write of a full pipe ends by a deadline, and says how much it has written.
func TestWriteEnds(t *testing.T) {
	r, w := piped(t)
	if err := w.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Skip(err) // pipes of Windows have no deadlines
	}
	n, err := w.Write(long)
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n == len(long) {
		t.Errorf("Write: %d of %d bytes, %v", n, len(long), err)
	}
	w.Close()
	if got, err := io.ReadAll(r); err != nil || len(got) != n {
		t.Errorf("read %d bytes, %v; Write says %d", len(got), err, n)
	}
	r.Close()
	if n, err := w.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrClosed) {
		t.Errorf("Write after Close: %d, %v", n, err)
	}
}

// A reader that is gone is an error of Write.
func TestNobodyReads(t *testing.T) {
	r, w := piped(t)
	r.Close()
	if n, err := w.Write([]byte("x")); n != 0 || err == nil {
		t.Errorf("Write: %d, %v", n, err)
	}
}

// Dial passes on errors and connections that are not of TCP, and the others work.
func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Dial(nil)(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	passes(t, c, far)
	far.Close()
	l.Close()
	if c, err := Dial(nil)(t.Context(), "tcp", l.Addr().String()); err == nil || c != nil {
		t.Errorf("%v, %v without a listener", c, err)
	}
	near, _ := net.Pipe()
	other := func(context.Context, string, string) (net.Conn, error) { return near, nil }
	if c, err := Dial(other)(t.Context(), "", ""); c != near || err != nil {
		t.Errorf("%v, %v; want the connection in memory", c, err)
	}
}

// A file that may block stays as it is.
func TestRegularFile(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Pipe(f) != File(f) {
		t.Error("a regular file is taken for a pipe")
	}
}

func BenchmarkPipe(b *testing.B) {
	out, in, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer out.Close()
	defer in.Close()
	for name, end := range map[string][2]File{"os": {out, in}, "nonblock": {Pipe(out), Pipe(in)}} {
		b.Run(name, func(b *testing.B) {
			buf := make([]byte, 300)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := end[1].Write(buf); err != nil {
					b.Fatal(err)
				}
				if _, err := end[0].Read(buf); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
