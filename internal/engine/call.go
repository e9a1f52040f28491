package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// Keys of _meta that belong to the protocol (2026-07-28, basic/index, _meta).
const (
	MetaVersion      = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo   = "io.modelcontextprotocol/clientInfo"
	MetaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaLogLevel     = "io.modelcontextprotocol/logLevel"
	MetaServerInfo   = "io.modelcontextprotocol/serverInfo"
	MetaSubscription = "io.modelcontextprotocol/subscriptionId"
)

// Peer describes a client: from its request if it is modern, from initialize if it is legacy. It
// is immutable.
type Peer struct {
	Revision     *revision.Table
	Info         json.RawMessage // clientInfo, may be nil
	Capabilities json.RawMessage // may be nil
	Principal    string          // the authenticated caller, or empty; package principal has it in contexts
	Alone        bool            // no other peer can reach the server
	Local        bool            // the peer is in this process, and waits while it is asked
	Stateless    bool            // the server keeps nothing about it between requests
}

// Opened returns the frame of a recording for the opening of a legacy session.
func (p *Peer) Opened() trace.Frame {
	note := p.Revision.Name + ": initialize"
	if name, ok := jsonx.Lookup(p.Info, "name"); ok {
		if s, err := jsonx.Unquote(name); err == nil {
			note = p.Revision.Name + " with " + s + ": initialize"
		}
	}
	return trace.Frame{Kind: trace.KindSession, Dir: trace.In, Note: note}
}

// Identified reports whether the peer can be distinguished from others.
func (p *Peer) Identified() bool { return p.Principal != "" || p.Alone }

