package stdio

import (
	"bytes"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/trace"
)

// maxLine is when a line of standard error is told in pieces, in bytes.
const maxLine = 64 << 10

// lineTap tells what is written to it line by line.
type lineTap struct {
	tap engine.Tap

	mu  sync.Mutex
	buf []byte // a line without its end; guarded by mu
}

func (l *lineTap) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.buf = append(l.buf, p...)
	rest := l.buf
	for {
		end := bytes.IndexByte(rest, '\n')
		switch {
		case end >= 0:
			l.tell(bytes.TrimSuffix(rest[:end], []byte{'\r'}))
			rest = rest[end+1:]
		case len(rest) >= maxLine:
			l.tell(rest[:maxLine])
			rest = rest[maxLine:]
		default:
			l.buf = append(l.buf[:0], rest...)
			return len(p), nil
		}
	}
}

// flush tells what is left without an end of line.
func (l *lineTap) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell(l.buf)
	l.buf = nil
}

func (l *lineTap) tell(line []byte) {
	if len(line) > 0 {
		l.tap(trace.Frame{Kind: trace.KindStderr, Dir: trace.In, Raw: line})
	}
}
