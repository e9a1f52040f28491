package web

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// EventReader reads a stream of server-sent events (WHATWG HTML, 9.2). Lines end
// with LF, CR or CRLF; comments and unknown fields are ignored; an event that the
// stream does not end with a blank line is dropped. It is used by one goroutine.
type EventReader struct {
	r   io.Reader
	max int // bytes of one line, and of the data of one event

	LastID string        // of the last event that had one
	Retry  time.Duration // requested by the server; negative: none

	chunk      []byte            // read and not yet parsed
	buf        *[chunkBytes]byte // pooled buffer for chunks; nil before the first
	line       []byte            // the beginning of a line that goes on in the next chunk
	data       []byte
	afterCR    bool // a LF that comes next belongs to the previous line
	begun      bool // a line was read: no byte order mark any more
	id         string
	hasID      bool
	hasData    bool
	name       string
	skip       bool // the rest of an event over the limit comes first
	skipped    int  // bytes of it
	cut        bool // the rest of a line over the limit comes first
	unreadable error
}

// ErrEventTooLarge reports a line, or the data of an event, over the limit.
var ErrEventTooLarge = errors.New("an event is over the limit")

// maxRetry bounds the retry time of a server.
const maxRetry = time.Hour

const chunkBytes = 4 << 10

var chunks = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

// NewEventReader returns a reader of the events in r. A line, and the data of an event, may have
// maxBytes bytes.
func NewEventReader(r io.Reader, maxBytes int) *EventReader {
	return &EventReader{r: r, max: maxBytes, Retry: -1}
}

// Release returns the reader's buffers to their pool. Neither the reader nor data it returned may
// be used afterwards. A reader need not be released.
func (e *EventReader) Release() {
	if e.buf != nil {
		chunks.Put(e.buf)
	}
	*e = EventReader{unreadable: io.ErrClosedPipe}
}

// Message returns the data of the next event named "message", like [EventReader.Next], and skips
// others.
func (e *EventReader) Message() ([]byte, error) {
	for {
		name, data, err := e.Next()
		if err != nil || name == "message" {
			return data, err
		}
	}
}

// Next returns the name, "message" if it has none, and the data of the next event with data. The
// data are valid until the next call. The error is io.EOF at the end of the stream, and
// [ErrEventTooLarge] once for an event over the limit. The next call skips the rest of that event;
// if it does not end, the error of that call is final.
func (e *EventReader) Next() (name string, data []byte, err error) {
	if e.skip {
		if err := e.skipEvent(); err != nil {
			return "", nil, err
		}
		e.skip = false
	}
	for {
		e.data, e.hasData, e.hasID, e.name = e.data[:0], false, false, "message"
		if err := e.fields(); err != nil {
			e.skip = err == ErrEventTooLarge
			return "", nil, err
		}
		if e.hasID {
			e.LastID = e.id
		}
		// A priming event has an id and empty data; it is not a message.
		if e.hasData && len(e.data) > 0 {
			return e.name, e.data, nil
		}
	}
}

// fields reads the lines of one event.
func (e *EventReader) fields() error {
	for {
		line, err := e.readLine()
		if err != nil || len(line) == 0 {
			return err
		}
		if err := e.field(line); err != nil {
			return err
		}
	}
}

// skipEvent reads to the blank line that ends an event.
func (e *EventReader) skipEvent() error {
	for e.skipped = e.max; ; {
		line, err := e.readLine()
		if err != ErrEventTooLarge && (err != nil || len(line) == 0) {
			return err
		}
	}
}

func (e *EventReader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "data":
		if len(e.data)+len(value)+1 > e.max {
			return ErrEventTooLarge
		}
		if e.hasData {
			e.data = append(e.data, '\n')
		}
		e.hasData = true
		e.data = append(e.data, value...)
	case "event":
		e.name = string(value)
		if e.name == "" {
			e.name = "message"
		}
	case "id":
		if bytes.IndexByte(value, 0) < 0 {
			e.id, e.hasID = string(value), true
		}
	case "retry":
		for _, c := range value {
			if c < '0' || c > '9' {
				return nil
			}
		}
		if len(value) == 0 {
			return nil
		}
		ms, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil || ms > math.MaxInt64/int64(time.Millisecond) {
			ms = maxRetry.Milliseconds()
		}
		e.Retry = min(time.Duration(ms)*time.Millisecond, maxRetry)
	}
	return nil
}

// readLine returns the next line without its end, valid until the next call.
func (e *EventReader) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		if len(e.chunk) == 0 {
			if e.unreadable != nil {
				return nil, e.unreadable
			}
			if e.buf == nil {
				e.buf = chunks.Get().(*[chunkBytes]byte)
			}
			n, err := e.r.Read(e.buf[:])
			e.chunk, e.unreadable = e.buf[:n], err
			if e.skip {
				if e.skipped += n; e.skipped/jsonrpc.EndlessFrame > e.max {
					e.chunk, e.unreadable = nil, &jsonrpc.EndlessFrameError{Limit: e.max, Read: e.skipped}
				}
			}
			continue
		}
		if e.afterCR {
			e.afterCR = false
			if e.chunk[0] == '\n' {
				e.chunk = e.chunk[1:]
				continue
			}
		}
		end := bytes.IndexByte(e.chunk, '\n')
		if end < 0 {
			end = len(e.chunk)
		}
		if cr := bytes.IndexByte(e.chunk[:end], '\r'); cr >= 0 {
			end = cr
		}
		if !e.cut && len(e.line)+end > e.max {
			e.cut = true
			return nil, ErrEventTooLarge
		}
		line := e.chunk[:end]
		if !e.cut && (len(e.line) > 0 || end == len(e.chunk)) {
			e.line = append(e.line, line...)
			line = e.line
		}
		if end == len(e.chunk) {
			e.chunk = nil
			continue
		}
		e.afterCR = e.chunk[end] == '\r'
		e.chunk = e.chunk[end+1:]
		if e.cut {
			e.cut = false // that was the rest of a line over the limit
			continue
		}
		if !e.begun {
			e.begun = true
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		return line, nil
	}
}
