package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// OnBehalf sends a request from the client itself and returns its result in the inner form.
// Questions, progress and log messages go to the caller of another call. If the server makes a task
// of the request, OnBehalf waits for it. Of the options, it uses Idle and Header.
//
// If the caller gets questions in results, the error is engine.ErrSuspended until the answer is
// there: the handler of the other call returns it, runs again with the answer, and calls OnBehalf
// again. Meanwhile a server that asks in requests of its own keeps waiting, as with
// [Remote.Forward].
func (r *Remote) OnBehalf(ctx context.Context, call *engine.Call, method string, params json.RawMessage, o Options) (json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var caps json.RawMessage
	if !call.While(func() { caps = bytes.Clone(forwardCapabilities(call)) }) {
		return nil, ErrNoCall
	}
	r.wantLevel(ctx, call)
	params = bytes.Clone(params) // a server that keeps waiting still has them
	begin := func(caps json.RawMessage) *Call {
		x := &Call{r: r, method: method, params: params, caps: caps, front: call, header: o.Header, logLevel: call.LogLevel(), waits: true, asked: r.asked.Load()}
		x.timer.idle, x.timer.total = o.Idle, r.Limits.CallLimit
		x.turn = &turn{by: askedOf(call), session: call.Session(), front: call}
		if revision.Asks(method) && (call.ProgressWanted() || o.Idle > 0) {
			x.setToken()
		}
		return x
	}
	var x *Call
	var raw json.RawMessage
	var err error
	byResult := !r.Rev.Sessions && !r.Local // the server asks in results, so it does not wait
	if byResult {
		x = begin(withoutTasks(caps))
		x.memo, x.turn = call, nil
		raw, err = x.run(ctx)
	}
	if !byResult || needsTask(err) {
		if x = begin(takingTasks(caps)); comesBack(call) {
			raw, err = r.hold(ctx, call, x)
		} else {
			raw, err = x.straight(ctx)
		}
	}
	if errors.Is(err, engine.ErrSuspended) {
		return nil, err
	}
	if err != nil {
		err = x.lacking(err)
	}
	return raw, x.fail(err)
}

// lacking returns the error of a call on behalf of a caller that does not support its question: a
// *engine.LacksError, whatever the server made of it. It returns any other error unchanged.
func (x *Call) lacking(err error) error {
	if x.turn != nil {
		if lacks := x.turn.lacks.Load(); lacks != nil {
			return lacks
		}
	}
	var end *unsupportedQuestion
	if errors.As(err, &end) {
		return end.lacks
	}
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || rpc.Code != revision.CodeMissingCapability {
		return err
	}
	// The server speaks 2026-07-28 and knows the capabilities of the caller, so it did not ask.
	required, ok := jsonx.Lookup(rpc.Data, "requiredCapabilities")
	if !ok {
		return err
	}
	var what []string
	for name := range jsonx.Members(required) {
		what = append(what, text.Short(string(name)))
	}
	return &engine.LacksError{What: strings.Join(what, ", "), Required: required}
}

// withoutTasks removes the tasks extension.
func withoutTasks(caps json.RawMessage) json.RawMessage {
	ext, ok := jsonx.Lookup(caps, "extensions")
	if !ok {
		return caps
	}
	return jsonx.With(nil, caps, "extensions", jsonx.Without(nil, ext, revision.Tasks))
}
