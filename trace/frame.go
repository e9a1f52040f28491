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
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// Dir is the direction of a frame, seen from the recorder.
type Dir string

// The two directions.
const (
	In  Dir = "in"  // the recorder's side received it
	Out Dir = "out" // the recorder's side sent it
)

// Kind is the kind of a frame that is not a message.
type Kind string

// The kinds of frames. For these, Out is an action of the recorder's side, In an event from the
// other side.
const (
	KindMessage Kind = ""        // a message, stray bytes, or an HTTP exchange without either
	KindStart   Kind = "start"   // a child process was started; Args is its command line
	KindStderr  Kind = "stderr"  // Raw is a line that a child wrote to standard error
	KindExit    Kind = "exit"    // a child process has ended; Note is the exit state
	KindOpen    Kind = "open"    // a connection was opened
	KindClose   Kind = "close"   // a connection was closed, or could not be opened; Note is the reason
	KindSession Kind = "session" // a session is open; Note is its revision, and how it was found
	KindEvent   Kind = "event"   // a server-sent event that is not a message; Note is its name
	KindComment Kind = "comment" // a comment on a stream of server-sent events
)

// Frame is one recorded unit on the wire.
//
// A frame has a message in Msg, or bytes that are not JSON in Raw, or only HTTP (a GET, a 202
// without a body), or the fields of its Kind.
type Frame struct {
	Time time.Time // zero: not recorded
	Dir  Dir
	Kind Kind
	Conn string // name of the connection, not a secret such as a session id; empty: not recorded
	Lost int    // frames dropped just before this one because the sink was slow

	Transport string // "stdio", "http", "sse", "websocket", "tcp", "unix", "memory", "custom"; empty: not recorded

	// For names the request that caused a frame of a connection to another server. A gateway sets
	// it; the zero value means that no request, or no single one, is known as the cause.
	For Cause

	Size  int      // bytes of Msg and Raw on the wire; zero: not recorded
	Cut   int      // minimum number of bytes left out at the end; the cut message is in Raw
	Event string   // id of the server-sent event that carried the message
	Note  string   // about Kind, for people
	Args  []string // command line of a child

	Msg  json.RawMessage // a message or batch, unchanged
	Raw  []byte          // bytes that are not JSON; written only if Msg is empty
	HTTP *HTTP           // nil: not HTTP, or not recorded
}

// Server returns the name of the server at the other end of a connection of a gateway: the gateway puts it in front of the
// name of the connection, as in db/stdio-1, and for a later connection to the same server db#2/stdio-1. It is empty for other
// connections.
func (f *Frame) Server() string {
	i := strings.LastIndexByte(f.Conn, '/') // the name may be a URL
	if i < 0 {
		return ""
	}
	server := f.Conn[:i]
	if i := strings.LastIndexByte(server, '#'); i > 0 {
		if _, err := strconv.Atoi(server[i+1:]); err == nil {
			return server[:i]
		}
	}
	return server
}

// Cause names a request that a gateway, or a handler that calls another server, was serving when
// it sent or received a frame. Causes can be compared with ==.
type Cause struct {
	Conn string // the Conn of the frame that carried the request
	ID   string // the id of the request, as JSON: 7, or "a" with its quotes
}

// String returns the cause for people: "http-1 #7". It is empty for the zero Cause.
func (c Cause) String() string {
	if c == (Cause{}) {
		return ""
	}
	return c.Conn + " #" + strings.Trim(c.ID, `"`)
}

func (c Cause) append(dst []byte) []byte {
	dst = appendString(append(dst, `{"conn":`...), c.Conn)
	if id := jsontext.Value(c.ID); id.IsValid() && (id.Kind() == '"' || id.Kind() == '0') {
		dst = append(append(dst, `,"id":`...), id...)
	}
	return append(dst, '}')
}

func parseCause(value jsontext.Value) (c Cause, err error) {
	err = object(value, func(name string, value jsontext.Value) error {
		var err error
		switch name {
		case "conn":
			c.Conn, err = unquote(value)
		case "id":
			if kind := value.Kind(); kind != '"' && kind != '0' {
				return fmt.Errorf("%q is not the id of a request, a string or a number", text.Short(string(value)))
			}
			c.ID = string(value)
		}
		return err
	})
	return c, err
}

// Message reports whether the frame is a whole message, or should have been one: bytes in the
// place of a message, but not an HTTP error page.
func (f *Frame) Message() bool {
	return f.Kind == KindMessage && len(f.Msg) > 0 && (f.HTTP == nil || f.HTTP.Status < 300 || hasMember(f.Msg, "jsonrpc"))
}

