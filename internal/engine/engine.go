package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Limits bound the work that callers can cause. All fields must be set.
type Limits struct {
	CallTimeout time.Duration // of one run of a handler; 0 for none
	Rounds      int           // of questions in one call
}

// A Handler answers one call. An error that is or wraps a *jsonrpc.Error is
// answered as that; ErrSuspended and LacksError have their own answers.
type Handler func(ctx context.Context, c *Call) (Result, error)

// Engine serves calls with a Handler. Its fields are set before use and not changed afterwards.
// It is safe for concurrent use.
type Engine struct {
	Handler   Handler
	Revisions []*revision.Table // served, oldest first
	Info      json.RawMessage   // the server's Implementation
	Sealer    *Sealer
	Lists     Hint // for results of lists and of server/discover without a hint
	Limits    Limits
	Logger    *slog.Logger

	// Watch calls tell with changes of all lists, or of the resource uri if that is not empty,
	// until stop is called. It replaces subscriptions/listen of Handler for legacy sessions. If
	// nil, Handler listens, on a goroutine for each subscription.
	Watch func(uri string, tell func(method string, params json.RawMessage) error) (stop func())

	// TellRoots makes the engine call Handler with notifications/roots/list_changed when the
	// client of a legacy session sends it. The context is that of the session; the result is
	// dropped.
	TellRoots bool

	// OnSession is called with the context of each session that is open, by Opened. May be nil.
	OnSession func(session context.Context)

	// User runs the handler and other code of the user. Nil means the zero value.
	User *usercode.Runner

	shared   sharedPeers // of legacy sessions
	lists    []byte      // `,"ttlMs":…,"cacheScope":…` for results of the lists that have none
	tail     []byte      // `,"_meta":{serverInfo}` for results without a _meta
	versions []byte      // names of the revisions served, as a JSON array
}

// Init prepares the engine; it is called once, after the fields are set.
func (e *Engine) Init() {
	e.lists = e.Lists.append(nil)
	e.tail = append([]byte(`,"_meta":{"`+MetaServerInfo+`":`), e.Info...)
	e.tail = append(e.tail, '}')
	e.versions = []byte{'['}
	for i, name := range revision.Names(e.Revisions) {
		if i > 0 {
			e.versions = append(e.versions, ',')
		}
		e.versions = jsonx.AppendString(e.versions, name)
	}
	e.versions = append(e.versions, ']')
}

// Reply is the answer to one request.
type Reply struct {
	ID     jsonrpc.ID
	Result json.RawMessage // in its final form, but for head and tail; nil if Err is set
	Err    *jsonrpc.Error  // with the code of the caller's revision

	// Refused reports whether the request was refused before a handler ran.
	Refused bool

	plain  bool    // Result is one line
	tail   []byte  // of a complete modern result: members behind those of a plain Result; nil otherwise
	pooled *[]byte // the pooled buffer of Result; nil: it has none
	drop   func()  // see Result; nil for nothing
	denial *denial // nil: none
}

// Append appends the response message and grows dst at most once.
func (r *Reply) Append(dst []byte) []byte {
	if r.Err != nil {
		return jsonrpc.AppendError(dst, r.ID, r.Err)
	}
	dst = buffer.Grow(dst, len(r.Result)+len(r.tail)+replyRoom)
	if !r.plain {
		return jsonrpc.AppendResult(dst, r.ID, r.Result)
	}
	dst = jsonrpc.AppendResultHead(dst, r.ID)
	if r.tail == nil {
		return append(append(dst, r.Result...), '}')
	}
	dst = append(dst, `{"resultType":"complete"`...)
	if members := r.Result[1 : len(r.Result)-1]; len(members) > 0 {
		dst = append(append(dst, ','), members...)
	}
	return append(append(dst, r.tail...), "}}"...)
}

// replyRoom bounds the bytes of a response besides its result.
const replyRoom = 128

// Release returns the buffer of the reply. The reply must not be used afterwards.
func (r *Reply) Release() {
	if r.pooled != nil {
		buffer.Put(r.pooled)
		*r = Reply{}
	}
}

// Drop tells the handler that the reply does not reach the caller. It is called before Release,
// and at most once.
func (r *Reply) Drop() {
	if r.drop != nil {
		r.drop()
	}
}

