package stdio

import (
	"bytes"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/trace"
)

// maxLine is the length in bytes from which a line of standard error is reported in pieces.
const maxLine = 64 << 10

// lineTap reports its input line by line.
type lineTap struct {
	tap *engine.Tap

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

// flush reports the last line if it has no line end.
func (l *lineTap) flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tell(l.buf)
	l.buf = nil
}

func (l *lineTap) tell(line []byte) {
	if len(line) > 0 {
		l.tap.Frame(trace.Frame{Kind: trace.KindStderr, Dir: trace.In, Raw: line})
	}
}
