package jsonrpc

import (
	"io"
	"time"
)

// file is the part of an [os.File] that a deadlineFile needs. Connections of package net, whose owners set the
// deadlines, have no name.
type file interface {
	io.Writer
	SetWriteDeadline(t time.Time) error
	Name() string
}

// deadlineFile is a pipe, or another file that supports deadlines, for one writer at a time.
// Setting a deadline costs about as much as a short write, so one deadline serves several writes.
type deadlineFile struct {
	file
	until time.Time // the deadline, zero for none
}

// writeWithin writes p and gives up after between d/2 and d: then the error is
// os.ErrDeadlineExceeded, and n bytes are written.
func (f *deadlineFile) writeWithin(p []byte, d time.Duration) (n int, err error) {
	if now := time.Now(); f.until.Sub(now) < d/2 {
		f.until = now.Add(d)
		if err := f.SetWriteDeadline(f.until); err != nil {
			return 0, err
		}
	}
	return f.file.Write(p)
}

// Write writes p without a deadline.
func (f *deadlineFile) Write(p []byte) (n int, err error) {
	if !f.until.IsZero() {
		f.until = time.Time{}
		if err := f.SetWriteDeadline(f.until); err != nil {
			return 0, err
		}
	}
	return f.file.Write(p)
}
