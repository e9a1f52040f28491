package engine

import (
	"context"
	"net/http"
)

// A Denial is a handler's error with its own HTTP status and headers. Where an error cannot be sent
// as a separate HTTP response, such as on a pipe or on a stream that has begun, a Denial is sent as
// a JSON-RPC error like any other.
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
