package jsonrpc

import (
	"bytes"
	"encoding/json"
	"iter"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Kind is the kind of a [Message].
type Kind uint8

const (
	KindRequest      Kind = iota + 1 // has a method and an id
	KindNotification                 // has a method and no id
	KindResponse                     // has no method: a result or an error
)

func (k Kind) String() string {
	switch k {
	case KindRequest:
		return "request"
	case KindNotification:
		return "notification"
	case KindResponse:
		return "response"
	}
	return "unknown"
}

// Message is one JSON-RPC message. [Decode] makes it and [Append] writes it; it
// can be built by hand too. A Message may be copied.
type Message struct {
	// ID of a request or response. Zero in a notification, and in an error
	// response to a request whose id could not be read.
	ID ID
	// Method of a request or notification, never empty there.
	Method string
	// Params is an object or array as it was received, or nil if absent. It may be replaced but not
	// changed in place, because Param keeps the positions of its members.
	Params json.RawMessage
	// Result of a response as it was received, not nil after Decode.
	Result json.RawMessage
	// Error of a response, or nil if it is a result.
	Error *Error

	index paramIndex
}

// Kind returns the kind of m. A message without a method is a response.
func (m *Message) Kind() Kind {
	switch {
	case m.Method == "":
		return KindResponse
	case m.ID.IsZero():
		return KindNotification
	}
	return KindRequest
}

// Clone returns a copy of m that shares no bytes with it.
func (m *Message) Clone() Message {
	c := *m
	c.Params, c.Result = bytes.Clone(m.Params), bytes.Clone(m.Result)
	if m.Error != nil {
		e := *m.Error
		e.Data = bytes.Clone(e.Data)
		c.Error = &e
	}
	if m.index.describes(m.Params) {
		c.index.first = &c.Params[0]
	} else {
		c.index = paramIndex{}
	}
	return c
}

// Equal reports whether a and b are the same message: ids by kind and value,
// raw values byte for byte.
func Equal(a, b *Message) bool {
	if a.ID != b.ID || a.Method != b.Method || (a.Error == nil) != (b.Error == nil) ||
		!equalRaw(a.Params, b.Params) || !equalRaw(a.Result, b.Result) {
		return false
	}
	return a.Error == nil || a.Error.Code == b.Error.Code && a.Error.Message == b.Error.Message &&
		equalRaw(a.Error.Data, b.Error.Data)
}

// Equal is the function [Equal] as a method, for diff packages.
func (m Message) Equal(other Message) bool { return Equal(&m, &other) }

func equalRaw(a, b json.RawMessage) bool {
	return (a == nil) == (b == nil) && slices.Equal(a, b)
}

// Param returns the value of a top-level member of Params as a sub-slice of
// it; false if there is no such member or Params is not an object. After
// [Decode] the bytes are not read again, unless there are more than six
// members.
func (m *Message) Param(name string) (json.RawMessage, bool) {
	if m.index.describes(m.Params) {
		return lookup(m.index.members[:m.index.n], m.Params, name)
	}
	return jsonx.Lookup(m.Params, name)
}

// ParamIn returns a member of a top-level member of Params that is an object,
// such as the progressToken of _meta, as a sub-slice of Params. The bytes of a _meta are
// not read again either, unless it has more than five members or 64 KiB.
func (m *Message) ParamIn(object, name string) (json.RawMessage, bool) {
	if x := &m.index; object == "_meta" && x.metaKnown && x.describes(m.Params) {
		return lookup(x.meta[:x.metaN], m.Params[x.metaStart:], name)
	}
	obj, ok := m.Param(object)
	if !ok {
		return nil, false
	}
	return jsonx.Lookup(obj, name)
}

// ParamNames yields the names of the members of Params, unescaped and in order. A name is valid
// only until the next step. After [Decode] the values are not read again, unless there are more
// than six members.
func (m *Message) ParamNames() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if x := &m.index; x.describes(m.Params) {
			for _, p := range x.members[:x.n] {
				name := m.Params[p.name:p.value]
				if !yield(name[:bytes.IndexByte(name, '"')]) {
					return
				}
			}
			return
		}
		for name := range jsonx.Members(m.Params) {
			if !yield(name) {
				return
			}
		}
	}
}

// paramIndex holds the positions of the members of params and of its _meta. It is filled while
// params are checked, and valid while Params is the same slice.
type paramIndex struct {
	first *byte // of the params it describes; nil if it describes none
	size  uint32

	n, metaN  uint8
	metaKnown bool             // there is a _meta, and meta describes it
	metaStart uint32           // of its value
	members   [6]place[uint32] // the most that a request has in the newest revision
	meta      [5]place[uint16] // the most that the protocol defines
}

// place is the position of a member in an object: its name, which has no escapes, begins at name,
// and its value is at [value:end].
type place[T uint16 | uint32] struct{ name, value, end T }

func (x *paramIndex) describes(obj json.RawMessage) bool {
	return x.first != nil && len(obj) == int(x.size) && x.first == &obj[0]
}

func lookup[T uint16 | uint32](members []place[T], obj json.RawMessage, name string) (json.RawMessage, bool) {
	for _, p := range members {
		// The name has no escapes, so the first quote after its beginning ends it.
		start := int(p.name)
		if end := start + len(name); end < int(p.value) && obj[end] == '"' && string(obj[start:end]) == name {
			return obj[p.value:p.end:p.end], true
		}
	}
	return nil, false
}
