package engine

import (
	"errors"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// AsError returns the JSON-RPC error that err is or wraps, or else one made from its text.
func AsError(err error) *jsonrpc.Error {
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) {
		return rpc
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: err.Error()}
}
