package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Remote is a server at the far end of a wire, and the inbox of that wire. The exported fields are
// set before the first call and not changed after; Rev, which the opening of a session finds, is
// set before the first call after the opening. All methods are safe for several goroutines.
type Remote struct {
	Owner  Owner
	Wire   engine.Wire
	Rev    *revision.Table // spoken with the server
	Caps   json.RawMessage // of the client, in the inner form
	Self   json.RawMessage // Implementation of the client, in the inner form
	Limits Limits
	Log    *slog.Logger

	HTTP  bool   // the wire is HTTP
	Local bool   // the server is in this process: it knows the client without an envelope
	ID    string // names the server in data kept for calls, also after a reconnect; empty: the server's name
	Hop   string // names this process as a forwarder of requests; empty: a new name

	// Front is the call of the session that the connection was opened for, or nil if it serves no
	// single session; Opener is the context of that call.
	Front  *engine.Call
	Opener context.Context

	inFront atomic.Pointer[Remote] // of Behind; a question may arrive before it is set
	own     *engine.Session

	// asker is the revision of a legacy server that may ask questions now, nil before the answer to
	// initialize.
	asker  atomic.Pointer[revision.Table]
	rooted atomic.Bool  // AsksRoots
	asked  atomic.Int64 // questions from a legacy server that named no call

	hops    hops
	calls   openCalls // with a legacy server
	level   serverLevel
	timers  idleTimers
	cache   cache // of results of a modern server
	cancels pendingCancels
	owners  taskOwners // of tasks of a modern server whose handles callers in front have

	nextToken atomic.Int64
	wg        sync.WaitGroup

	mu        sync.Mutex
	closed    bool                                // nothing new is started; guarded by mu
	parked    map[string]*parkedCall              // guarded by mu
	tokens    map[int64]*Call                     // calls by progress token; guarded by mu
	headers   map[string][]streamable.ParamHeader // by tool, as far as listed; guarded by mu
	barred    map[string]error                    // reasons why tools must not be used; guarded by mu
	support   map[string]string                   // execution.taskSupport of tools, as far as listed; guarded by mu
	proxies   map[string]*proxyTask               // tasks of callers in front, by id; guarded by mu
	proxyEnds uint64                              // number of proxies that ended, dropped ones included; guarded by mu
	elicited  map[string]func()                   // called when the user is done at a URL, by elicitationId; guarded by mu
}

// Owner is the session that a Remote belongs to. Its methods are safe for several goroutines.
type Owner interface {
	// Server returns the server's name, and its capabilities in the form of the revision that is
	// spoken with it. The result is not changed.
	Server() (name string, capabilities map[string]json.RawMessage)

	// Answer answers a question with the functions of the client.
	Answer(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)

	// Note gets a notification that belongs to no call.
	Note(method string, params json.RawMessage)

	// ListTools lists the tools and calls [Remote.LearnTool] for each; false if that fails.
	ListTools(ctx context.Context) bool

	// LogLevel returns the client's minimum level of log messages; empty: none.
	LogLevel() string

	// Public turns an error of a transport into one for users, and nil into nil.
	Public(err error) error

	// Exceeded returns the error of a call that has reached its limit: in total, or of the time
	// without a message from the server.
	Exceeded(limit time.Duration, total bool) error
}

// Limits bound the calls of a Remote.
type Limits struct {
	Rounds      int           // of questions of one call
	Cache       int           // bytes of results; zero or less: none are kept
	CallTimeout time.Duration // without a message from the server, in a forwarded call; 0: depends on the method; negative: no bound
	Idle        time.Duration // without a message from the server, in any other call; zero or less: no bound
	CallLimit   time.Duration // of one call in total; zero or less: no bound
}

// Errors that package mcp exports with the same meaning.
var (
	ErrClosed = errors.New("mcp: closed")
	ErrNoCall = errors.New("mcp: the context belongs to no call; pass on the one your handler was given")

	ErrDeclined  = errors.New("mcp: the user declined")
	ErrDismissed = errors.New("mcp: the user dismissed the question")
)

// CodeDeclined says that the user refused a sampling request (2025-11-25, client/sampling, Error
// Handling).
const CodeDeclined = -1

// Accepted returns the content of an ElicitResult whose action is accept. The error for another
// action is [ErrDeclined] or [ErrDismissed].
func Accepted(raw json.RawMessage) (json.RawMessage, error) {
	var res struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
	}
	if err := jsonx.Unmarshal(raw, &res); err != nil {
		return nil, fmt.Errorf("elicit: the client's answer: %w", err)
	}
	switch res.Action {
	case "accept":
		return jsonx.OrObject(res.Content), nil
	case "decline":
		return nil, ErrDeclined
	case "cancel":
		return nil, ErrDismissed
	}
	return nil, fmt.Errorf("elicit: the client's answer has the unknown action %q", text.Short(res.Action))
}

// Init makes the Remote ready for calls. All exported fields but Rev are set before it.
func (r *Remote) Init() {
	r.cache.most = r.Limits.Cache
	r.timers.exceeded = r.Owner.Exceeded
	r.parked, r.tokens, r.support, r.proxies = map[string]*parkedCall{}, map[int64]*Call{}, map[string]string{}, map[string]*proxyTask{}
	r.headers = map[string][]streamable.ParamHeader{}
}

// Behind tells r that the calls of the session own come from front, through middleware of the
// client. It must be called before the first of them.
func (r *Remote) Behind(front *Remote, own *engine.Session) {
	r.own = own
	r.inFront.Store(front)
	if r.Asks() { // a question has come already
		front.TakeTurns()
	}
}

