package engine

import (
	"context"
	"net/http"
)

// A Denial is a handler's error with its own HTTP status and headers. If the answer is not an
// HTTP response of its own, it is a JSON-RPC error like others.
type Denial interface {
	error

	// HTTPHeader returns the status and the headers of the answer to the call that ctx
	// belongs to.
	HTTPHeader(ctx context.Context) (status int, h http.Header)
}

// denial is the part of a [Denial] that a reply keeps.
type denial struct {
	status int
	header http.Header
}

// Denial returns the status and the headers of the HTTP response, zero if the error is not a
// [Denial].
func (r *Reply) Denial() (status int, h http.Header) {
	if r.denial == nil {
		return 0, nil
	}
	return r.denial.status, r.denial.header
}
