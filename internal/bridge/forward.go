package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Request is a request that is forwarded, in the inner form.
type Request struct {
	Method string
	Params json.RawMessage // nil if there are none
	Hops   json.RawMessage // of Remote.Hops
}

func (q Request) has(param string) bool {
	_, ok := jsonx.Lookup(q.Params, param)
	return ok
}

// text returns a member of the params that must be a string.
func (q Request) text(param string) (string, error) {
	raw, ok := jsonx.Lookup(q.Params, param)
	if !ok {
		return "", errorf(jsonrpc.CodeInvalidParams, "%s: missing %q", q.Method, param)
	}
	s, err := jsonx.Unquote(raw)
	if err != nil {
		return "", errorf(jsonrpc.CodeInvalidParams, "%s: %q must be a string", q.Method, param)
	}
	return s, nil
}

// Answer is the answer to a forwarded request.
type Answer struct {
	JSON json.RawMessage // the result, or the handle of a task
	Task bool            // it is a handle
	Drop func()          // cancels the task if its handle does not reach the caller; nil: there is nothing to cancel
}

// ToolFailure is an error of a forwarded tool call that its caller gets as a tool result with
// isError: the caller's revision has no error for it, and a model can act on the text.
type ToolFailure struct{ Text string }

func (e *ToolFailure) Error() string { return e.Text }

// Forward forwards a request to the server, and its questions, progress and log messages to the
// caller, whatever revisions the two speak. Ids, progress tokens, and the _meta members of one hop
// are created anew for each hop (T-01, T-04 of the translation rules). If call is nil, the request
// belongs to no call, and its questions and notifications reach no caller.
func (r *Remote) Forward(ctx context.Context, call *engine.Call, req Request) (Answer, error) {
	if ctx.Err() != nil {
		return Answer{}, context.Cause(ctx)
	}
	if revision.OfTasks(req.Method) && (r.Rev.Sessions || r.mayBecome(call)) {
		return r.forwardTask(ctx, call, req)
	}
	if err := r.mayPass(call, req); err != nil {
		return Answer{}, err
	}
	params, err := forwardParams(req.Method, req.Params)
	if err != nil {
		return Answer{}, err
	}
	x := &Call{r: r, method: req.Method, cache: cachePublic, params: params, front: call, asked: r.asked.Load()}
	x.hops = req.Hops
	if call == nil || !call.Peer.Local { // a caller in this process does not count as a hop
		x.hops = r.hopsAfter(req.Hops)
	}
	if r.fromFront(call) {
		x.cache, x.header = cacheNone, call.Header // the session in front has a timer and a cache
	} else {
		x.timer.idle, x.timer.total = r.IdleLimit(req.Method), r.Limits.CallLimit
	}
	if call == nil {
		x.caps = json.RawMessage(`{}`)
		x.note = func(string, json.RawMessage) {}
		x.ask = func(context.Context, []engine.Question) ([]json.RawMessage, error) { return nil, ErrNoCall }
		raw, err := x.run(ctx)
		if err != nil {
			return Answer{}, x.fail(err)
		}
		if req.Method == revision.MethodTools {
			raw = r.forwardTools(raw)
		}
		return Answer{JSON: raw}, nil
	}
	if err := r.checkForwarded(call, req.Method, req.Params); err != nil {
		return Answer{}, err
	}
	x.caps, x.self = forwardCapabilities(call), forwardIdentity(call)
	if r.Rev.Sessions {
		x.turn = &turn{by: askedOf(call), session: call.Session(), front: call}
	}
	x.logLevel = call.LogLevel()
	r.wantLevel(ctx, call)
	x.memo = call
	// Even if the caller wants no progress, it shows that the server is at work.
	if call.ProgressWanted() || revision.Asks(req.Method) && x.timer.idle > 0 {
		x.setToken()
	}

	var raw json.RawMessage
	switch {
	case req.Method == revision.MethodCall && r.mayBecome(call) && call.TakesTask():
		return r.proxyHere(call, x)
	case !r.Rev.Sessions:
		if raw, err = x.run(ctx); needsTask(err) && call.Peer.Revision.Sessions {
			raw, err = x.insideTask(ctx)
		}
	case !revision.Asks(req.Method):
		raw, err = x.run(ctx)
	default:
		proxy, refused := r.wantsProxy(ctx, call, req.Method, x.params)
		if refused != nil {
			return Answer{}, refused
		}
		if proxy {
			ans, err := r.proxy(ctx, call, x)
			if err != nil {
				return Answer{}, x.markBegun(r.forwardError(call, req.Method, r.Owner.Public(err)))
			}
			return ans, nil
		}
		if comesBack(call) {
			raw, err = r.hold(ctx, call, x)
		} else {
			raw, err = x.straight(ctx)
		}
	}
	switch {
	case err != nil:
		return Answer{}, x.markBegun(r.forwardFailure(call, req.Method, err))
	case x.handle != nil:
		id, _ := TaskID(x.handle)
		r.owners.give(call, id)
		return Answer{JSON: x.handle, Task: true, Drop: func() { r.abandon(id) }}, nil
	case req.Method != revision.MethodTools:
	case r.mayBecome(call):
		raw = r.forwardTools(revision.WithTaskSupport(raw))
	case r.Rev.CoreTasks && !r.CoreTasks():
		raw = r.forwardTools(revision.WithoutExecution(raw)) // the server has no tasks, whatever its tools say
	default:
		raw = r.forwardTools(raw)
	}
	return Answer{JSON: raw}, nil
}