// Mute makes the Remote call giveUp when most consecutive calls have reached a limit without any
// message from the server. The function frames counts the frames received from the server. Mute
// must be called before the first call.
func (r *Remote) Mute(most int, frames func() uint64, giveUp func(calls int, limit time.Duration)) {
	r.timers.mute = mute{most: most, frames: frames, giveUp: giveUp}
}

// MayAsk allows the server to ask questions from now on, in a revision.
func (r *Remote) MayAsk(t *revision.Table) { r.asker.Store(t) }

// AsksRoots reports whether a legacy server has asked for the client's roots.
func (r *Remote) AsksRoots() bool { return r.rooted.Load() }

// has reports whether the server has declared a capability, or a setting within one.
func (r *Remote) has(name string, settings ...string) bool {
	_, caps := r.Owner.Server()
	return Declares(caps, name, settings...)
}

// Declares reports whether a capability, or a setting within one ("resources", "subscribe"), is
// declared.
func Declares(caps map[string]json.RawMessage, name string, settings ...string) bool {
	raw, ok := caps[name]
	for ok && string(raw) != "null" && string(raw) != "false" {
		if len(settings) == 0 {
			return true
		}
		if jsonx.KindOf(raw) != '{' {
			return false
		}
		raw, ok = jsonx.Lookup(raw, settings[0])
		settings = settings[1:]
	}
	return false
}

// CoreTasks reports whether the server takes calls as tasks in the form of 2025-11-25.
func (r *Remote) CoreTasks() bool {
	if !r.Rev.CoreTasks {
		return false
	}
	_, caps := r.Owner.Server()
	_, ok := jsonx.LookupPath(caps["tasks"], "requests", "tools", "call")
	return ok // TASK-25-004
}

// Values of execution.taskSupport that matter here.
const (
	taskOptional = "optional"
	taskRequired = "required"
)

// LearnTool records, for a server that speaks 2025-11-25, whether a listed tool runs as a task.
func (r *Remote) LearnTool(name, taskSupport string) {
	if !r.Rev.CoreTasks {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.support) >= maxLearnt {
		clear(r.support)
	}
	r.support[name] = taskSupport
}

// TaskSupport returns the execution.taskSupport of a tool, or "" if it is not known. It reads the
// list of tools if necessary.
func (r *Remote) TaskSupport(ctx context.Context, tool string) string {
	support, known := r.taskSupport(tool)
	if !known && r.Owner.ListTools(ctx) {
		support, _ = r.taskSupport(tool)
	}
	return support
}

func (r *Remote) taskSupport(tool string) (support string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	support, known = r.support[tool]
	return support, known
}

// Announces reports whether the server announces changes of a list without a subscription, as
// servers with sessions do that declare listChanged for the capability.
func (r *Remote) Announces(capability string) bool {
	if !r.Rev.Sessions {
		return false
	}
	_, caps := r.Owner.Server()
	declared, _ := jsonx.Lookup(caps[capability], "listChanged")
	return string(declared) == "true"
}

// RootsChanged notifies a legacy server that the roots have changed (T-58). For modern servers
// there is no such notification; they ask again in each call (ROOT-26-004).
func (r *Remote) RootsChanged(ctx context.Context) error {
	if !r.Rev.Sessions {
		return nil
	}
	return r.Owner.Public(r.Wire.Notify(ctx, revision.NoteRootsChanged, nil))
}

// Changed drops the cached data that a notification invalidates.
func (r *Remote) Changed(method string, params json.RawMessage) { r.cache.changed(method, params) }

// DropCached drops the cached results of a method.
func (r *Remote) DropCached(method string) { r.cache.drop(method) }

// Note implements engine.Inbox, for notifications outside of the stream of a call.
func (r *Remote) Note(method string, params json.RawMessage) {
	switch method {
	case revision.NoteElicited:
		if !r.urlOpened(params) {
			return
		}
	case revision.NoteProgress:
		// Some servers send progress on another stream than that of the call.
		token, _ := jsonx.Lookup(params, "progressToken")
		id, _ := strconv.ParseInt(string(token), 10, 64)
		r.mu.Lock()
		x := r.tokens[id]
		r.mu.Unlock()
		if x != nil {
			x.notifyLate(method, params)
		} else { // the call is answered, or never existed (PROG-26-005)
			r.Log.Debug("progress of an unknown call ignored", "token", text.Short(string(token)))
		}
		return
	case revision.NoteCancelled:
		return // of a question that is answered, or never existed (CANC-26-017)
	case revision.NoteMessage:
		r.timers.touch() // it is not known which call it belongs to
	}
	r.Owner.Note(method, params)
}

// Spawn runs f on a goroutine that Close waits for; false if the Remote is closed.
func (r *Remote) Spawn(f func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.wg.Go(f)
	return true
}

// Ended reports whether the wire has ended.
func (r *Remote) Ended() bool {
	select {
	case <-r.Wire.Done():
		return true
	default:
		return false
	}
}

// Close cancels the server's pending work, within half a second, and closes the wire. The returned
// channel is closed when nothing of the Remote runs any more.
func (r *Remote) Close() (ended <-chan struct{}, err error) {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	told := r.cancels.close()
	err = r.Wire.Close()
	r.timers.close()
	r.cache.close()
	r.dropParked()
	all := make(chan struct{})
	go func() { defer close(all); r.wg.Wait(); <-told }()
	return all, err
}

// sleep waits for d, or returns the cause of ctx or the error of the wire's end.
func (r *Remote) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-r.Wire.Done():
		return r.Owner.Public(r.Wire.Err())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// encode marshals a value of this package.
func encode(v any) json.RawMessage {
	b, err := jsonx.Marshal(v)
	if err != nil { // invalid JSON in a raw field; the caller recovers the panic
		panic(fmt.Errorf("bridge: encode %T: %w", v, err))
	}
	return b
}

func errorf(code int, format string, args ...any) *jsonrpc.Error {
	return &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
