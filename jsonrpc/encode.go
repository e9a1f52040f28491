package jsonrpc

import (
	"encoding/json"
	"strconv"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

const opening = `{"jsonrpc":"2.0"`

// Append appends m with [AppendRequest], [AppendNotification], [AppendResult] or [AppendError],
// according to its [Kind].
func Append(dst []byte, m *Message) []byte {
	switch m.Kind() {
	case KindRequest:
		return AppendRequest(dst, m.ID, m.Method, m.Params)
	case KindNotification:
		return AppendNotification(dst, m.Method, m.Params)
	}
	if m.Error != nil {
		return AppendError(dst, m.ID, m.Error)
	}
	return AppendResult(dst, m.ID, m.Result)
}

// AppendRequest appends a request. The id must not be zero. The params must be a valid object or
// array; if they are empty, the member is omitted.
func AppendRequest(dst []byte, id ID, method string, params json.RawMessage) []byte {
	dst = append(dst, opening+`,"id":`...)
	dst = id.AppendJSON(dst)
	dst = append(dst, `,"method":`...)
	return appendCall(dst, method, params)
}

// AppendNotification appends a notification. The params are as in [AppendRequest].
func AppendNotification(dst []byte, method string, params json.RawMessage) []byte {
	dst = append(dst, opening+`,"method":`...)
	return appendCall(dst, method, params)
}

func appendCall(dst []byte, method string, params json.RawMessage) []byte {
	dst = jsonx.AppendString(dst, method)
	if len(params) > 0 {
		dst = append(dst, `,"params":`...)
		dst = jsonx.AppendLine(dst, params)
	}
	return append(dst, '}')
}

// AppendResult appends a response with a result, which must be one valid JSON value. Empty means
// {}, the smallest result that all revisions of MCP accept.
func AppendResult(dst []byte, id ID, result json.RawMessage) []byte {
	dst = AppendResultHead(dst, id)
	if len(result) == 0 {
		dst = append(dst, "{}"...)
	}
	dst = jsonx.AppendLine(dst, result)
	return append(dst, '}')
}

// AppendResultHead appends the beginning of a response. The caller appends the result, without
// newlines, and the closing brace.
func AppendResultHead(dst []byte, id ID) []byte {
	dst = append(dst, opening+`,"id":`...)
	dst = id.AppendJSON(dst)
	return append(dst, `,"result":`...)
}

// AppendError appends a response with an error. A zero id is written as null, as JSON-RPC 2.0,
// section 5, requires when the id of the request could not be read; see [AppendErrorWithoutID].
func AppendError(dst []byte, id ID, e *Error) []byte {
	dst = append(dst, opening+`,"id":`...)
	dst = id.AppendJSON(dst)
	return appendFailure(dst, e)
}

// AppendErrorWithoutID appends a response with an error and no id member, as revisions since
// 2025-11-25 answer a request whose id could not be read (their schema has no null id,
// BASE-26-012).
func AppendErrorWithoutID(dst []byte, e *Error) []byte {
	return appendFailure(append(dst, opening...), e)
}

func appendFailure(dst []byte, e *Error) []byte {
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(e.Code), 10)
	dst = append(dst, `,"message":`...)
	dst = jsonx.AppendString(dst, e.Message)
	if len(e.Data) > 0 {
		dst = append(dst, `,"data":`...)
		dst = jsonx.AppendLine(dst, e.Data)
	}
	return append(dst, '}', '}')
}
