package ownfile

import (
	"fmt"
	"io"
	"os"
	"time"
)

// pipeTime bounds the wait for what comes through a pipe.
const pipeTime = 2 * time.Second

// ReadNow reads a file that anybody may put anything in the place of, at most most bytes and one
// more, by which a longer one can be told. It does not wait for a file that is none: of a pipe it
// returns what comes within 2 seconds, if its end comes too, and an error else.
func ReadNow(path string, most int64) ([]byte, error) {
	f, err := openNow(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_ = f.SetReadDeadline(time.Now().Add(pipeTime)) // a file on a disk has none, and needs none
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if os.IsTimeout(err) {
		return nil, fmt.Errorf("read %s: it is a pipe, and nobody has written its end in %v", path, pipeTime)
	}
	return content, err
}