// Status returns the HTTP status of a reply to a modern request (2026-07-28,
// basic/transports/streamable-http; Q-04).
func (r *Reply) Status() int {
	if r.Err == nil {
		return http.StatusOK
	}
	switch r.Err.Code {
	case revision.CodeHeaderMismatch, revision.CodeMissingCapability, revision.CodeUnsupportedVersion:
		return http.StatusBadRequest
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	}
	if r.Refused {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

func refuse(id jsonrpc.ID, code int, format string, args ...any) Reply {
	return Reply{ID: id, Refused: true, Err: &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}}
}

// IsModern reports whether a request or notification belongs to the modern era: it names its
// version in _meta (VER-26, era table of the server).
func IsModern(msg *jsonrpc.Message) bool {
	_, ok := msg.ParamIn("_meta", MetaVersion)
	return ok
}

// meta holds the protocol's members of a request's _meta as raw JSON, or nil if absent.
type meta struct{ version, info, capabilities, logLevel, token json.RawMessage }

func metaOf(msg *jsonrpc.Message) (m meta) {
	m.version, _ = msg.ParamIn("_meta", MetaVersion)
	m.info, _ = msg.ParamIn("_meta", MetaClientInfo)
	m.capabilities, _ = msg.ParamIn("_meta", MetaCapabilities)
	m.logLevel, _ = msg.ParamIn("_meta", MetaLogLevel)
	m.token, _ = msg.ParamIn("_meta", "progressToken")
	return m
}

// Peer reads the caller from the _meta of a modern request, and returns the version there. If
// required fields are missing, refused is the reply (META-26: -32602).
func (e *Engine) Peer(ctx *Context, msg *jsonrpc.Message, principal string) (version string, refused *Reply) {
	m := metaOf(msg)
	ctx.call.logLevel = string(m.logLevel) // raw, until admitModern
	ctx.call.progress = newProgress(m.token)
	if m.version == nil {
		r := refuse(msg.ID, jsonrpc.CodeInvalidParams, "missing _meta member %q; this server speaks %s",
			MetaVersion, strings.Join(revision.Names(e.Revisions), ", "))
		return "", &r
	}
	if jsonx.KindOf(m.version) != '"' {
		r := refuse(msg.ID, jsonrpc.CodeInvalidParams, "_meta member %q must be a string", MetaVersion)
		return "", &r
	}
	if jsonx.KindOf(m.capabilities) != '{' {
		r := refuse(msg.ID, jsonrpc.CodeInvalidParams, "missing _meta member %q, an object", MetaCapabilities)
		return "", &r
	}
	ctx.peer = Peer{Capabilities: m.capabilities, Principal: principal}
	if jsonx.KindOf(m.info) == '{' {
		ctx.peer.Info = m.info
	}
	for _, t := range e.Revisions {
		if string(m.version[1:len(m.version)-1]) == t.Name {
			ctx.peer.Revision = t
			return t.Name, nil
		}
	}
	version, _ = jsonx.Unquote(m.version) // known to be a string
	ctx.peer.Revision = revision.Find(e.Revisions, version)
	return version, nil
}

// Modern serves a self-contained request after [Engine.Peer] has read the caller into the same
// ctx. If the handler ends the goroutine, so that Modern does not return, reply is [Failed].
func (e *Engine) Modern(ctx *Context, msg *jsonrpc.Message, version string, header http.Header, ex Exchange, reply *Reply) {
	*reply = Failed(msg.ID) // if the handler ends the goroutine
	if e.admitModern(ctx, msg, version, header, ex, reply) {
		res, err := e.run(ctx, &ctx.call)
		e.conclude(ctx, &res, err, reply)
	}
}

// Failed is the reply to a request whose handler panicked or ended its goroutine.
func Failed(id jsonrpc.ID) Reply { return Reply{ID: id, Err: errFailed} }

// errFailed is shared and must not be changed.
var errFailed = AsError(usercode.Failed())

// The steps before and after the handler are functions of their own, so that their frames are not
// on the stack below it, and replies are returned through pointers, because the collector shrinks
// the stacks of idle connections, and they must grow again for larger frames.

// admitModern makes the call of ctx. It returns false if it has refused the request in reply.
func (e *Engine) admitModern(ctx *Context, msg *jsonrpc.Message, version string, header http.Header, ex Exchange, reply *Reply) (ok bool) {
	peer, c := &ctx.peer, &ctx.call
	switch {
	case peer.Revision == nil || peer.Revision.Sessions:
		*reply = e.unsupported(msg.ID, version)
		return false
	case !peer.Revision.Has(msg.Method):
		*reply = refuse(msg.ID, jsonrpc.CodeMethodNotFound, "revision %s has no method %q", version, msg.Method)
		return false
	}
	rawLevel := c.logLevel
	*c = Call{Method: msg.Method, Params: msg.Params, Msg: msg, Peer: peer, Header: header, of: ctx, ex: ex, progress: c.progress}
	if rawLevel != "" {
		level, err := jsonx.Unquote([]byte(rawLevel))
		if err != nil || LevelIndex(level) < 0 {
			*reply = refuse(msg.ID, jsonrpc.CodeInvalidParams, "_meta member %q is not a level: %s", MetaLogLevel, strings.Join(levels, ", "))
			return false
		}
		c.logLevel = level
	}
	if msg.Method == revision.MethodListen {
		c.rare = &rare{tag: msg.ID.AppendJSON(nil)}
	}
	if revision.Asks(msg.Method) {
		c.asker = ctx
		var err error
		if ctx.asking, err = e.answered(ctx, msg, peer.Principal); err != nil {
			*reply = e.failure(ctx, c, msg.ID, err)
			return false
		}
	}
	return true
}

// conclude makes the reply from the handler's result or error. An invalid result is a failure of
// the handler.
func (e *Engine) conclude(ctx *Context, res *Result, err error, reply *Reply) {
	if e.User.Run(ctx, ctx.call.Method, func() error { e.concluded(ctx, res, err, reply); return nil }) != nil {
		*reply = Failed(ctx.call.Msg.ID)
		if res.Drop != nil {
			res.Drop()
		}
	}
}

func (e *Engine) concluded(ctx *Context, res *Result, err error, reply *Reply) {
	c := &ctx.call
	id := c.Msg.ID
	switch a := ctx.asked().(type) {
	case *replay:
		// A pending question takes precedence over the handler's result.
		raw, pendErr := e.inputRequired(ctx, a, c.Msg, c.Peer.Principal)
		if (raw != nil || pendErr != nil) && res.Drop != nil {
			res.Drop()
		}
		switch {
		case pendErr != nil:
			*reply = e.failure(ctx, c, id, pendErr)
			return
		case raw != nil:
			*reply = Reply{ID: id, Result: e.inputEnvelope(raw)}
			return
		}
	case *live:
		if err == nil {
			a.complete(c)
		}
	}
	if err != nil {
		*reply = e.failure(ctx, c, id, err)
		return
	}
	e.answer(c, id, res, reply)
}

// Legacy serves a request within a session. Those that belong to the session itself (ping,
// setLevel, subscribe) never reach the handler. If the handler ends the goroutine, so that Legacy
// does not return, reply is [Failed].
func (e *Engine) Legacy(ctx *Context, s *Session, msg *jsonrpc.Message, header http.Header, ex Exchange, reply *Reply) {
	*reply = Failed(msg.ID) // if the handler ends the goroutine
	if e.admitLegacy(ctx, s, msg, header, ex, reply) {
		res, err := e.run(ctx, &ctx.call)
		e.conclude(ctx, &res, err, reply)
	}
}

// admitLegacy makes the call of ctx. It returns false if it has already answered or refused the
// request in reply.
func (e *Engine) admitLegacy(ctx *Context, s *Session, msg *jsonrpc.Message, header http.Header, ex Exchange, reply *Reply) (ok bool) {
	t := s.Peer.Revision
	switch method := msg.Method; {
	case !t.Has(method) || method == revision.MethodInitialize:
		*reply = refuse(msg.ID, jsonrpc.CodeMethodNotFound, "revision %s has no method %q here", t.Name, method)
	case method == revision.MethodPing:
		*reply = Reply{ID: msg.ID, Result: json.RawMessage(`{}`)}
	case s.loose && (method == revision.MethodSetLevel || method == revision.MethodSubscribe || method == revision.MethodUnsubscribe):
		*reply = refuse(msg.ID, jsonrpc.CodeMethodNotFound, "%q needs a session, and this server has none", method)
	case method == revision.MethodSetLevel:
		*reply = s.setLevel(ctx, msg)
	case method == revision.MethodSubscribe || method == revision.MethodUnsubscribe:
		*reply = s.subscription(ctx, e, msg)
	case t.CoreTasks && revision.OfTasks(method): // T-105 to T-107
		*reply = e.coreTask(ctx, s, msg, header, ex)
	default:
		c := &ctx.call
		*c = Call{Method: method, Params: msg.Params, Msg: msg, Peer: s.Peer, Header: header, of: ctx, ex: ex, logLevel: s.LogLevel(), session: s}
		if !s.NoAsking {
			c.asker = ctx
		}
		if raw, ok := msg.ParamIn("_meta", "progressToken"); ok {
			c.progress = newProgress(raw)
		}
		return true
	}
	return false
}

// answer makes the reply of a result. It panics if a raw value is not JSON.
func (e *Engine) answer(c *Call, id jsonrpc.ID, res *Result, reply *Reply) {
	if res.Task && !c.TakesTask() {
		// XTASK-26-001: the handler must not return a task to such a caller.
		panic(fmt.Errorf("the handler of %q returned a task to a caller that does not accept tasks", c.Method))
	}
	if tag := c.tag(); tag != nil {
		// The end of a subscription has only its id (SUB-26).
		*res = Result{JSON: append(append([]byte(`{"_meta":{"`+MetaSubscription+`":`), tag...), `}}`...), Meta: true}
	}
	if res.Memo == nil && jsonx.KindOf(res.JSON) != '{' {
		panic(fmt.Errorf("the handler of %q returned no JSON object", c.Method))
	}
	if c.Method == revision.MethodDiscover {
		e.ownVersions(res)
	}
	if res.plain() && !c.Peer.Revision.Sessions {
		*reply = Reply{ID: id, Result: res.JSON, plain: true, tail: e.tail, pooled: res.Pooled}
		return
	}
	out := Reply{ID: id, Result: e.finish(c.Peer.Revision, c.Method, *res), drop: res.Drop}
	out.plain = res.Memo != nil || res.plain() && &out.Result[0] == &res.JSON[0]
	if res.Pooled != nil {
		if &out.Result[0] == &res.JSON[0] {
			out.pooled = res.Pooled
		} else {
			buffer.Put(res.Pooled)
		}
	}
	*reply = out
}

// ownVersions sets the versions of this hop in the answer to server/discover, even if the handler
// answers for another server (T-10).
func (e *Engine) ownVersions(res *Result) {
	raw := res.JSON
	if res.Memo != nil {
		raw = res.Memo.inner
	}
	if named, _ := jsonx.Lookup(raw, "supportedVersions"); bytes.Equal(named, e.versions) {
		return
	}
	res.JSON, res.Memo = jsonx.With(nil, raw, "supportedVersions", e.versions), nil
}

// run calls the handler, under the time limit.
func (e *Engine) run(ctx context.Context, c *Call) (res Result, err error) {
	c.user = e.User
	if own, ok := ctx.(*Context); !ok || c != &own.call {
		ctx = With(ctx, c)
	}
	if e.Limits.CallTimeout > 0 && c.Method != revision.MethodListen {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, e.Limits.CallTimeout,
			fmt.Errorf("the call took longer than %v (Limits.CallTimeout)", e.Limits.CallTimeout))
		defer cancel()
	}
	err = e.User.Run(ctx, c.Method, func() (err error) {
		res, err = e.Handler(ctx, c)
		return err
	})
	return res, err
}

