package jsonrpc

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/internal/text"
)

// Codes of JSON-RPC 2.0, section 5.1.
const (
	CodeParse          = -32700 // not JSON
	CodeInvalidRequest = -32600 // JSON, but not a message
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// Error is the error member of a response.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitzero"` // nil if absent
}

// Error returns the message and the code. The message is cut to 500 bytes; it may come from the
// peer.
func (e *Error) Error() string {
	const most = 500
	return fmt.Sprintf("%q (code %d)", text.Clip(e.Message, most), e.Code)
}

// Is reports whether target is an *Error with the same code.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// DecodeError reports why bytes are not a message, and holds the error to answer with.
type DecodeError struct {
	// Err is the error to answer with: code [CodeParse] or [CodeInvalidRequest]. Its Message quotes
	// only short names from the peer.
	Err *Error
	// ID is the id of the message, or zero if it could not be read.
	ID ID
	// Response reports whether the message has a result or error member. Such a message must not
	// be answered, and the request with this ID gets no other response.
	Response bool
}

func (e *DecodeError) Error() string { return e.Err.Message }

// Unwrap returns Err.
func (e *DecodeError) Unwrap() error { return e.Err }

// ErrClosed is returned by a [Conn] after its own Close.
var ErrClosed = errors.New("jsonrpc: the connection is closed")

// FrameTooLargeError reports a frame over the limit of a [Conn] as soon as the limit is passed.
// The next Read skips the rest of the frame.
type FrameTooLargeError struct {
	Limit int // bytes allowed
	// Head is the beginning of the frame, up to 512 bytes. The error that [Decode] returns for Head
	// has the id of the message if the id is in Head.
	Head []byte
}

func (e *FrameTooLargeError) Error() string {
	return fmt.Sprintf("frame is over the limit of %d bytes", e.Limit)
}

// EndlessFrame times the limit of a [Conn] is the length at which a skipped frame ends the
// connection.
const EndlessFrame = 16

// EndlessFrameError ends a [Conn] whose peer sends a frame without an end.
type EndlessFrameError struct {
	Limit int // bytes allowed
	Read  int // bytes of the frame that came
}

func (e *EndlessFrameError) Error() string {
	return fmt.Sprintf("a frame of the peer has no end after %d bytes; the limit is %d bytes", e.Read, e.Limit)
}
