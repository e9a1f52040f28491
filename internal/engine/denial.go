package engine

import (
	"context"
	"net/http"
)

// A Denial is the error of a handler that HTTP has an answer of its own for: a status, and
// headers. Where the answer is no HTTP response of its own, it is a JSON-RPC error like
// others.
type Denial interface {
	error

	// HTTPHeader returns the status and the headers of the answer to the call that ctx
	// belongs to.
	HTTPHeader(ctx context.Context) (status int, h http.Header)
}

// denial is what a reply has of a [Denial].
type denial struct {
	status int
	header http.Header
}

// Denial returns the status and the headers of the HTTP response, zero if it has none of
// its own.
func (r *Reply) Denial() (status int, h http.Header) {
	if r.denial == nil {
		return 0, nil
	}
	return r.denial.status, r.denial.header
}