// fromFront reports whether a call is one of the client's own, which has come through its middleware.
func (r *Remote) fromFront(call *engine.Call) bool {
	return call != nil && r.own != nil && call.Session() == r.own
}

// forwardFailure returns the error for the caller in front of a request that failed.
func (r *Remote) forwardFailure(call *engine.Call, method string, err error) error {
	var end *unsupportedQuestion
	var none *noAnswer
	switch {
	case errors.Is(err, engine.ErrSuspended), errors.As(err, new(*wait.Error)):
		return err
	case errors.As(err, &none): // T-24
		if method == revision.MethodCall {
			return &ToolFailure{none.Error()}
		}
		return errorf(jsonrpc.CodeInternal, "%v", none)
	case errors.As(err, &end):
		return end.answer(call, method)
	}
	if pages := requiredURLs(err); pages != nil {
		return forwardURLs(call, method, err, pages)
	}
	if failure := lacking(call, method, err); failure != nil {
		return failure
	}
	return r.forwardError(call, method, r.Owner.Public(err))
}

// forwardError turns an error from the server into one for the caller in front.
func (r *Remote) forwardError(call *engine.Call, method string, err error) error {
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) {
		return err
	}
	uri, _ := jsonx.Lookup(rpc.Data, "uri")
	free := rpc.Code >= -32019 && rpc.Code <= -32000 && rpc.Code != revision.CodeResourceNotFound
	switch {
	case method == revision.MethodRead && !r.Rev.Sessions && rpc.Code == jsonrpc.CodeInvalidParams && uri != nil:
		return &jsonrpc.Error{Code: revision.CodeResourceNotFound, Message: rpc.Message, Data: rpc.Data} // T-131
	case rpc.Code == revision.CodeHeaderMismatch, rpc.Code == revision.CodeUnsupportedVersion:
		// The fault is between this hop and the server (T-18, T-133).
		return errorf(jsonrpc.CodeInternal, "the server refused the forwarded request: %s", text.Short(rpc.Message))
	case free && !call.Peer.Revision.Sessions && !r.fromFront(call):
		// The modern era gives no meaning to these codes (T-139).
		told := &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: rpc.Message, Data: encode(map[string]int{"code": rpc.Code})}
		if refused := (*RefusedError)(nil); errors.As(err, &refused) {
			return &RefusedError{told, refused.status}
		}
		return told
	}
	return err
}

// hops identifies the forwarder of a session's requests.
type hops struct {
	once sync.Once
	id   string
	own  json.RawMessage // the list for a request without earlier forwarders
	head http.Header     // the same as a header
}

// hop returns the id of the forwarder: of a gateway, if the client's headers carry its id, or else
// of the session itself.
func (r *Remote) hop() string {
	h := &r.hops
	h.once.Do(func() {
		if h.id = r.Hop; h.id == "" {
			h.id = hop.New()
		}
		h.own, h.head = hop.Append(nil, h.id), http.Header{hop.Header: {h.id}}
	})
	return h.id
}

// hopsAfter returns list with the session's own id appended.
func (r *Remote) hopsAfter(list json.RawMessage) json.RawMessage {
	id := r.hop()
	if len(list) == 0 {
		return r.hops.own
	}
	return hop.Append(list, id)
}

