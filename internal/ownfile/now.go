package ownfile

import (
	"fmt"
	"io"
	"os"
	"time"
)

// pipeTime bounds the reading of a pipe.
const pipeTime = 2 * time.Second

// ReadNow reads a file that others may replace with a pipe. It reads at most most+1 bytes, so
// that a longer file can be recognized. It reads a pipe only if its end comes within 2 seconds,
// and returns an error otherwise.
func ReadNow(path string, most int64) ([]byte, error) {
	f, err := openNow(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_ = f.SetReadDeadline(time.Now().Add(pipeTime)) // a regular file has no deadline and needs none
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if os.IsTimeout(err) {
		return nil, fmt.Errorf("read %s: it is a pipe that was not closed within %v", path, pipeTime)
	}
	return content, err
}
