package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// Handle forwards a request to the server, and its questions, progress and log
// messages to the caller of ctx, whatever revisions the two speak. Ids, progress
// tokens, and what _meta says about a hop belong to that hop and are made anew (T-01,
// T-04 of the translation rules).
//
// Each request that is forwarded says who has forwarded it, in _meta as dev.patchbay/hops and in the
// HTTP header Patchbay-Hops. One that this session, or the gateway that it belongs to, has forwarded
// already, or 8 others have, is refused: it goes in circles.
//
// Of what the server lets clients keep, only what is public is kept here: a result that is
// private to one caller is never given to another.
//
// A server that asks by requests of its own, in front of a caller that is asked by
// results, is left waiting with its call open until the caller comes back with the
// answer, for at most 15 minutes.
//
// A question of a legacy server that names no call goes to the session of the caller. Where it
// could belong to several callers it is refused; from then on their calls take turns, for which a
// call waits at most 5 minutes. Calls of one caller without a session do so for at most 2 seconds.
func (s *Session) Handle(ctx context.Context, req *Request) (Result, error) {
	if s.local != nil {
		var res Result
		err := s.user.Run(ctx, req.Method, func() (err error) { res, err = s.local.h.Handle(ctx, req); return err })
		return res, err
	}
	call := engine.From(ctx)
	hops := hopsOf(call, req)
	if err := hop.Check(hops, s.hop()); err != nil {
		return nil, Errorf(CodeInternal, "%v", err)
	}
	switch req.Method {
	case revision.MethodDiscover:
		return s.forwardInfo(), nil
	case revision.MethodListen:
		return s.forwardListen(ctx, call, req)
	case revision.NoteRootsChanged:
		return RawResult(`{}`), s.tellRootsChanged(ctx)
	}
	if revision.OfTasks(req.Method) && (s.rev.Sessions || s.mayBecome(call)) {
		return s.forwardTask(ctx, call, req)
	}
	if err := s.mayPass(call, req); err != nil {
		return nil, err
	}
	params, err := forwardParams(req.Method, req.Params)
	if err != nil {
		return nil, err
	}
	x := &outgoingCall{s: s, method: req.Method, cache: cachePublic, params: params, front: call}
	if own := call != nil && s.face != nil && call.Session() == s.face.local.session; own {
		// The session in front has a clock and a cache, and is no other hop.
		x.hops, x.cache = hops, cacheNone
	} else {
		x.hops = s.hopsAfter(hops)
		x.clock.silent, x.clock.total = s.silence(req.Method), s.limits.CallLimit
	}
	if call == nil {
		x.caps = json.RawMessage(`{}`)
		x.note = func(string, json.RawMessage) {}
		x.ask = func(context.Context, []engine.Question) ([]json.RawMessage, error) { return nil, ErrNoCall }
		raw, err := x.run(ctx)
		if err != nil {
			return nil, publicError(err)
		}
		if req.Method == revision.MethodTools {
			raw = s.forwardTools(raw)
		}
		return RawResult(raw), nil
	}
	if err := s.checkForwarded(call, req.Method, req.Params); err != nil {
		return nil, err
	}
	x.caps, x.self = forwardCapabilities(call), forwardIdentity(call)
	if s.rev.Sessions {
		x.turn = &turn{by: askedOf(call), session: call.Session(), front: call}
	}
	x.logLevel = call.LogLevel()
	s.wantLevel(ctx, call)
	x.memo = call
	// The caller may want no progress; it shows all the same that the server is at work.
	if call.ProgressWanted() || revision.Asks(req.Method) && x.clock.silent > 0 {
		x.setToken()
	}

	var raw json.RawMessage
	switch {
	case req.Method == revision.MethodCall && s.mayBecome(call) && call.TakesTask():
		return s.lendHere(call, x)
	case !s.rev.Sessions:
		if raw, err = x.run(ctx); needsTask(err) && call.Peer.Revision.Sessions {
			raw, err = x.insideTask(ctx)
		}
	case !revision.Asks(req.Method):
		raw, err = x.run(ctx)
	default:
		lends, refused := s.lends(ctx, call, req.Method, x.params)
		if refused != nil {
			return nil, refused
		}
		if lends {
			res, err := s.lend(ctx, call, x)
			if err != nil {
				return nil, s.forwardError(call, req.Method, publicError(err))
			}
			return res, nil
		}
		if comesBack(call) {
			raw, err = s.hold(ctx, call, x)
		} else {
			raw, err = x.straight(ctx)
		}
	}
	switch {
	case err != nil:
		return s.forwardFailure(call, req.Method, err)
	case x.handle != nil:
		id, _ := taskID(x.handle)
		s.passed.give(call, id)
		return &CreateTaskResult{Task: x.handle, drop: func() { s.abandon(id) }}, nil
	case req.Method != revision.MethodTools:
	case s.mayBecome(call):
		raw = s.forwardTools(revision.WithTaskSupport(raw))
	case s.rev.CoreTasks && !s.coreTasks():
		raw = s.forwardTools(revision.WithoutExecution(raw)) // the server has no tasks, whatever its tools say
	default:
		raw = s.forwardTools(raw)
	}
	return RawResult(raw), nil
}