// Hops returns the list of those that have already forwarded a request, nil for none. It returns an
// error if the request is in a loop or has been forwarded too many times.
func (r *Remote) Hops(call *engine.Call, params json.RawMessage) (list json.RawMessage, err error) {
	if call != nil && call.Msg != nil {
		list, _ = call.Msg.ParamIn("_meta", hop.Meta)
	} else {
		list, _ = jsonx.LookupPath(params, "_meta", hop.Meta)
	}
	if err := hop.Check(list, r.hop()); err != nil {
		return nil, errorf(jsonrpc.CodeInternal, "%v", err)
	}
	return list, nil
}

// EnvelopeOf describes a caller in front to a modern server for a subscription. If tasks is set, it
// declares tasks too, because a caller that speaks 2025-11-25 cannot declare them there. The
// Envelope may share bytes with the request of the call.
func EnvelopeOf(call *engine.Call, tasks bool) Envelope {
	e := Envelope{Self: forwardIdentity(call), Caps: forwardCapabilities(call)}
	if tasks {
		e.Caps = takingTasks(e.Caps)
	}
	return e
}

// forwardCapabilities declares the caller's capabilities to a modern server (T-15). The result may
// share bytes with the request.
func forwardCapabilities(call *engine.Call) json.RawMessage {
	caps := jsonx.OrObject(call.Peer.Capabilities)
	for name := range jsonx.Members(caps) {
		if !clientCapabilities.Has(name) && hides(name) {
			caps = jsonx.Filter(nil, caps, func(name []byte, _ json.RawMessage) bool {
				return clientCapabilities.Has(name) || !hides(name)
			})
			break
		}
	}
	if call.Peer.Revision.Sessions && call.TakesTask() { // T-106
		caps = takingTasks(caps)
	}
	if e, ok := jsonx.Lookup(caps, "elicitation"); ok && len(e) == 2 {
		caps = jsonx.With(nil, caps, "elicitation", []byte(`{"form":{}}`))
	}
	if r, ok := jsonx.Lookup(caps, "roots"); ok && len(r) != 2 {
		caps = jsonx.With(nil, caps, "roots", []byte(`{}`))
	}
	return caps
}

// clientCapabilities are passed on. A client may also declare capabilities of its own; of these,
// hiddenCapabilities are left out, and any name that a lax reader takes for one of either list.
var (
	clientCapabilities = revision.Known{"elicitation", "sampling", "roots", "extensions"}
	hiddenCapabilities = revision.Known{"tasks", "experimental"}
)

func hides(capability []byte) bool {
	return hiddenCapabilities.Has(capability) || hiddenCapabilities.Check(capability) != nil || clientCapabilities.Check(capability) != nil
}

// MaxIdentity bounds, in bytes, the description of a caller that is passed on with each request.
const MaxIdentity = 4 << 10

// forwardIdentity returns the caller's Implementation for a modern server (T-11). It is nil if the
// caller's Implementation does not conform to the specification; this client then names itself. It
// may share bytes with the request.
func forwardIdentity(call *engine.Call) json.RawMessage {
	info := call.Peer.Info
	if len(info) > MaxIdentity {
		return nil
	}
	named, versioned := false, false
	for name, v := range jsonx.Members(info) {
		switch string(name) {
		case "name":
			named = jsonx.KindOf(v) == '"'
		case "version":
			versioned = jsonx.KindOf(v) == '"'
		default:
			if identityNames.Check(name) != nil {
				return nil
			}
		}
	}
	if !named || !versioned {
		return nil
	}
	return info
}

var identityNames = revision.Known{"name", "version", "title", "description", "websiteUrl", "icons"}

// takingTasks declares the tasks extension.
func takingTasks(caps json.RawMessage) json.RawMessage {
	ext, _ := jsonx.Lookup(caps, "extensions")
	return jsonx.With(nil, caps, "extensions", jsonx.With(nil, jsonx.OrObject(ext), revision.Tasks, []byte(`{}`)))
}

// needsTask reports whether a server that speaks 2026-07-28 refused a call because its caller does
// not accept tasks.
func needsTask(err error) bool {
	if err == nil {
		return false
	}
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || rpc.Code != revision.CodeMissingCapability {
		return false
	}
	_, ok := jsonx.LookupPath(rpc.Data, "requiredCapabilities", "extensions", revision.Tasks)
	return ok
}

