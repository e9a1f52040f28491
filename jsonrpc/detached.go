package jsonrpc

import (
	"io"
	"sync"
)

// A blocked read of standard input cannot be interrupted: closing the file
// does not end it. detachedReader and detachedWriter do the blocking call in a
// goroutine of their own, which the caller can walk away from. The goroutine
// ends when done is closed and the call it is in has returned.

type ioResult struct {
	p   []byte
	err error
}

// detachedReader reads from r for one caller. It never reads ahead.
type detachedReader struct {
	r    io.Reader
	done <-chan struct{}

	start sync.Once
	want  chan struct{} // one for each read to do
	got   chan ioResult // capacity 1, so that the goroutine can always end
	rest  ioResult      // what Read has not returned yet
}

func (d *detachedReader) Read(p []byte) (int, error) {
	d.start.Do(func() {
		d.want, d.got = make(chan struct{}), make(chan ioResult, 1)
		go d.loop()
	})
	if len(d.rest.p) == 0 && d.rest.err == nil {
		select {
		case d.want <- struct{}{}:
		case <-d.done:
			return 0, ErrClosed
		}
		select {
		case d.rest = <-d.got:
		case <-d.done:
			return 0, ErrClosed
		}
	}
	n := copy(p, d.rest.p)
	d.rest.p = d.rest.p[n:]
	if len(d.rest.p) > 0 {
		return n, nil
	}
	err := d.rest.err
	d.rest = ioResult{}
	return n, err
}

func (d *detachedReader) loop() {
	buf := make([]byte, readBuffer)
	for {
		select {
		case <-d.want:
		case <-d.done:
			return
		}
		n, err := d.r.Read(buf)
		d.got <- ioResult{buf[:n], err}
	}
}

// detachedWriter writes to w for one caller at a time. After done is closed
// the bytes of the last Write may still be in use.
type detachedWriter struct {
	w    io.Writer
	done <-chan struct{}

	start sync.Once
	todo  chan []byte
	got   chan error // capacity 1, so that the goroutine can always end
}

func (d *detachedWriter) Write(p []byte) (int, error) {
	d.start.Do(func() {
		d.todo, d.got = make(chan []byte), make(chan error, 1)
		go d.loop()
	})
	select {
	case d.todo <- p:
	case <-d.done:
		return 0, ErrClosed
	}
	select {
	case err := <-d.got:
		if err != nil {
			return 0, err
		}
		return len(p), nil
	case <-d.done:
		return 0, ErrClosed
	}
}

func (d *detachedWriter) loop() {
	for {
		select {
		case p := <-d.todo:
			n, err := d.w.Write(p)
			if err == nil && n < len(p) {
				err = io.ErrShortWrite
			}
			d.got <- err
		case <-d.done:
			return
		}
	}
}
