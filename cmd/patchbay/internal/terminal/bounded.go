package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// leaveTime is how long a program that ends waits for the reader of its standard error.
const leaveTime = time.Second

var errUnread = errors.New("nobody reads the stream")

// bounded is a stream that cannot delay the end of the program.
type bounded struct {
	w       io.Writer
	leaving context.Context
	stuck   atomic.Bool
}

// Bounded returns a writer to w for a program that must be able to end while nobody reads w. From the
// end of leaving, a write that takes longer than a second fails, and so do all later ones.
func Bounded(leaving context.Context, w io.Writer) io.Writer { return &bounded{w: w, leaving: leaving} }

func (b *bounded) Write(p []byte) (int, error) {
	if b.stuck.Load() {
		return 0, errUnread
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	own := bytes.Clone(p)
	go func() { // ends with the program at the latest
		n, err := b.w.Write(own)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return r.n, r.err
	case <-b.leaving.Done():
	}
	select {
	case r := <-done:
		return r.n, r.err
	case <-time.After(leaveTime):
		b.stuck.Store(true)
		return 0, errUnread
	}
}
