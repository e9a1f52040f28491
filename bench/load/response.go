package load

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// A response is a response on an HTTP/1.1 connection.
type response struct {
	status  int
	session string // Mcp-Session-Id
	sse     bool   // the body is an event stream
	chunked bool
	closes  bool // the connection ends with the response, as that of a stream may
	length  int
	body    []byte
}

// readHead reads up to the body. It reads the forms that net/http servers write, and refuses
// others.
func (r *response) readHead(in *bufio.Reader) error {
	line, err := headLine(in)
	if err != nil {
		return err
	}
	if len(line) < 12 || !bytes.HasPrefix(line, []byte("HTTP/1.1 ")) {
		return fmt.Errorf("status line %.100q", line)
	}
	if r.status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return fmt.Errorf("status line %.100q", line)
	}
	r.session, r.sse, r.chunked, r.closes, r.length = "", false, false, false, 0
	for {
		if line, err = headLine(in); err != nil {
			return err
		}
		if len(line) == 0 {
			return nil
		}
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return fmt.Errorf("header line %.100q", line)
		}
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			if r.length, err = strconv.Atoi(string(value)); err != nil || r.length < 0 || r.length > maxAnswer {
				return fmt.Errorf("content length %.100q", value)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			r.chunked = bytes.EqualFold(value, []byte("chunked"))
		case bytes.EqualFold(name, []byte("Content-Type")):
			r.sse = bytes.HasPrefix(value, []byte("text/event-stream"))
		case bytes.EqualFold(name, []byte("Mcp-Session-Id")):
			r.session = string(value)
		case bytes.EqualFold(name, []byte("Connection")):
			r.closes = bytes.EqualFold(value, []byte("close"))
		}
	}
}

// readBody reads the body into r.body. That the connection ends with it is an error, as others shall follow.
func (r *response) readBody(in *bufio.Reader) error {
	if r.closes {
		return fmt.Errorf("status %d, and the connection is closed", r.status)
	}
	r.body = r.body[:0]
	if !r.chunked {
		return r.take(in, r.length)
	}
	for {
		line, err := headLine(in)
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(line), 16, 31)
		if err != nil || len(r.body)+int(n) > maxAnswer {
			return fmt.Errorf("chunk length %.100q", line)
		}
		if err := r.take(in, int(n)); err != nil {
			return err
		}
		if line, err = headLine(in); err != nil || len(line) != 0 {
			return fmt.Errorf("behind a chunk %.100q, %w", line, err)
		}
		if n == 0 {
			return nil
		}
	}
}

// take appends n bytes to r.body.
func (r *response) take(in *bufio.Reader, n int) error {
	have := len(r.body)
	if cap(r.body) < have+n {
		grown := make([]byte, have, 2*(have+n))
		copy(grown, r.body)
		r.body = grown
	}
	r.body = r.body[:have+n]
	_, err := io.ReadFull(in, r.body[have:])
	return err
}

// message returns the JSON-RPC response of the body: the body, or the last event with data
// of an event stream.
func (r *response) message() ([]byte, error) {
	if r.status != 200 {
		return nil, fmt.Errorf("status %d, %.200q", r.status, r.body)
	}
	if !r.sse {
		return r.body, nil
	}
	mark := []byte("data: ")
	i := bytes.LastIndex(r.body, append([]byte("\n"), mark...))
	if i < 0 {
		if !bytes.HasPrefix(r.body, mark) {
			return nil, fmt.Errorf("event stream without an answer: %.200q", r.body)
		}
		i = -1
	}
	data, _, ended := bytes.Cut(r.body[i+1+len(mark):], []byte("\n"))
	if !ended {
		return nil, fmt.Errorf("event stream ends within an event: %.200q", r.body)
	}
	return data, nil
}

// headLine returns a line without its end.
func headLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	return bytes.TrimRight(line, "\r\n"), nil
}
