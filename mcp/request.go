package mcp

import (
	"context"
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/bridge"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// request sends a request that the program makes; the client's own functions answer questions. The
// params and the result are objects in the inner form. If the server makes a task of the request,
// request waits for it.
func (s *Session) request(ctx context.Context, method string, params json.RawMessage, opts []CallOption) (raw json.RawMessage, err error) {
	return s.outgoing(opts).send(ctx, s, method, params)
}

// outgoing is one request of the API with its options.
type outgoing struct {
	bridge.Call
	opts callOptions
}

// outgoing prepares a request of the API.
func (s *Session) outgoing(opts []CallOption) *outgoing {
	x := new(outgoing)
	x.opts.idle = s.remote.Limits.Idle
	for _, f := range opts {
		f(&x.opts)
	}
	return x
}

// send sends the request and waits for its result.
func (x *outgoing) send(ctx context.Context, s *Session, method string, params json.RawMessage) (raw json.RawMessage, err error) {
	if x.opts.onBehalf {
		return x.sendOnBehalf(ctx, s, method, params)
	}
	if err := x.begin(ctx, s, method, params); err != nil {
		return nil, err
	}
	defer func() { err = x.End(err) }() // a function of the call may end the goroutine
	return x.Wait()
}

// begin begins the request without sending it. On success, End must follow.
func (x *outgoing) begin(ctx context.Context, s *Session, method string, params json.RawMessage) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	params, err := x.opts.check(params)
	if err == nil {
		x.Begin(ctx, &s.remote, method, params, bridge.Options{
			Idle: x.opts.idle, Listener: x, Progress: x.opts.progress != nil, Fresh: x.opts.fresh, Header: x.opts.header,
		})
	}
	return err
}

// sendOnBehalf sends the request on behalf of the caller of ctx.
func (x *outgoing) sendOnBehalf(ctx context.Context, s *Session, method string, params json.RawMessage) (json.RawMessage, error) {
	call := engine.From(ctx)
	if call == nil {
		return nil, ErrNoCall
	}
	params, err := x.opts.check(params)
	if err != nil {
		return nil, err
	}
	raw, err := s.remote.OnBehalf(ctx, call, method, params, bridge.Options{Idle: x.opts.idle, Header: x.opts.header})
	return raw, notSupported(err)
}

// check returns params with the _meta of the options, or what is wrong with the options.
func (o *callOptions) check(params json.RawMessage) (json.RawMessage, error) {
	if err := checkHeader(o.header); err != nil {
		return nil, err
	}
	return o.meta.with(params)
}

// Note implements [bridge.Listener].
func (x *outgoing) Note(method string, params json.RawMessage) {
	s, o := (*Session)(x.Remote().Owner.(*owner)), &x.opts
	switch {
	case method == revision.NoteProgress:
		if o.progress == nil {
			return
		}
		var w struct {
			Done    float64 `json:"progress"`
			Total   float64 `json:"total"`
			Message string  `json:"message"`
		}
		if jsonx.Unmarshal(params, &w) != nil || o.told && w.Done <= o.done { // PROG-26-003
			s.log.Debug("progress that does not grow ignored", "params", text.Short(string(params)))
			return
		}
		o.told, o.done = true, w.Done
		_ = s.user.Run(context.Background(), "OnProgress", func() error { o.progress(w.Done, w.Total, w.Message); return nil })
	case method == revision.NoteMessage && o.log != nil:
		if e := newEvent(method, params); e.Log != nil {
			_ = s.user.Run(context.Background(), "OnLog", func() error { o.log(*e.Log); return nil })
		}
	default:
		s.remote.Note(method, params)
	}
}
