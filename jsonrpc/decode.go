package jsonrpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Limits bounds what [Decode] and [DecodeBatch] accept. The zero value means the defaults.
type Limits struct {
	// MaxBytes bounds the whole input. Zero means no bound, because the framing has one.
	MaxBytes int
	// MaxDepth bounds the nesting of one message, whose own object counts as 1.
	// Zero means 128.
	MaxDepth int
	// MaxBatch bounds the messages in a batch. Zero means 1,000.
	MaxBatch int
}

const defaultMaxBatch = 1000

// Decode reads exactly one message from b, in one pass. Raw values of the
// message are sub-slices of b.
//
// The error is a [*DecodeError]. Its code is [CodeParse] for input that is not JSON: bad syntax,
// invalid UTF-8, two members with the same name in any object, bytes after the message, nesting
// over lim.MaxDepth. It is [CodeInvalidRequest] for
//
//   - a jsonrpc member that is absent or not "2.0",
//   - a member that differs from one of JSON-RPC only by case, such as "Method",
//   - an id that is not a string or integer; null is accepted in an error
//     response only, and means no id,
//   - a method that is not a string or is empty, params that are neither object
//     nor array, params without a method,
//   - a message with not exactly one of method, result and error, a result
//     without id, an error without an integer code and a string message,
//   - a batch, and every other value that is not an object,
//   - an input over lim.MaxBytes.
//
// Other members are ignored. Params that are null count as absent, because many peers write them so.
//
// Specification: JSON-RPC 2.0, sections 4 and 5; 2026-07-28, basic/index.mdx, Messages. Decode
// treats all revisions alike; an error response without an id exists since 2025-11-25.
func Decode(b []byte, lim Limits) (Message, error) {
	if err := tooLong(b, lim); err != nil {
		return Message{}, err
	}
	s := jsonx.NewScanner(b, lim.MaxDepth)
	defer s.Free()
	d := decoder{s: s, b: b}
	d.message()
	if d.syntax == nil {
		d.syntax = s.End()
	}
	if err := d.err(); err != nil {
		return Message{}, err
	}
	return d.m, nil
}

// Element is one message of a batch, or the error of an element that is not a message.
type Element struct {
	Message Message      // zero if Err is not nil
	Err     *DecodeError // nil if Message is good
}

// DecodeBatch reads a batch: an array of one or more messages.
//
// An element that is JSON but not a message has Err set and does not affect the others. The error
// returned is for the whole batch, a [*DecodeError] without an ID: [CodeParse] when b is not JSON
// as [Decode] defines it, and [CodeInvalidRequest] when it is not an array, is empty, or is over
// a limit.
//
// Specification: JSON-RPC 2.0, section 6; 2025-03-26, basic/index.mdx, Batching
// (BASE-2503-001). No other revision has batches.
func DecodeBatch(b []byte, lim Limits) ([]Element, error) {
	if err := tooLong(b, lim); err != nil {
		return nil, err
	}
	most, depth := lim.MaxBatch, lim.MaxDepth
	if most <= 0 {
		most = defaultMaxBatch
	}
	if depth <= 0 {
		depth = jsonx.DefaultDepth
	}
	s := jsonx.NewScanner(b, depth+1) // the array is not part of a message
	defer s.Free()
	if s.Kind() != '[' {
		if _, err := s.Value(); err != nil {
			return nil, parseError(err)
		}
		return nil, invalid("batch is not an array")
	}
	err := s.Array()
	var batch []Element
	for err == nil {
		var more bool
		if more, err = s.Element(); err != nil || !more {
			break
		}
		if len(batch) == most {
			return nil, invalid(fmt.Sprintf("batch has over %d messages", most))
		}
		d := decoder{s: s, b: b}
		d.message()
		if err = d.syntax; err != nil {
			break
		}
		if fault := d.err(); fault != nil {
			batch = append(batch, Element{Err: fault.(*DecodeError)})
		} else {
			batch = append(batch, Element{Message: d.m})
		}
	}
	if err == nil {
		err = s.End()
	}
	if err != nil {
		return nil, parseError(err)
	}
	if len(batch) == 0 {
		return nil, invalid("batch is empty")
	}
	return batch, nil
}

