package streamable

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strconv"
	"time"
)

// eventReader reads a stream of server-sent events (WHATWG HTML, 9.2). Lines end
// with LF, CR or CRLF; comments and unknown fields are ignored; an event that the
// stream does not end with a blank line is dropped.
type eventReader struct {
	r   io.Reader
	max int // bytes of one line, and of the data of one event

	lastID string        // of the last event that had one
	retry  time.Duration // that the server asked for; negative: it did not

	chunk      []byte // read and not yet parsed
	buf        [4 << 10]byte
	line       []byte
	data       []byte
	afterCR    bool // a LF that comes next belongs to the line before
	begun      bool // a line was read: no byte order mark any more
	id         string
	hasID      bool
	hasData    bool
	name       string
	unreadable error
}

var errEventTooLarge = errors.New("an event is over the limit")

// maxRetry bounds what a server can ask for.
const maxRetry = time.Hour

func newEventReader(r io.Reader, maxBytes int) *eventReader {
	return &eventReader{r: r, max: maxBytes, retry: -1}
}

// next returns the data of the next event named "message" that has any, good
// until the next call. The error is io.EOF at the end of the stream.
func (e *eventReader) next() ([]byte, error) {
	e.data, e.hasData, e.hasID, e.name = e.data[:0], false, false, ""
	for {
		line, err := e.readLine()
		if err != nil {
			return nil, err
		}
		if len(line) > 0 {
			if err := e.field(line); err != nil {
				return nil, err
			}
			continue
		}
		if e.hasID {
			e.lastID = e.id
		}
		// A priming event has an id and empty data; it is no message.
		if e.hasData && len(e.data) > 0 && (e.name == "" || e.name == "message") {
			return e.data, nil
		}
		e.data, e.hasData, e.hasID, e.name = e.data[:0], false, false, ""
	}
}

func (e *eventReader) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte{':'})
	value = bytes.TrimPrefix(value, []byte{' '})
	switch string(name) {
	case "data":
		if len(e.data)+len(value)+1 > e.max {
			return errEventTooLarge
		}
		if e.hasData {
			e.data = append(e.data, '\n')
		}
		e.hasData = true
		e.data = append(e.data, value...)
	case "event":
		e.name = string(value)
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
		e.retry = min(time.Duration(ms)*time.Millisecond, maxRetry)
	}
	return nil
}

// readLine returns the next line without its end, good until the next call.
func (e *eventReader) readLine() ([]byte, error) {
	e.line = e.line[:0]
	for {
		if len(e.chunk) == 0 {
			if e.unreadable != nil {
				return nil, e.unreadable
			}
			n, err := e.r.Read(e.buf[:])
			e.chunk, e.unreadable = e.buf[:n], err
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
		if len(e.line)+end > e.max {
			return nil, errEventTooLarge
		}
		e.line = append(e.line, e.chunk[:end]...)
		if end == len(e.chunk) {
			e.chunk = nil
			continue
		}
		e.afterCR = e.chunk[end] == '\r'
		e.chunk = e.chunk[end+1:]
		line := e.line
		if !e.begun {
			e.begun = true
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		return line, nil
	}
}