// failure turns a handler's error into the answer of the caller's revision. The methods of that
// error are user code.
func (e *Engine) failure(ctx context.Context, c *Call, id jsonrpc.ID, err error) (r Reply) {
	if e.User.Run(ctx, c.Method, func() error { r = failureOf(ctx, c, id, err); return nil }) != nil {
		return Failed(id)
	}
	return r
}

func failureOf(ctx context.Context, c *Call, id jsonrpc.ID, err error) Reply {
	var rpc *jsonrpc.Error
	var lacks *LacksError
	var denied Denial
	var no *denial
	code := jsonrpc.CodeInternal
	if errors.As(err, &denied) {
		no, code = new(denial), jsonrpc.CodeInvalidRequest
		no.status, no.header = denied.HTTPHeader(ctx)
	}
	switch {
	case errors.As(err, &rpc):
		out := *rpc
		out.Code = c.Peer.Revision.Code(rpc.Code)
		return Reply{ID: id, Err: &out, denial: no}
	case errors.As(err, &lacks) && lacks.Required != nil:
		out := &jsonrpc.Error{Code: c.Peer.Revision.Code(revision.CodeMissingCapability), Message: err.Error()}
		out.Data = append(append([]byte(`{"requiredCapabilities":`), lacks.Required...), '}')
		return Reply{ID: id, Err: out}
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		err = context.Cause(ctx)
	}
	return Reply{ID: id, Err: &jsonrpc.Error{Code: code, Message: err.Error()}, denial: no}
}

// unsupported refuses a version (VER-26-001, VER-26-010).
func (e *Engine) unsupported(id jsonrpc.ID, requested string) Reply {
	r := refuse(id, revision.CodeUnsupportedVersion, "protocol version %q is not supported", text.Short(requested))
	data := append([]byte(`{"supported":`), e.versions...)
	data = append(data, `,"requested":`...)
	r.Err.Data = append(jsonx.AppendString(data, text.Short(requested)), '}')
	return r
}

// inputEnvelope makes the pending questions a result of 2026-07-28.
func (e *Engine) inputEnvelope(raw json.RawMessage) json.RawMessage {
	out := append([]byte(`{"resultType":"input_required",`), raw[1:len(raw)-1]...)
	return append(append(out, e.tail...), '}')
}