// forwardInfo is what the server said of itself, with the tasks of 2025-11-25 in the
// inner form.
func (s *Session) forwardInfo() *ServerInfo {
	said := s.Server()
	if !said.Capabilities.Has("tasks") {
		return said
	}
	info := *said
	info.Capabilities = maps.Clone(info.Capabilities)
	delete(info.Capabilities, "tasks")
	if s.coreTasks() {
		info.Capabilities["extensions"] = jsonx.With(nil, info.Capabilities["extensions"], revision.Tasks, []byte(`{}`))
	}
	return &info
}

// forwardFailure is what the caller in front gets of a request without a result.
func (s *Session) forwardFailure(call *engine.Call, method string, err error) (Result, error) {
	var end *unanswered
	var none *noAnswer
	switch {
	case errors.Is(err, engine.ErrSuspended):
		return nil, err
	case errors.As(err, &none): // T-24
		if method == revision.MethodCall {
			return &ToolResult{Content: []Content{Text(none.Error())}, IsError: true}, nil
		}
		return nil, Errorf(CodeInternal, "%v", none)
	case errors.As(err, &end):
		return end.answer(call, method)
	}
	if pages := requiredPages(err); pages != nil {
		return forwardPages(call, method, err, pages)
	}
	if res, ok := lacking(call, method, err); ok {
		return res, nil
	}
	return nil, s.forwardError(call, method, publicError(err))
}

// forwardError turns an error of the server into one for the caller in front.
func (s *Session) forwardError(call *engine.Call, method string, err error) error {
	var rpc *Error
	if !errors.As(err, &rpc) {
		return err
	}
	uri, _ := jsonx.Lookup(rpc.Data, "uri")
	free := rpc.Code >= -32019 && rpc.Code <= -32000 && rpc.Code != CodeResourceNotFound
	switch {
	case method == revision.MethodRead && !s.rev.Sessions && rpc.Code == CodeInvalidParams && uri != nil:
		return &Error{Code: CodeResourceNotFound, Message: rpc.Message, Data: rpc.Data} // T-131
	case rpc.Code == CodeHeaderMismatch, rpc.Code == CodeUnsupportedVersion:
		// The fault is between this hop and the server (T-18, T-133).
		return Errorf(CodeInternal, "the server refused the forwarded request: %s", clip(rpc.Message))
	case free && !call.Peer.Revision.Sessions:
		// The modern era gives no meaning to these codes (T-139).
		return &Error{Code: CodeInternal, Message: rpc.Message, Data: encode(map[string]int{"code": rpc.Code})}
	}
	return err
}

// hops is who forwards by a session.
type hops struct {
	once sync.Once
	id   string
	own  json.RawMessage // the list of a request that nobody has forwarded before
	head http.Header     // the same
}

