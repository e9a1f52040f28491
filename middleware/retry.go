package middleware

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/retryafter"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/mcp"
)

// RetryOptions configure [Retry]. Nil and the zero value mean the defaults.
type RetryOptions struct {
	Attempts int           // maximum attempts, with the first; 0: 4
	Wait     time.Duration // before the second attempt; twice as long before each further one; 0: 500 ms
	MaxWait  time.Duration // the longest wait between two attempts; 0: 10 seconds

	// Tool reports whether a call of a tool that may have run may be sent again. If nil, it may if the
	// server declares the tool read-only or idempotent. These hints are claims of the server: set Tool
	// for a server that is not trusted.
	Tool func(*mcp.Tool) bool
}

// Retry returns a middleware that sends a request again after a transient error. It is for
// Client.Use, and for a Server whose Handler is a Session.
//
// A request that has not run is sent again: there was no connection, or the server refused it for
// now (HTTP status 429 or 503 with Retry-After, or an error with retryAfter in its data). A request that may have run
// (a lost connection, HTTP status 502, 503 or 504) is sent again only if it just reads, such as a list, a
// resource or a prompt, or calls a tool that [RetryOptions.Tool] allows. Tool errors, other
// JSON-RPC errors, timeouts and the end of a session are final, and so is a call that has asked a
// question or become a task ([mcp.BegunError]), and subscriptions/listen.
//
// The backoff doubles with each attempt, with jitter, and is at least the time that the server
// names: if that is more than [RetryOptions.MaxWait], the error is returned at once. The last error
// is returned unchanged. The end of the context ends a wait: middleware in front of Retry then gets an
// error that wraps that of the context and the last one, and the caller of a Session, which does not
// wait for middleware when its context ends, gets that of the context. Retry does not cover
// Client.Dial, which makes its requests before there is a session. A [Log] in front of Retry logs a line
// for each request, and one behind it a line for each attempt.
func Retry(o *RetryOptions) mcp.Middleware {
	r := &retry{}
	if o != nil {
		r.RetryOptions = *o
	}
	if r.Attempts <= 0 {
		r.Attempts = 4
	}
	if r.Wait <= 0 {
		r.Wait = 500 * time.Millisecond
	}
	if r.MaxWait <= 0 {
		r.MaxWait = 10 * time.Second
	}
	if r.Tool == nil {
		r.Tool = declaredSafe
	}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) { return r.handle(ctx, req, next) })
	}
}

type retry struct{ RetryOptions }

func (r *retry) handle(ctx context.Context, req *mcp.Request, next mcp.Handler) (res mcp.Result, err error) {
	var f fault
	safe, known := false, false // the request may run twice
	wait := r.Wait
	for attempt := 1; ; attempt++ {
		if !f.ran || safe {
			if res, err = next.Handle(ctx, req); err == nil || req.Method == revision.MethodListen {
				return res, err
			}
			if f = faultOf(err); !f.transient || f.after > r.MaxWait {
				return nil, err
			}
		}
		if attempt >= r.Attempts {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, interrupted(ctx, err)
		}
		if f.ran && !known { // unknown while the server cannot be reached
			safe, known = r.mayRepeat(ctx, req, next)
		}
		if f.ran && known && !safe {
			return nil, err
		}
		wait = min(wait, r.MaxWait)
		pause := wait/2 + rand.N(wait/2+1)
		if f.after > 0 {
			pause = f.after + rand.N(wait/2+1)
		}
		wait *= 2
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, interrupted(ctx, err)
		}
	}
}

// interrupted is the error when the context ends between attempts, the last of which failed with err.
func interrupted(ctx context.Context, err error) error {
	if errors.Is(err, ctx.Err()) {
		return err
	}
	return &interruptedError{ctx.Err(), context.Cause(ctx), err}
}

type interruptedError struct{ ended, cause, last error }

func (e *interruptedError) Error() string {
	return fmt.Sprintf("%v; the last attempt: %v", e.cause, e.last)
}

func (e *interruptedError) Unwrap() []error { return []error{e.ended, e.cause, e.last} }

// A fault classifies an error, which is all that a middleware knows. The faults of package host are
// another concept: a host knows whether it has sent the call, and decides what to tell a model and a
// person, and what to log, for errors that are final here.
type fault struct {
	transient bool          // the same request may succeed later
	ran       bool          // it may have run
	after     time.Duration // the least pause, as the server asked
}

func faultOf(err error) fault {
	var begun mcp.BegunError
	var he *mcp.HTTPError
	var rpc *mcp.Error
	var network net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &begun) && begun.Begun(), errors.Is(err, mcp.ErrSessionLost), errors.Is(err, mcp.ErrClosed), errors.Is(err, context.DeadlineExceeded):
		return fault{}
	case errors.As(err, &he):
		after, named := retryafter.Header(he.Header)
		switch {
		case he.Status == http.StatusTooManyRequests, he.Status == http.StatusServiceUnavailable && named:
			return fault{transient: true, after: after}
		case he.Status == http.StatusBadGateway, he.Status == http.StatusServiceUnavailable, he.Status == http.StatusGatewayTimeout:
			return fault{transient: true, ran: true}
		}
		return fault{}
	case errors.As(err, &rpc):
		after, named := retryafter.Data(rpc.Data)
		return fault{transient: named, after: after}
	case errors.As(err, &op) && op.Op == "dial":
		return fault{transient: true}
	case errors.As(err, &network), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return fault{transient: true, ran: true}
	}
	return fault{}
}

// mayRepeat reports whether a request that may have run may be sent again. That is not known if the
// server does not answer.
func (r *retry) mayRepeat(ctx context.Context, req *mcp.Request, next mcp.Handler) (safe, known bool) {
	if req.Method != revision.MethodCall {
		return revision.Reads(req.Method), true
	}
	t, err := toolOf(ctx, nameOf(req), next)
	return t != nil && r.Tool(t), err == nil
}

func declaredSafe(t *mcp.Tool) bool {
	yes := func(hint *bool) bool { return hint != nil && *hint }
	return t.Annotations != nil && (yes(t.Annotations.ReadOnly) || yes(t.Annotations.Idempotent))
}

// maxPages bounds the pages of a list.
const maxPages = 1000

// toolOf returns the definition of a tool, or nil if the server does not list it.
func toolOf(ctx context.Context, name string, next mcp.Handler) (*mcp.Tool, error) {
	params := []byte(`{}`)
	for range maxPages {
		res, err := next.Handle(ctx, &mcp.Request{Method: revision.MethodTools, Params: params})
		if err != nil {
			return nil, err
		}
		raw := res.JSON()
		tools, _ := jsonx.Lookup(raw, "tools")
		for e := range jsonx.Elements(tools) {
			if n, ok := jsonx.Lookup(e, "name"); ok && stringOf(n) == name {
				t := new(mcp.Tool)
				return t, jsonx.Unmarshal(e, t)
			}
		}
		cursor, ok := jsonx.Lookup(raw, "nextCursor")
		if !ok || string(cursor) == "null" {
			break
		}
		params = append(append([]byte(`{"cursor":`), cursor...), '}')
	}
	return nil, nil
}
