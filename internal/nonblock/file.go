package nonblock

import (
	"io"
	"time"
)

// File is the part of an [os.File] that a connection needs.
type File interface {
	io.ReadWriter
	SetWriteDeadline(t time.Time) error
	Name() string
}