// hop is the id of who forwards by the session: of a gateway, whose id is among the headers of the
// client, or else the session's own.
func (s *Session) hop() string {
	h := &s.hops
	h.once.Do(func() {
		if h.id = s.client.Header.Get(hop.Header); h.id == "" {
			h.id = hop.New()
		}
		h.own, h.head = hop.Append(nil, h.id), http.Header{hop.Header: {h.id}}
	})
	return h.id
}

// hopsAfter is the list of a request that the session forwards after others.
func (s *Session) hopsAfter(list json.RawMessage) json.RawMessage {
	id := s.hop()
	if len(list) == 0 {
		return s.hops.own
	}
	return hop.Append(list, id)
}

// hopsOf is the list of those who have forwarded a request before it came here, nil for nobody.
func hopsOf(call *engine.Call, req *Request) (list json.RawMessage) {
	if call != nil && call.Msg != nil {
		list, _ = call.Msg.ParamIn("_meta", hop.Meta)
	} else {
		list, _ = jsonx.LookupPath(req.Params, "_meta", hop.Meta)
	}
	return list
}

// forwardCapabilities declares to a modern server what the caller can answer (T-15). It
// may share bytes with the request.
func forwardCapabilities(call *engine.Call) json.RawMessage {
	caps := orObject(call.Peer.Capabilities)
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

// clientCapabilities are passed on. Of the others that a client may declare, which it may make
// up, these stay behind, and what a lax reader takes for any of them.
var (
	clientCapabilities = revision.Known{"elicitation", "sampling", "roots", "extensions"}
	hiddenCapabilities = revision.Known{"tasks", "experimental"}
)

func hides(capability []byte) bool {
	return hiddenCapabilities.Has(capability) || hiddenCapabilities.Check(capability) != nil || clientCapabilities.Check(capability) != nil
}

// maxIdentity bounds what is passed on of how a caller describes itself: it goes with each
// request.
const maxIdentity = 4 << 10

// forwardIdentity is how the caller names itself, for a modern server (T-11); nil if that is
// not as the specification wants it, so that this client names itself. It may share bytes with
// the request.
func forwardIdentity(call *engine.Call) json.RawMessage {
	info := call.Peer.Info
	if len(info) > maxIdentity {
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

// tellRootsChanged tells a legacy server that the roots have changed (T-58). For others there
// is no such notification, and they ask anew in each call.
func (s *Session) tellRootsChanged(ctx context.Context) error {
	if !s.rev.Sessions || s.client.Roots == nil {
		return nil
	}
	return publicError(s.wire.Notify(ctx, revision.NoteRootsChanged, nil))
}

// takingTasks declares the extension of tasks.
func takingTasks(caps json.RawMessage) json.RawMessage {
	ext, _ := jsonx.Lookup(caps, "extensions")
	return jsonx.With(nil, caps, "extensions", jsonx.With(nil, orObject(ext), revision.Tasks, []byte(`{}`)))
}

// needsTask tells whether a server of 2026-07-28 refused a call because it would not be
// taken a task from.
func needsTask(err error) bool {
	if err == nil {
		return false
	}
	var rpc *Error
	if !errors.As(err, &rpc) || rpc.Code != CodeMissingCapability {
		return false
	}
	_, ok := jsonx.LookupPath(rpc.Data, "requiredCapabilities", "extensions", revision.Tasks)
	return ok
}

// insideTask makes a call again, for a caller whose revision cannot say that it takes a
// task: the task is waited for here (T-108, T-109).
func (x *outgoingCall) insideTask(ctx context.Context) (json.RawMessage, error) {
	again := &outgoingCall{s: x.s, method: x.method, params: x.params, caps: takingTasks(x.caps), self: x.self, hops: x.hops,
		logLevel: x.logLevel, tokenID: x.tokenID, tokenRaw: x.tokenRaw, tokenLen: x.tokenLen, front: x.front, memo: x.memo}
	again.clock.silent, again.clock.total = x.clock.silent, x.clock.total
	again.onTask = func(ctx context.Context, handle json.RawMessage) (json.RawMessage, error) {
		return again.finishTask(ctx, handle)
	}
	return again.run(ctx)
}

// forwardNote passes on a notification of a forwarded call.
func (s *Session) forwardNote(call *engine.Call, method string, params json.RawMessage) {
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
		(*inbox)(s).Note(method, params) // for those who listen, whatever stream it came on
		return
	case revision.NoteCancelled, revision.NoteAcknowledged:
		return // it names a request of this hop, or none (T-01)
	}
	// A caller that is gone ends the call by its context.
	_ = call.Emit(method, params)
}

func (s *Session) forwardListen(ctx context.Context, call *engine.Call, req *Request) (Result, error) {
	if call == nil {
		return nil, ErrNoCall
	}
	f, err := filterOf(req)
	if err != nil {
		return nil, err
	}
	asked := len(f.URIs)
	f.Tasks = slices.DeleteFunc(f.Tasks, func(id string) bool { return !s.passed.may(call, id) })
	if s.rev.Sessions {
		f = f.offered(s.Server().Capabilities) // T-51
	}
	// A server that does not acknowledge is given up like one that does not answer; what comes
	// later has no limit.
	within, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	heard := func() {}
	if silent := s.silence(req.Method); silent > 0 {
		late := time.AfterFunc(silent, func() { giveUp(&LimitError{Limit: silent}) })
		defer late.Stop()
		heard = func() { late.Stop() }
	}
	ack := func(honoured filter) error {
		heard()
		if len(honoured.URIs) < asked && call.Peer.Revision.Sessions {
			return Errorf(CodeInvalidParams, "the server takes no subscription to this resource") // T-50
		}
		return call.Emit(revision.NoteAcknowledged, encode(map[string]filter{"notifications": honoured}))
	}
	emit := func(method string, params json.RawMessage) error {
		heard()
		return call.Emit(method, withoutMeta(params, engine.MetaSubscription))
	}
	err = s.listen(within, f, listenEnvelope(call, f), ack, emit)
	var limit *LimitError
	switch {
	case ctx.Err() != nil:
	case errors.As(context.Cause(within), &limit):
		return nil, limit
	case err != nil:
		return nil, err
	}
	return RawResult(`{}`), nil
}

// listenEnvelope is what a modern server is told of a caller in front who listens.
func listenEnvelope(call *engine.Call, f filter) envelope {
	e := envelope{self: forwardIdentity(call), caps: forwardCapabilities(call)}
	if len(f.Tasks) > 0 {
		e.caps = takingTasks(e.caps) // a caller of 2025-11-25 cannot say so here
	}
	return e
}

// comesBack tells whether a caller may be asked something, by a result, and come back with
// the answer: one that does not wait and can answer anything.
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

// straight runs a call to a legacy server for a caller that is asked, if at all, while it
// waits. No question is open any more when it returns.
func (x *outgoingCall) straight(ctx context.Context) (raw json.RawMessage, err error) {
	if err := x.s.enter(ctx, x.turn); err != nil {
		return nil, err
	}
	defer func() { x.s.calls.leave(x.turn, answered(err)) }()
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
	var end *unanswered
	if errors.As(context.Cause(ctx), &end) { // whatever the server says to that
		return nil, end
	}
	return raw, err
}

// openQuestions are those that a caller is asked while its call waits for the server.
type openQuestions struct {
	wg sync.WaitGroup // Add is guarded by mu

	mu     sync.Mutex
	ctx    context.Context // of all questions, nil before the first; guarded by mu
	cancel context.CancelCauseFunc
	over   bool // guarded by mu
}

var errAnsweredUnasked = errors.New("the server has answered without waiting for the answer")

// begin counts a question, unless it comes too late. Ctx is that of the call.
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

// end takes open questions back, and waits for that.
func (o *openQuestions) end() {
	o.mu.Lock()
	o.over = true
	if o.cancel != nil {
		o.cancel(errAnsweredUnasked)
	}
	o.mu.Unlock()
	o.wg.Wait()
}
