package web

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// readEvents reads a stream to its end.
func readEvents(r io.Reader, limit int) (got []string, e *EventReader, err error) {
	e = NewEventReader(r, limit)
	for {
		data, err := e.Message()
		if err != nil {
			return got, e, err
		}
		got = append(got, string(data))
	}
}

func TestEventReader(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		want         []string
		lastID       string
		retry        time.Duration
	}{
		{"one", "data: a\n\n", []string{"a"}, "", -1},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}, "", -1},
		{"CR", "data: a\r\rdata: b\r\r", []string{"a", "b"}, "", -1},
		{"mixed ends", "data: a\r\n\ndata: b\n\r", []string{"a", "b"}, "", -1},
		{"several lines", "data: a\ndata:b\ndata:  c\n\n", []string{"a\nb\n c"}, "", -1},
		{"comments", ": hello\n\n:\r\n\r\n:\ndata: a\n:b\n\n", []string{"a"}, "", -1}, // HTTP-26-021
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"a"}, "", -1},
		{"named message", "event: message\ndata: a\n\n", []string{"a"}, "", -1},
		{"other names", "event: ping\ndata: a\n\ndata: b\n\n", []string{"b"}, "", -1},
		{"name holds for one event", "event: x\n\ndata: b\n\n", []string{"b"}, "", -1},
		{"priming", "id: 1\ndata:\n\ndata: a\n\n", []string{"a"}, "1", -1}, // SHTTP-25-013
		{"id counts at the end of its event", "id: 1\ndata: a\n\nid: 2\ndata: b\n", []string{"a"}, "1", -1},
		{"id with NUL", "id: 1\x00\ndata: a\n\n", []string{"a"}, "", -1},
		{"id taken back", "id: 1\n\nid\n\n", nil, "", -1},
		{"retry", "retry: 1500\n\n", nil, "", 1500 * time.Millisecond},
		{"retry that is no number", "retry: 5\n\nretry: -1\n\nretry:\n\nretry: 1e3\n\n", nil, "", 5 * time.Millisecond},
		{"retry without measure", "retry: 99999999999999999999999\n\n", nil, "", time.Hour},
		{"no end", "data: a\n\ndata: b\n", []string{"a"}, "", -1},
		{"unknown field", "dat: x\ndata\ndata: a\n\n", []string{"\na"}, "", -1},
		{"empty", "", nil, "", -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for how, r := range map[string]io.Reader{
				"whole":  strings.NewReader(tt.stream),
				"pieces": iotest.OneByteReader(strings.NewReader(tt.stream)),
			} {
				got, e, err := readEvents(r, 1000)
				if err != io.EOF || !slices.Equal(got, tt.want) || e.LastID != tt.lastID || e.Retry != tt.retry {
					t.Errorf("%s: %q gave %q, id %q, retry %v, %v; want %q, %q, %v", how, tt.stream, got, e.LastID, e.Retry, err, tt.want, tt.lastID, tt.retry)
				}
			}
		})
	}
}

func TestEventReaderBounds(t *testing.T) {
	for name, stream := range map[string]string{
		"line":    "data: " + strings.Repeat("x", 2000) + "\n\n",
		"comment": ":" + strings.Repeat("x", 2000) + "\n\n",
		"lines":   strings.Repeat("data: 0123456789\n", 200) + "\n",
	} {
		if got, _, err := readEvents(strings.NewReader(stream), 1000); err != ErrEventTooLarge {
			t.Errorf("%s: %d events, %v, want ErrEventTooLarge", name, len(got), err)
		}
	}
	// A CR at the end of a flush ends the line at once.
	r, w := io.Pipe()
	go w.Write([]byte("data: a\r\r"))
	e := NewEventReader(r, 1000)
	if data, err := e.Message(); string(data) != "a" || err != nil {
		t.Errorf("Message = %q, %v", data, err)
	}
}

// FuzzEventReader: the result does not depend on how the bytes are chunked or how lines end, and
// events over the limit are not returned.
func FuzzEventReader(f *testing.F) {
	f.Add([]byte("id: 1\nevent: message\ndata: {}\n\n: x\n\nretry: 1\ndata: a\r\ndata: b\r\n\r\n"))
	f.Add([]byte("\xef\xbb\xbfdata\rdata:\r\r"))
	f.Fuzz(func(t *testing.T, in []byte) {
		const limit = 64
		whole, e1, err1 := readEvents(bytes.NewReader(in), limit)
		pieces, e2, err2 := readEvents(iotest.OneByteReader(bytes.NewReader(in)), limit)
		if !slices.Equal(whole, pieces) || err1 != err2 || e1.LastID != e2.LastID || e1.Retry != e2.Retry {
			t.Fatalf("%q gave %q (%v) whole and %q (%v) in pieces", in, whole, err1, pieces, err2)
		}
		crlf := bytes.ReplaceAll(bytes.ReplaceAll(bytes.ReplaceAll(in, []byte("\r\n"), []byte("\n")), []byte("\r"), []byte("\n")), []byte("\n"), []byte("\r\n"))
		if other, _, err := readEvents(bytes.NewReader(crlf), limit); !slices.Equal(whole, other) || err != err1 {
			t.Fatalf("%q gave %q (%v), and with CRLF %q (%v)", in, whole, err1, other, err)
		}
		for _, data := range whole {
			if len(data) == 0 || len(data) > limit {
				t.Fatalf("%q gave an event of %d bytes", in, len(data))
			}
		}
	})
}

// An event without an end ends the stream, in one line or in many.
func TestEventReaderEnds(t *testing.T) {
	for name, some := range map[string]string{"one line": "x", "many lines": "data: x\n"} {
		const limit = 1000
		r := strings.NewReader("data: " + strings.Repeat(some, 100*limit))
		e := NewEventReader(r, limit)
		if _, err := e.Message(); err != ErrEventTooLarge {
			t.Fatalf("%s: Message = %v, want ErrEventTooLarge", name, err)
		}
		for range 2 {
			_, err := e.Message()
			var end *jsonrpc.EndlessFrameError
			if !errors.As(err, &end) || end.Limit != limit || end.Read <= jsonrpc.EndlessFrame*limit {
				t.Errorf("%s: Message = %v, want an EndlessFrameError that names the bytes", name, err)
			}
		}
		if read := int(r.Size()) - r.Len(); read > 2*jsonrpc.EndlessFrame*limit {
			t.Errorf("%s: %d bytes were read", name, read)
		}
	}
}

// An event over the limit is skipped whole, and later events are read.
func TestEventReaderSkips(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for name, big := range map[string]string{
		"line":        "data: " + long + "\n",
		"hidden line": "data: " + strings.Repeat("x", 4090) + "data: evil\n", // begins where a read does
		"lines":       strings.Repeat("data: 0123456789\n", 200),
		"name":        "event: " + long + "\ndata: evil\n",
	} {
		r := strings.NewReader("data: a\n\n" + big + "data: evil\n\nevent: b\ndata: b\n\n" + big)
		e := NewEventReader(r, 1000)
		var got []string
		for len(got) < 5 {
			name, data, err := e.Next()
			if err != nil {
				got = append(got, err.Error())
			} else {
				got = append(got, name+"="+string(data))
			}
		}
		want := []string{"message=a", ErrEventTooLarge.Error(), "b=b", ErrEventTooLarge.Error(), "EOF"}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %.100q, want %q", name, got, want)
		}
	}
}