// insideTask repeats a call for a caller whose revision cannot declare that it accepts tasks, and
// waits for the task here (T-108, T-109).
func (x *Call) insideTask(ctx context.Context) (json.RawMessage, error) {
	again := &Call{r: x.r, method: x.method, params: x.params, caps: takingTasks(x.caps), self: x.self, hops: x.hops,
		logLevel: x.logLevel, tokenID: x.tokenID, tokenRaw: x.tokenRaw, tokenLen: x.tokenLen, front: x.front, memo: x.memo}
	again.timer.idle, again.timer.total = x.timer.idle, x.timer.total
	again.onTask = func(ctx context.Context, handle json.RawMessage) (json.RawMessage, error) {
		return again.finishTask(ctx, handle)
	}
	defer func() { x.begun.Store(again.begun.Load()) }()
	return again.run(ctx)
}

// forwardNote passes on a notification of a forwarded call.
func (r *Remote) forwardNote(call *engine.Call, method string, params json.RawMessage) {
	switch method {
	case revision.NoteProgress:
		var w struct {
			Done    float64 `json:"progress"`
			Total   float64 `json:"total"`
			Message string  `json:"message"`
		}
		if jsonx.Unmarshal(params, &w) == nil {
			call.Progress(w.Done, w.Total, w.Message)
		}
		return
	case revision.NoteMessage:
		level, _ := jsonx.Lookup(params, "level")
		if name, err := jsonx.Unquote(level); err != nil || !call.LogEnabled(name) {
			return
		}
	case revision.NoteToolsChanged, revision.NotePromptsChanged, revision.NoteResourcesChanged, revision.NoteResourceUpdated:
		r.Note(method, params) // for subscribers, whatever stream it came on
		return
	case revision.NoteCancelled, revision.NoteAcknowledged:
		return // it names a request of this hop, or none (T-01)
	}
	// The context of the call ends when its caller is gone.
	_ = call.Emit(method, params)
}

// comesBack reports whether a caller can be asked in a result and come back with the answer: the
// caller does not wait, and declares something that it can answer.
func comesBack(call *engine.Call) bool {
	if call.Peer.Revision.Sessions || call.Peer.Local {
		return false
	}
	for name := range jsonx.Members(call.Peer.Capabilities) {
		switch string(name) {
		case "elicitation", "sampling", "roots":
			return true
		}
	}
	return false
}

// straight makes a call to a legacy server for a caller that is asked, if at all, while it waits.
// When it returns, all questions are closed.
func (x *Call) straight(ctx context.Context) (raw json.RawMessage, err error) {
	if err := x.r.enter(ctx, x.turn); err != nil {
		return nil, err
	}
	defer func() { x.r.calls.leave(x.turn, answered(err)) }()
	var open openQuestions
	defer open.end()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	x.ask = func(server context.Context, qs []engine.Question) ([]json.RawMessage, error) {
		all, ok := open.begin(ctx)
		if !ok {
			return nil, &gone{err: ErrNoCall}
		}
		defer open.wg.Done()
		asking, cancel := context.WithCancelCause(all)
		defer cancel(nil)
		defer context.AfterFunc(server, func() { cancel(context.Cause(server)) })()
		answers, err := x.front.Ask(asking, qs...)
		if end := endsWith(x.front, qs[0], err); end != nil && server.Value(unclear{}) == nil {
			giveUp(end)
		} else if err != nil && all.Err() != nil {
			return nil, &gone{err: err}
		} else if unshowable(qs[0], err) {
			return []json.RawMessage{json.RawMessage(`{"action":"decline"}`)}, nil
		}
		return answers, err
	}
	raw, err = x.run(ctx)
	var end *unsupportedQuestion
	if errors.As(context.Cause(ctx), &end) { // this takes precedence over the server's answer
		return nil, end
	}
	return raw, err
}

// openQuestions are the questions to a caller while its call waits for the server.
type openQuestions struct {
	wg sync.WaitGroup // Add is guarded by mu

	mu     sync.Mutex
	ctx    context.Context // of all questions, nil before the first; guarded by mu
	cancel context.CancelCauseFunc
	over   bool // guarded by mu
}

var errAnsweredUnasked = errors.New("the server has answered without waiting for the answer")

// begin counts a question; ok is false if the call is over. Pass it the context of the call.
func (o *openQuestions) begin(ctx context.Context) (asking context.Context, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.over {
		return nil, false
	}
	if o.ctx == nil {
		o.ctx, o.cancel = context.WithCancelCause(ctx)
	}
	o.wg.Add(1)
	return o.ctx, true
}

// end cancels open questions and waits for their end.
func (o *openQuestions) end() {
	o.mu.Lock()
	o.over = true
	if o.cancel != nil {
		o.cancel(errAnsweredUnasked)
	}
	o.mu.Unlock()
	o.wg.Wait()
}
