package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/retryafter"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// A request that a server refuses because of a rate limit has not run. A read is retried if the
// server names a time that is soon enough; for any other request the caller gets the time.
const (
	maxLater = 5 * time.Second // total wait of one request
	maxAgain = 3               // retries
)

// Send sends a request over the wire, and retries it as the server asks.
func (r *Remote) Send(ctx context.Context, out *engine.Outgoing) (json.RawMessage, error) {
	raw, err := r.Wire.Call(ctx, out)
	if err == nil || !revision.Reads(out.Method) {
		return raw, err
	}
	waited := time.Duration(0)
	for range maxAgain {
		wait, ok := RetryAfter(err)
		if !ok || waited+wait > maxLater {
			return raw, err
		}
		waited += wait
		r.Log.DebugContext(ctx, "request refused for now", "method", out.Method, "dur", wait)
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, context.Cause(ctx)
		}
		if raw, err = r.Wire.Call(ctx, out); err == nil {
			break
		}
	}
	return raw, err
}

// RetryAfter returns how long to wait before retrying a request that a server has refused for now,
// from the Retry-After header of HTTP or the data of its error. False: the server names no time.
func RetryAfter(err error) (time.Duration, bool) {
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) {
		if d, ok := retryafter.Data(rpc.Data); ok {
			return d, true
		}
	}
	var he *engine.HTTPError
	if errors.As(err, &he) {
		return retryAfterHTTP(he.Status, he.Header)
	}
	return 0, false
}

// retryAfterHTTP reads the Retry-After header of an answer that refuses a request for now.
func retryAfterHTTP(status int, h http.Header) (time.Duration, bool) {
	if status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		return 0, false
	}
	return retryafter.Header(h)
}

// WaitText returns the result of retryAfterHTTP as text, or "" if there is none.
func WaitText(status int, h http.Header) string {
	d, ok := retryAfterHTTP(status, h)
	if !ok {
		return ""
	}
	return fmt.Sprintf("; try again in %d s", int((d+time.Second-1)/time.Second))
}

// WithWait returns the JSON-RPC error of an HTTP answer, with the time to wait if only the header
// has it.
func WithWait(he *engine.HTTPError) *jsonrpc.Error {
	wait := WaitText(he.Status, he.Header)
	if _, said := jsonx.Lookup(he.RPC.Data, "retryAfter"); said || wait == "" {
		return he.RPC
	}
	out := *he.RPC
	out.Message += wait
	return &out
}

// Refusal returns the JSON-RPC error of an HTTP answer. If its status says that the answer is not one of the server's
// methods, it is a [*RefusedError].
func Refusal(he *engine.HTTPError) error {
	told := WithWait(he)
	switch he.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusTooManyRequests:
		return &RefusedError{told, he.Status}
	}
	return told
}

// RefusedError is the JSON-RPC error of a request that was refused before a method of the server got it. Another
// replica of the server need not refuse it.
type RefusedError struct {
	told   *jsonrpc.Error
	status int
}

func (e *RefusedError) Error() string { return e.told.Error() }

// Unwrap returns the JSON-RPC error.
func (e *RefusedError) Unwrap() error { return e.told }

// HTTPStatus returns the status of the answer.
func (e *RefusedError) HTTPStatus() int { return e.status }
