package ownfile

import (
	"context"
	"io/fs"
	"os"
	"time"
)

// Open opens a file for reading. It waits for the writer of a pipe. When ctx ends, so do that wait
// and, with an error, reads of the pipe.
func Open(ctx context.Context, path string) (*os.File, error) {
	if info, err := os.Stat(path); err != nil || info.Mode()&fs.ModeNamedPipe == 0 {
		return os.Open(path)
	}
	type result struct {
		f   *os.File
		err error
	}
	opened := make(chan result, 1)
	go func() { // ends when the pipe has a writer, or with the program
		f, err := os.Open(path)
		opened <- result{f, err}
	}()
	select {
	case r := <-opened:
		if r.err == nil {
			context.AfterFunc(ctx, func() { _ = r.f.SetReadDeadline(time.Unix(1, 0)) })
		}
		return r.f, r.err
	case <-ctx.Done():
		return nil, &fs.PathError{Op: "open", Path: path, Err: context.Cause(ctx)}
	}
}
