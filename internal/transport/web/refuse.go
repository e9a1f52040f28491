package web

import (
	"net/http"
	"strconv"

	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Refuse answers an HTTP request that is not a request of the protocol, with a JSON-RPC error
// without an id.
func Refuse(w http.ResponseWriter, status int, code int, message string) {
	RefuseID(w, status, jsonrpc.ID{}, &jsonrpc.Error{Code: code, Message: message})
}

// RefuseID answers a request with an error; the zero id means none.
func RefuseID(w http.ResponseWriter, status int, id jsonrpc.ID, e *jsonrpc.Error) {
	var body []byte
	if id.IsZero() {
		body = jsonrpc.AppendErrorWithoutID(nil, e)
	} else {
		body = jsonrpc.AppendError(nil, id, e)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may have disconnected, which ends the exchange too
}