// IsBatch reports whether b can only be a batch: its first byte that is not
// white space is '['.
func IsBatch(b []byte) bool { return jsonx.KindOf(b) == '[' }

func tooLong(b []byte, lim Limits) error {
	if lim.MaxBytes > 0 && len(b) > lim.MaxBytes {
		return invalid(fmt.Sprintf("message of %d bytes is over the limit of %d", len(b), lim.MaxBytes))
	}
	return nil
}

func invalid(msg string) *DecodeError {
	return &DecodeError{Err: &Error{Code: CodeInvalidRequest, Message: msg}}
}

func parseError(err error) *DecodeError {
	return &DecodeError{Err: &Error{Code: CodeParse, Message: err.Error()}}
}

// decoder reads one message. It continues after a fault of the envelope, because the id may come
// later and a syntax error takes precedence.
type decoder struct {
	s      *jsonx.Scanner
	b      []byte
	m      Message
	syntax error  // from the Scanner; ends the reading
	fault  string // first fault of the envelope

	version, nullID, method, failed bool // members seen; failed is "error"
}

func (d *decoder) err() error {
	var e *DecodeError
	switch {
	case d.syntax != nil:
		e = parseError(d.syntax)
	case d.fault != "":
		e = invalid(d.fault)
	default:
		return nil
	}
	e.ID = d.m.ID
	e.Response = d.failed || d.m.Result != nil
	return e
}

func (d *decoder) refuse(fault string) {
	if d.fault == "" {
		d.fault = fault
	}
}

// value takes the next value; nil after a syntax error.
func (d *decoder) value() (raw json.RawMessage) {
	raw, d.syntax = d.s.Value()
	return raw
}

// text takes the next value, which must be a string that is not empty.
func (d *decoder) text(name string) string {
	if d.s.Kind() != '"' {
		if d.value(); d.syntax == nil {
			d.refuse(name + " is not a string")
		}
		return ""
	}
	text, err := d.s.Text()
	d.syntax = err
	for _, known := range frequent {
		if string(text) == known {
			return known
		}
	}
	return string(text)
}

// frequent lists common methods, most frequent first, so that decoding them allocates no string.
var frequent = [...]string{
	"tools/call", "tools/list", "resources/read", "prompts/get", "completion/complete", "ping",
	"notifications/progress", "notifications/message",
}

func (d *decoder) message() {
	if d.s.Kind() != '{' {
		if d.value(); d.syntax == nil {
			d.refuse("message is not an object")
		}
		return
	}
	d.syntax = d.s.Object()
	for d.syntax == nil {
		name, more, err := d.s.Member()
		if err != nil {
			d.syntax = err
			return
		}
		if !more {
			d.check()
			return
		}
		switch string(name) {
		case "jsonrpc":
			d.version = true
			if raw := d.value(); d.syntax == nil && !isVersion(raw) {
				d.refuse(`jsonrpc is not "2.0"`)
			}
		case "id":
			d.id()
		case "method":
			d.method = true
			d.m.Method = d.text("method")
		case "params":
			d.params()
		case "result":
			d.m.Result = d.value()
		case "error":
			d.failed = true
			d.failure()
		default:
			d.refuseFolded(name, envelopeNames)
			d.value()
		}
	}
}

var (
	envelopeNames = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	errorNames    = []string{"code", "message", "data"}
)

// refuseFolded refuses a name that a case-insensitive reader would take for one of names.
func (d *decoder) refuseFolded(name []byte, names []string) {
	for _, known := range names {
		if bytes.EqualFold(name, []byte(known)) {
			d.refuse(fmt.Sprintf("member %q must be written %q", name, known))
		}
	}
}

func isVersion(raw []byte) bool {
	if string(raw) == `"2.0"` {
		return true
	}
	s, err := jsonx.Unquote(raw) // it may be escaped
	return err == nil && s == "2.0"
}

