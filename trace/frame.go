package trace

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Dir is the direction of a frame, seen from the one who records.
type Dir string

// The two directions.
const (
	In  Dir = "in"  // the recorder's side received it
	Out Dir = "out" // the recorder's side sent it
)

// Frame is one recorded unit on the wire.
//
// A frame holds a message in Msg, or bytes that are no JSON in Raw, or only
// the facts in HTTP (a GET, a 202 without a body).
type Frame struct {
	Time time.Time // zero: not recorded
	Dir  Dir
	Conn string // name of the connection, no secret such as a session id; empty: not recorded
	Lost int    // frames dropped just before this one because the sink was slow

	Msg  json.RawMessage // a message or batch, the bytes as they came
	Raw  []byte          // bytes that are not JSON; written only if Msg is empty
	HTTP *HTTP           // nil: not HTTP, or not recorded
}

// HTTP holds what an HTTP exchange says beside the message.
type HTTP struct {
	Method  string              // "POST"; empty for a response
	Path    string              // path and query as sent
	Status  int                 // 200; zero for a request
	Headers map[string][]string // an http.Header is assignable to it
}

// lax is how recorded messages are read: whatever the grammar allows was on
// the wire and stays in the trace. Duplicate names are for the peer to refuse.
var lax = jsontext.AllowDuplicateNames(true)

// Append appends the frame as one line of a trace, without the newline, and
// without redaction: see [Redactor.Frame] for that.
//
// A Msg that is not JSON is written as Raw would be.
func (f Frame) Append(dst []byte) []byte {
	dst = append(dst, `{"dir":`...)
	dst = appendString(dst, string(f.Dir))
	if !f.Time.IsZero() {
		dst = append(dst, `,"time":"`...)
		dst = f.Time.AppendFormat(dst, time.RFC3339Nano)
		dst = append(dst, '"')
	}
	if f.Conn != "" {
		dst = append(dst, `,"conn":`...)
		dst = appendString(dst, f.Conn)
	}
	if f.Lost > 0 {
		dst = append(dst, `,"lost":`...)
		dst = strconv.AppendInt(dst, int64(f.Lost), 10)
	}
	if f.HTTP != nil {
		dst = append(dst, `,"http":`...)
		dst = f.HTTP.append(dst)
	}
	raw := f.Raw
	if len(f.Msg) > 0 {
		if msg, ok := oneLine(f.Msg); ok {
			dst = append(dst, `,"msg":`...)
			return append(append(dst, msg...), '}')
		}
		raw = f.Msg
	}
	switch {
	case len(raw) == 0 && f.HTTP != nil:
	case utf8.Valid(raw):
		dst = append(dst, `,"raw":`...)
		dst = appendString(dst, string(raw))
	default:
		dst = append(dst, `,"base64":"`...)
		dst = base64.StdEncoding.AppendEncode(dst, raw)
		dst = append(dst, '"')
	}
	return append(dst, '}')
}