// An Exchange carries the messages that belong to one request. A transport implements it. Its
// methods are safe for concurrent use.
type Exchange interface {
	// Notify sends a notification on the stream of the request.
	Notify(method string, params json.RawMessage) error

	// Request sends a request from the server on that stream and waits for the answer. It is called
	// only for legacy sessions. An error response is returned as a *jsonrpc.Error.
	Request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

// Call is one request to a handler.
type Call struct {
	Method string
	Params json.RawMessage  // as received, or nil if there were none
	Msg    *jsonrpc.Message // the decoded message
	Peer   *Peer
	Header http.Header // nil on other transports than HTTP

	of       *Context // the context of the call; nil if the call owns its bytes
	ex       Exchange
	asker    asker
	logLevel string    // empty: the caller wants no log messages
	session  *Session  // nil for a modern caller
	progress *progress // nil if the caller wants none
	rare     *rare     // nil for most calls
	user     *usercode.Runner
}

// User runs code of the user that belongs to the call.
func (c *Call) User() *usercode.Runner { return c.user }

// progress is the state of the progress notifications of a call.
type progress struct {
	token json.RawMessage // of the caller

	mu   sync.Mutex
	done float64 // the last; guarded by mu
	told bool    // a notification was sent; guarded by mu
}

// rare holds the fields that few calls need.
type rare struct {
	rename func(id string) string                 // renames the task that the call becomes; nil: it keeps its id
	keep   func(id string, state json.RawMessage) // set with rename
	lasts  bool                                   // of a task: it outlives the session with its server
	faults map[string]error
	tag    json.RawMessage // subscription id for notifications of a modern listen
}

// callContext carries a Call without the cost of a context.WithValue chain.
type callContext struct {
	context.Context
	call *Call
}

type callKey struct{}

func (c *callContext) Value(key any) any {
	switch key.(type) {
	case callKey:
		return c.call
	case principal.Key:
		return &c.call.Peer.Principal
	}
	return c.Context.Value(key)
}

// From returns the call that ctx belongs to, or nil if there is none.
func From(ctx context.Context) *Call {
	c, _ := ctx.Value(callKey{}).(*Call)
	return c
}

// With returns a context that belongs to the call.
func With(ctx context.Context, c *Call) context.Context { return &callContext{ctx, c} }

// While calls f, which may read Params and the raw values of Peer. If the call is over, their
// bytes may be in use for another request; then While returns false without calling f. f must not
// use the call otherwise.
func (c *Call) While(f func()) bool {
	if c.of != nil {
		c.of.mu.Lock()
		defer c.of.mu.Unlock()
		if c.of.over {
			return false
		}
	}
	f()
	return true
}

// Emit sends a notification on the stream of the call, converted for the
// caller's revision.
func (c *Call) Emit(method string, params json.RawMessage) error {
	if c.ex == nil {
		return nil
	}
	tag := c.tag()
	if tag != nil && (method == revision.NoteProgress || method == revision.NoteMessage) {
		return nil // SUB-26-010: a subscription has neither progress nor logs
	}
	if params == nil {
		params = json.RawMessage(`{}`)
	}
	params = c.Peer.Revision.Notification(method, params)
	if tag != nil {
		meta, ok := jsonx.Lookup(params, "_meta")
		if !ok {
			meta = json.RawMessage(`{}`)
		}
		params = jsonx.With(nil, params, "_meta", jsonx.With(nil, meta, MetaSubscription, tag))
	}
	return c.ex.Notify(method, params)
}

// tag returns the subscription id for notifications of a modern listen, nil for other calls.
func (c *Call) tag() json.RawMessage {
	if c.rare == nil {
		return nil
	}
	return c.rare.tag
}

// A Detacher is an Exchange whose caller can get the answer later: Detach lets the caller go on
// without waiting.
type Detacher interface{ Detach() }

// Detach lets the caller go on without waiting, if it can get the answer later: the call becomes a
// task, or the connection that carries the call ends and the client resumes it.
func (c *Call) Detach() {
	if x, ok := c.ex.(Detacher); ok {
		x.Detach()
	}
}

// Redirect returns a call like c whose notifications go to f. Questions and remembered values are
// those of c.
func (c *Call) Redirect(f func(method string, params json.RawMessage) error) *Call {
	return &Call{
		Method: c.Method, Params: c.Params, Msg: c.Msg, Peer: c.Peer, Header: c.Header,
		of: c.of, ex: redirected{c.ex, f}, asker: c.asker, logLevel: c.logLevel, session: c.session, progress: c.progress.again(), rare: c.rare.again(), user: c.user,
	}
}

// Rename returns a call like c. If it becomes a task, the caller sees name(id) as the id of the task, which goes on after the end of
// the session with its server if lasts is true. If the task ends with this process, keep, if not nil, gets its state when it begins and when it
// has ended.
func (c *Call) Rename(lasts bool, name func(id string) string, keep func(id string, state json.RawMessage)) *Call {
	out := c.Redirect(nil)
	out.ex = c.ex
	out.rare = &rare{lasts: lasts, rename: func(id string) string { return c.taskName(name(id)) }, keep: func(id string, state json.RawMessage) {
		if keep != nil {
			keep(id, state)
		}
		c.KeepTask(name(id), state)
	}}
	return out
}

// KeepTask gives handlers in front the state of a task that the call has become, in the inner form.
func (c *Call) KeepTask(id string, state json.RawMessage) {
	if c.TasksNamed() {
		c.rare.keep(id, state)
	}
}

// TasksNamed reports whether a handler in front renames tasks with Rename; that handler then
// knows their owners.
func (c *Call) TasksNamed() bool { return c.rare != nil && c.rare.rename != nil }

// TasksLast reports whether a task that the call becomes outlives the session with its server.
func (c *Call) TasksLast() bool { return c.TasksNamed() && c.rare.lasts }

// redirected is an Exchange whose notifications go to a function.
type redirected struct {
	Exchange
	notify func(method string, params json.RawMessage) error
}

func (r redirected) Detach() {
	if x, ok := r.Exchange.(Detacher); ok {
		x.Detach()
	}
}

func (r redirected) Notify(method string, params json.RawMessage) error {
	return r.notify(method, params)
}

// newProgress returns the state for a request with this token, or nil if it is not a string or
// number. The token is copied, because a goroutine that a handler left behind may still send
// progress when the bytes of the request are reused.
func newProgress(token json.RawMessage) *progress {
	if k := jsonx.KindOf(token); k != '"' && k != '0' {
		return nil
	}
	return &progress{token: bytes.Clone(token)}
}

// again returns new state with the same token, for another call.
func (p *progress) again() *progress {
	if p == nil {
		return nil
	}
	return &progress{token: p.token}
}

// again returns a copy of r for a call that is not a subscription.
func (r *rare) again() *rare {
	if r == nil || r.rename == nil {
		return nil
	}
	return &rare{rename: r.rename, keep: r.keep, lasts: r.lasts}
}

// Progress emits notifications/progress if the caller asked for it. A value that
// does not grow is left out (PROG-26-004).
func (c *Call) Progress(done, total float64, message string) {
	if x, ok := c.ex.(*taskExchange); ok {
		x.tell(done, total, message)
	}
	p := c.progress
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told && done <= p.done {
		return
	}
	p.done, p.told = done, true
	w := struct {
		Token   json.RawMessage `json:"progressToken"`
		Done    float64         `json:"progress"`
		Total   float64         `json:"total,omitzero"`
		Message string          `json:"message,omitempty"`
	}{p.token, done, total, message}
	if raw, err := jsonx.Marshal(w); err == nil {
		// The order of two progress notifications must be that of their values, so
		// the lock is held while writing; the wire bounds how long that takes.
		_ = c.Emit(revision.NoteProgress, raw) // if the connection is lost, the context ends the call
	}
}

// Session returns the session that the call belongs to, or nil if it belongs to none.
func (c *Call) Session() *Session {
	if c.session == nil || c.session.loose {
		return nil
	}
	return c.session
}

// ProgressWanted reports whether the caller asked for progress.
func (c *Call) ProgressWanted() bool { return c.progress != nil }

// LogLevel returns the minimum level of log messages that the caller wants, empty for none.
func (c *Call) LogLevel() string { return c.logLevel }

// LogLevelSet returns LogLevel if the caller has set it, and "" otherwise.
func (c *Call) LogLevelSet() string {
	if c.session != nil && c.session.level.Load() == nil {
		return ""
	}
	return c.logLevel
}

// LogEnabled reports whether the caller wants log messages of a level.
func (c *Call) LogEnabled(level string) bool {
	return c.logLevel != "" && LevelIndex(level) >= LevelIndex(c.logLevel)
}

// levels of RFC 5424 as the specification spells them, least first.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// LevelIndex returns the place of a level among levels, -1 if there is none.
func LevelIndex(name string) int {
	for i, l := range levels {
		if l == name {
			return i
		}
	}
	return -1
}