// check looks at the message as a whole.
func (d *decoder) check() {
	m := &d.m
	result := m.Result != nil
	switch {
	case !d.version:
		d.refuse(`jsonrpc is missing, want "2.0"`)
	case d.method && (result || d.failed):
		d.refuse("message has a method and a result or error")
	case result && d.failed:
		d.refuse("message has a result and an error")
	case !d.method && !result && !d.failed:
		d.refuse("message has no method, result or error")
	case d.method && m.Method == "":
		d.refuse("method is empty")
	case !d.method && m.Params != nil:
		d.refuse("message has params without a method")
	case d.nullID && !d.failed:
		d.refuse("id is null, want a string or an integer")
	case result && m.ID.IsZero():
		d.refuse("result has no id")
	}
}

func (d *decoder) id() {
	raw := d.value()
	if d.syntax != nil {
		return
	}
	if string(raw) == "null" {
		d.nullID = true
		return
	}
	id, err := ParseID(raw)
	if err != nil {
		d.refuse(err.Error())
	}
	d.m.ID = id
}

func (d *decoder) params() {
	start := d.s.Offset()
	kind := d.s.Kind()
	if kind != '{' {
		raw := d.value()
		switch {
		case kind == '[':
			d.m.Params = raw
		case d.syntax == nil && string(raw) != "null":
			d.refuse("params are not an object or array")
		}
		return
	}
	x := &d.m.index
	n, known := places(d, x.members[:], func(name []byte) {
		if string(name) == "_meta" && d.s.Kind() == '{' {
			at := d.s.Offset() - start
			n, known := places(d, x.meta[:], func([]byte) { d.value() })
			x.metaN, x.metaKnown, x.metaStart = uint8(n), known, uint32(at)
		} else {
			d.value()
		}
	})
	if d.syntax != nil {
		return
	}
	end := d.s.Taken()
	d.m.Params = d.b[start:end:end]
	if x.n = uint8(n); known {
		x.first, x.size = &d.m.Params[0], uint32(end-start)
	}
}

// places takes the next value, which must be an object, and calls take for each member. It stores
// the positions of the members in into; known is false if into cannot hold them.
func places[T uint16 | uint32](d *decoder, into []place[T], take func(name []byte)) (n int, known bool) {
	start := d.s.Offset()
	known = true
	d.syntax = d.s.Object()
	for d.syntax == nil {
		name, more, err := d.s.Member()
		if err != nil {
			d.syntax = err
			return 0, false
		}
		if !more {
			end := d.s.Taken() - start
			return n, known && end == int(T(end))
		}
		at, value := d.s.Name(), d.s.Offset()
		if take(name); d.syntax != nil {
			return 0, false
		}
		if at.Escaped || n == len(into) {
			known = false
			continue
		}
		into[n] = place[T]{T(at.Start - start), T(value - start), T(d.s.Taken() - start)}
		n++
	}
	return 0, false
}

// failure reads the error member.
func (d *decoder) failure() {
	if d.s.Kind() != '{' {
		if d.value(); d.syntax == nil {
			d.refuse("error is not an object")
		}
		return
	}
	e := new(Error)
	var code, message bool
	d.syntax = d.s.Object()
	for d.syntax == nil {
		name, more, err := d.s.Member()
		if err != nil {
			d.syntax = err
			return
		}
		if !more {
			if !code || !message {
				d.refuse("error has no code or no message")
			}
			d.m.Error = e
			return
		}
		switch string(name) {
		case "code":
			code = true
			raw := d.value()
			if d.syntax != nil {
				return
			}
			if e.Code, err = strconv.Atoi(string(raw)); err != nil {
				d.refuse("code of the error is not an integer")
			}
		case "message":
			message = true
			e.Message = d.text("message of the error")
		case "data":
			e.Data = d.value()
		default:
			d.refuseFolded(name, errorNames)
			d.value()
		}
	}
}