func (h *HTTP) append(dst []byte) []byte {
	dst = append(dst, '{')
	start := len(dst)
	member := func(name string) {
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
	}
	if h.Method != "" {
		member("method")
		dst = appendString(dst, h.Method)
	}
	if h.Path != "" {
		member("path")
		dst = appendString(dst, h.Path)
	}
	if h.Status != 0 {
		member("status")
		dst = strconv.AppendInt(dst, int64(h.Status), 10)
	}
	if len(h.Headers) > 0 {
		member("headers")
		dst = append(dst, '{')
		for i, name := range slices.Sorted(maps.Keys(h.Headers)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendString(dst, name), ':', '[')
			for j, v := range h.Headers[name] {
				if j > 0 {
					dst = append(dst, ',')
				}
				dst = appendString(dst, v)
			}
			dst = append(dst, ']')
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// appendString appends s as a JSON string; bytes that are no UTF-8 become
// U+FFFD, which only header values, paths and names can hit.
func appendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error reports the replacement
	return dst
}

// oneLine reports whether msg is JSON and returns it on one line.
func oneLine(msg []byte) ([]byte, bool) {
	v := jsontext.Value(msg)
	if !v.IsValid(lax) {
		return nil, false
	}
	if bytes.ContainsAny(msg, "\n\r") || msg[0] == ' ' || msg[len(msg)-1] == ' ' {
		v = v.Clone()
		if err := v.Compact(lax, jsontext.PreserveRawStrings(true)); err != nil {
			return nil, false
		}
	}
	return v, true
}

// MarshalJSON returns the frame as [Frame.Append] writes it.
func (f Frame) MarshalJSON() ([]byte, error) { return f.Append(nil), nil }

// UnmarshalJSON reads one line of a trace. Unknown members are ignored, names
// are exact, and a member given twice is an error.
func (f *Frame) UnmarshalJSON(line []byte) error {
	var out Frame
	content := 0
	err := object(line, func(name string, value jsontext.Value) error {
		var err error
		switch name {
		case "dir":
			var s string
			s, err = unquote(value)
			if out.Dir = Dir(s); err == nil && out.Dir != In && out.Dir != Out {
				err = fmt.Errorf("%q is neither \"in\" nor \"out\"", bound(s))
			}
		case "time":
			var s string
			if s, err = unquote(value); err == nil {
				out.Time, err = time.Parse(time.RFC3339Nano, s)
			}
		case "conn":
			out.Conn, err = unquote(value)
		case "lost":
			out.Lost, err = strconv.Atoi(string(value))
		case "http":
			out.HTTP, err = parseHTTP(value)
		case "msg":
			content++
			out.Msg = json.RawMessage(value.Clone())
		case "raw", "base64":
			content++
			var s string
			if s, err = unquote(value); err == nil && name == "raw" {
				out.Raw = []byte(s)
			} else if err == nil {
				out.Raw, err = base64.StdEncoding.DecodeString(s)
			}
		}
		if err != nil {
			return fmt.Errorf("member %q: %w", name, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case out.Dir == "":
		return errors.New(`no "dir" member`)
	case content > 1:
		return errors.New(`more than one of "msg", "raw" and "base64"`)
	case content == 0 && out.HTTP == nil:
		return errors.New(`none of "msg", "raw", "base64" and "http"`)
	}
	*f = out
	return nil
}

func parseHTTP(value jsontext.Value) (*HTTP, error) {
	h := new(HTTP)
	err := object(value, func(name string, value jsontext.Value) error {
		var err error
		switch name {
		case "method":
			h.Method, err = unquote(value)
		case "path":
			h.Path, err = unquote(value)
		case "status":
			h.Status, err = strconv.Atoi(string(value))
		case "headers":
			h.Headers = make(map[string][]string)
			err = object(value, func(name string, value jsontext.Value) error {
				var list []string
				if err := json.Unmarshal(value, &list); err != nil {
					return fmt.Errorf("header %q is no list of strings", bound(name))
				}
				h.Headers[name] = list
				return nil
			})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return h, nil
}

// object calls member for each member of the JSON object in b. A name given
// twice is an error, in this object only: what is inside is not its concern.
func object(b []byte, member func(name string, value jsontext.Value) error) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(b), lax)
	if d.PeekKind() != '{' {
		if _, err := d.ReadValue(); err != nil {
			return err
		}
		return errors.New("not a JSON object")
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for d.PeekKind() != '}' {
		tok, err := d.ReadToken()
		if err != nil {
			return err
		}
		name := tok.String()
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if seen[name] {
			return fmt.Errorf("member %q twice", bound(name))
		}
		seen[name] = true
		if err := member(name, value); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if rest := bytes.TrimSpace(b[d.InputOffset():]); len(rest) > 0 {
		return errors.New("more than one JSON value")
	}
	return nil
}

func unquote(value jsontext.Value) (string, error) {
	if value.Kind() != '"' {
		return "", errors.New("not a string")
	}
	b, err := jsontext.AppendUnquote(nil, value)
	return string(b), err
}

// bound cuts text of unknown origin to a length fit for an error.
func bound(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}
