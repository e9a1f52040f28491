package web

import (
	"io"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

const (
	maxErrorBody = 64 << 10 // bytes read of an answer that is an error
	maxErrorText = 1 << 10  // bytes of it kept for people
)

// Failure reads a response that is not a success, of any content type. It does not close its
// body.
func Failure(res *http.Response) *engine.HTTPError {
	body, err := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	if err != nil {
		body = nil // a part of it may mislead
	}
	e := &engine.HTTPError{Status: res.StatusCode, Header: res.Header, RPC: rpcError(body)}
	e.Body = string(body[:min(len(body), maxErrorText)])
	return e
}

// rpcError finds a JSON-RPC error in a body, which may be an invalid message otherwise.
func rpcError(body []byte) *jsonrpc.Error {
	var m struct {
		Error *jsonrpc.Error `json:"error"`
	}
	if jsonx.Unmarshal(body, &m) != nil || m.Error == nil || m.Error.Code == 0 && m.Error.Message == "" {
		return nil
	}
	return m.Error
}

// Discard reads the end of a response without content, so that its connection can be reused.
func Discard(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, 4<<10)
	res.Body.Close()
}