// HTTP holds the parts of an HTTP exchange besides the message.
type HTTP struct {
	Exchange int                 // number shared by a request and its response, from 1; zero: not recorded
	Method   string              // "POST"; empty for a response
	Path     string              // path and query as sent
	Status   int                 // 200; zero for a request
	Headers  map[string][]string // an http.Header is assignable to it
}

// lax is the option for reading recorded messages: duplicate names were on the wire and stay in
// the trace.
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
	text := func(name, s string) {
		if s != "" {
			dst = append(append(append(dst, `,"`...), name...), `":`...)
			dst = appendString(dst, s)
		}
	}
	count := func(name string, n int) {
		if n > 0 {
			dst = append(append(append(dst, `,"`...), name...), `":`...)
			dst = strconv.AppendInt(dst, int64(n), 10)
		}
	}
	text("kind", string(f.Kind))
	text("conn", f.Conn)
	text("transport", f.Transport)
	if f.For != (Cause{}) {
		dst = f.For.append(append(dst, `,"for":`...))
	}
	count("lost", f.Lost)
	count("size", f.Size)
	count("cut", f.Cut)
	text("event", f.Event)
	text("note", f.Note)
	if len(f.Args) > 0 {
		dst = append(dst, `,"args":[`...)
		for i, arg := range f.Args {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, arg)
		}
		dst = append(dst, ']')
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
	case len(raw) == 0 && (f.HTTP != nil || f.Kind != KindMessage):
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
	if h.Exchange != 0 {
		member("exchange")
		dst = strconv.AppendInt(dst, int64(h.Exchange), 10)
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

// appendString appends s as a JSON string; bytes that are not UTF-8 become U+FFFD; only header
// values, paths and names can have them.
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

// version is that of the format. Frames do not say it: a later format will.
const version = 1

// UnmarshalJSON reads one line of a trace. Unknown members are ignored, names
// are exact, and a member given twice is an error.
func (f *Frame) UnmarshalJSON(line []byte) error {
	var out Frame
	content := 0
	err := object(line, func(name string, value jsontext.Value) error {
		var err error
		switch name {
		case "v":
			if v, _ := number(value); v > version {
				err = fmt.Errorf("the trace was written by a newer version (format %d, this one knows %d); upgrade", v, version)
			}
		case "dir":
			var s string
			s, err = unquote(value)
			if out.Dir = Dir(s); err == nil && out.Dir != In && out.Dir != Out {
				err = fmt.Errorf("%q is neither \"in\" nor \"out\"", text.Short(s))
			}
		case "time":
			var s string
			if s, err = unquote(value); err == nil {
				out.Time, err = time.Parse(time.RFC3339Nano, s)
			}
		case "kind":
			var s string
			s, err = unquote(value)
			out.Kind = Kind(s)
		case "conn":
			out.Conn, err = unquote(value)
		case "transport":
			out.Transport, err = unquote(value)
		case "for":
			out.For, err = parseCause(value)
		case "lost":
			out.Lost, err = number(value)
		case "size":
			out.Size, err = number(value)
		case "cut":
			out.Cut, err = number(value)
		case "event":
			out.Event, err = unquote(value)
		case "note":
			out.Note, err = unquote(value)
		case "args":
			err = json.Unmarshal(value, &out.Args)
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
	case content == 0 && out.HTTP == nil && out.Kind == KindMessage:
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
		case "exchange":
			h.Exchange, err = number(value)
		case "status":
			h.Status, err = number(value)
		case "headers":
			h.Headers = make(map[string][]string)
			err = object(value, func(name string, value jsontext.Value) error {
				var list []string
				if err := json.Unmarshal(value, &list); err != nil {
					return fmt.Errorf("header %q is not a list of strings", text.Short(name))
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

// object calls member for each member of the JSON object in b. A name given twice is an error, in
// this object but not inside its values.
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
			return fmt.Errorf("member %q twice", text.Short(name))
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

// hasMember reports whether the JSON object in b has a member of that name at its top.
func hasMember(b []byte, member string) bool {
	found := false
	err := object(b, func(name string, _ jsontext.Value) error {
		found = found || name == member
		return nil
	})
	return found && err == nil
}

// number reads a count.
func number(value jsontext.Value) (int, error) {
	n, err := strconv.Atoi(string(value))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q is not a count", text.Short(string(value)))
	}
	return n, nil
}

func unquote(value jsontext.Value) (string, error) {
	if value.Kind() != '"' {
		return "", errors.New("not a string")
	}
	b, err := jsontext.AppendUnquote(nil, value)
	return string(b), err
}
