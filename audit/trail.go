package audit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/note"
	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/internal/principal"
	"github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/internal/taskend"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/middleware"
	"github.com/patchbay-dev/patchbay/trace"
)

// Failure says what happens to a call whose line cannot be written.
type Failure int

const (
	Refuse Failure = iota // the caller gets an error, and the server is not called
	Pass                  // the call is made
)

// Trail makes the two middlewares that log requests: [Trail.Outer] in front of all others, and
// [Trail.Around] around each server, behind the policy. Set the fields before the first request. Both
// panic without a Log.
//
// A server without a gateway takes both too, srv.Use(trail.Outer(), policy, trail.Around("files")), or
// Around alone if nothing in front of it refuses requests. Outer alone writes no line before a call
// leaves, and no arguments, and it refuses nothing. Outer and Around of different Trails do not know of
// each other: each log has its own begin and end of the call.
//
// Calls, prompts, reads and completions have a line call.begin and a line call.end; lists have a
// line of kind list; a refused request of any method has a line of kind denied. A call that comes
// back with answers to questions (2026-07-28) is the same call: its further rounds begin with
// call.retry, and it has one end. A call that passes several servers, such as a gateway behind a
// gateway, has a line call.begin for each of them; its end names the first. A read that a gateway sends
// to one server after another, because none lists the resource, has one begin without a server; its end
// names the server that has it.
//
// A call that becomes a task ends with the outcome "task". The end of the task has a line task.end when
// a caller sees it, in a state or a result that it asks for or in a notification; the last 10,000 tasks
// are remembered for that. A subscription to resources has a line when the server accepts it, and one
// when it ends.
//
// A call of a tool or prompt that does not exist does not leave: it has an end without a begin, with the
// fault "unknown". Around finds that out from a gateway, and from a server of this program.
//
// Of the refused requests of a caller, 20 a second have a line of their own, and one more line says
// how many others there were, see More of [Entry]; the same holds for lists, and for failed calls that
// have not left.
type Trail struct {
	Log       *Log
	OnFailure Failure

	Team     func(ctx context.Context) string // of the caller; nil: lines have none
	IP       func(ctx context.Context) string // address of the client; nil: lines have none
	Via      func(ctx context.Context) string // way of the client, for [Client.Via]; nil: lines have none
	TraceID  func(ctx context.Context) string // of the span of the request; nil or empty: that of traceparent in _meta
	Identity func(server string) string       // of a server, such as its URL; nil: lines have none

	// Owner returns the server that the name of a tool in front belongs to, and what that server calls
	// the tool; empty: unknown. Lines of calls that have not reached a server then name it. Nil means
	// that they have the name in front alone.
	Owner func(name string) (server, tool string)

	// Unlisted reports whether a tool is known to no server: by the name in front, or by the server and
	// what that calls the tool. Lines of failed calls that have not left, and of refused ones, then have
	// the fault "unknown". Nil means that only calls whose name [Trail.Around] has found in no list have
	// it.
	Unlisted func(server, tool string) bool

	// Trusted says that the readOnlyHint of a server's tools can be relied on. Calls of its
	// read-only tools, reads and prompts do not wait for the disk; without room in memory for their
	// line they fail like others. Nil means that none is trusted.
	Trusted func(server string) bool

	tasks    taskend.Pending[*pendingTask] // that calls have become, by their ids in front
	readOnly sync.Map                      // *readOnlyTools by the name of a server
	begins   atomic.Bool                   // Around is used: a call without a call.begin has not left
}

// callMethods are the requests that a server may act on; those with true only read.
var callMethods = map[string]bool{
	"tools/call": false, "tasks/update": false, "tasks/cancel": false,
	"prompts/get": true, "resources/read": true, "completion/complete": true,
}

// Outer returns the middleware in front: it writes a line when a request has ended. The line has
// what the middlewares behind it noted, see [Note]. It does not wait for the disk.
func (t *Trail) Outer() mcp.Middleware {
	if t.Log == nil {
		panic("audit: the Trail has no Log; set it to one from audit.Open")
	}
	observe := middleware.Observe(t.ended)
	return func(next mcp.Handler) mcp.Handler {
		observed := observe(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.Handle(ctx, req)
			if r := recordOf(ctx); r != nil && err == nil && r.call {
				r.sawResult(res)
			}
			if err == nil && req.Method == "tasks/get" {
				t.taskSeen(stringOf(req.Param("taskId")), res)
			}
			return res, err
		}))
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if strings.HasPrefix(req.Method, "notifications/") {
				return next.Handle(ctx, req)
			}
			r := t.recordFor(ctx, req)
			if req.Method == "subscriptions/listen" {
				ctx = t.listening(ctx, r, req)
			}
			return observed.Handle(note.With(ctx, r), req)
		})
	}
}

// Around returns the middleware around a server, for the Middleware of a gateway: it writes the
// line call.begin and waits for the disk, then passes the call on. Behind no Outer of this Trail it also
// writes the end. It belongs behind the policy: else each refused call has two lines, which wait for the
// disk, and none of kind denied.
func (t *Trail) Around(server string) mcp.Middleware {
	t.begins.Store(true)
	trusted := t.Trusted != nil && t.Trusted(server)
	who := t.server(server)
	kept, _ := t.readOnly.LoadOrStore(server, new(readOnlyTools))
	return func(next mcp.Handler) mcp.Handler {
		h := &around{trail: t, server: who, next: next}
		if trusted {
			h.readOnly = kept.(*readOnlyTools)
		}
		h.alone = t.Outer()(mcp.HandlerFunc(h.handle))
		return step.Like(next, h)
	}
}

// server describes a server.
func (t *Trail) server(name string) *Server {
	s := &Server{Name: name}
	if t.Identity != nil {
		s.Identity = t.Identity(name)
	}
	return s
}

// around is a handler behind [Trail.Around].
type around struct {
	trail    *Trail
	server   *Server
	readOnly *readOnlyTools // nil: the server is not trusted
	next     mcp.Handler
	alone    mcp.Handler // for requests without a record
}

// Handle writes a line before it passes a call on.
func (h *around) Handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if r := recordOf(ctx); r == nil || r.trail != h.trail {
		return h.alone.Handle(ctx, req)
	}
	return h.handle(ctx, req)
}

func (h *around) handle(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	reads, call := callMethods[req.Method]
	r := recordOf(ctx)
	switch {
	case req.Method == "subscriptions/listen":
		r.at(h.server, req)
		return h.next.Handle(ctx, req)
	case !call:
		return h.next.Handle(ctx, req)
	}
	if unlisted, err := step.Missing(ctx, h.next, req); err != nil {
		r.missing(h.server, req, unlisted)
		return nil, err
	}
	probing := note.Probing(ctx)
	if probing && r.probes() {
		return h.probe(ctx, r, req)
	}
	e, nested := r.begin(h.server, req, probing)
	defer r.left()
	if e.Tool != "" {
		r.defined(&e, step.Definition(ctx, h.next, e.Tool), nested)
	}
	var err error
	waits := probing || h.readOnly == nil || !reads && (e.Tool == "" || !h.readOnly.has(ctx, h.next, e.Tool))
	if waits {
		err = h.trail.Log.Write(ctx, e)
	} else {
		err = h.trail.Log.tryAdd(e)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if h.trail.OnFailure == Refuse {
			r.refused(nested)
			return nil, unlogged{mcp.Errorf(jsonrpc.CodeInternal, "the call was not made, because its line of the audit log cannot be written (%v); ask the operator of this server", cause(err))}
		}
		h.trail.Log.Add(e) // it is written as soon as that is possible
	}
	if probing {
		return h.probe(ctx, r, req)
	}
	return h.next.Handle(note.WithAttempts(ctx, &attempts{h: h, r: r, begin: e, nested: nested, waits: waits}), req)
}

// probe passes on a request that goes to one server after another. One line stands for all of them,
// and the end names the server that has the resource.
func (h *around) probe(ctx context.Context, r *record, req *mcp.Request) (mcp.Result, error) {
	res, err := h.next.Handle(ctx, req)
	if err == nil {
		r.mu.Lock()
		r.entry.Server = h.server
		r.mu.Unlock()
	}
	return res, err
}

// unlogged is the error of a call that is not made because its line cannot be written.
type unlogged struct{ error }

func (e unlogged) Unwrap() error { return e.error }

// Unlogged returns true: package metrics counts the error as one of the audit log.
func (unlogged) Unlogged() bool { return true }

// cause returns the innermost error that a caller may see: without paths.
func cause(err error) error {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number
	}
	if errors.Is(err, ErrClosed) {
		return ErrClosed
	}
	return errors.New("it takes too long")
}

// Note calls f with the line of the request of ctx, so that a middleware can add what it knows. The
// later lines of the request have it too. Without an [Trail.Outer] it does nothing. f must not
// block. A Detail that [Log.Write] refuses is left out.
func Note(ctx context.Context, f func(e *Entry)) {
	if r := recordOf(ctx); r != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		f(&r.entry)
		if checkDetail(r.entry.Detail) != nil {
			r.entry.Detail = nil
		}
	}
}

// record is a request on its way.
type record struct {
	trail *Trail
	call  bool // of a method of callMethods
	list  bool
	held  bool // [Trail.End] writes its end

	earlier float64 // milliseconds of earlier rounds

	mu      sync.Mutex
	uri     string   // of a resource, with its query; guarded by mu
	entry   Entry    // as far as it is known; guarded by mu
	task    string   // id of the task that the call has become; guarded by mu
	last    *Entry   // the end of the last request if the record is held; nil: there is none; guarded by mu
	refusal *refusal // nil: there is none; guarded by mu
	begins  int      // lines call.begin and call.retry of the first server, in earlier rounds too; guarded by mu
	probed  bool     // a line stands for the requests to one server after another; guarded by mu
	unknown bool     // no server lists the tool or prompt; guarded by mu
	listen  listening
	inside  int // servers that have the call now; guarded by mu
}

// callKey is where a call keeps its id and its time over rounds of questions.
const callKey = "dev.patchbay/audit"

func recordOf(ctx context.Context) *record {
	r, _ := note.From(ctx).(*record)
	return r
}

// record begins a record.
func (t *Trail) record(ctx context.Context, req *mcp.Request) *record {
	r := &record{trail: t, list: strings.HasSuffix(req.Method, "/list")}
	_, r.call = callMethods[req.Method]
	e := &r.entry
	if call := engine.From(ctx); call != nil {
		if id, ok := call.Recall(callKey); ok { // it comes back with answers
			id, millis, _ := strings.Cut(stringOf(id), " ")
			e.Call, r.begins = id, call.Round()
			r.earlier, _ = strconv.ParseFloat(millis, 64)
		}
	}
	if e.Call == "" {
		e.Call = newID()
	}
	if p := auth.From(ctx); p != nil {
		e.Principal = &Principal{ID: p.ID, Issuer: p.Issuer, Client: p.ClientID}
	} else if id := principal.From(ctx); id != "" {
		e.Principal = &Principal{ID: id}
	}
	e.Client = clientOf(ctx)
	if t.IP != nil {
		if e.Client == nil {
			e.Client = &Client{}
		}
		e.Client.IP = t.IP(ctx)
	}
	if t.Via != nil {
		if via := t.Via(ctx); via != "" {
			if e.Client == nil {
				e.Client = &Client{}
			}
			e.Client.Via = via
		}
	}
	if t.Team != nil {
		e.Team = t.Team(ctx)
	}
	if t.TraceID != nil {
		e.Trace = t.TraceID(ctx)
	}
	if e.Trace == "" {
		if parent, ok := jsonx.LookupPath(req.Params, "_meta", "traceparent"); ok {
			e.Trace = traceOf(stringOf(parent))
		}
	}
	r.names(req)
	return r
}

// clientOf describes the program that called; nil: there is none.
func clientOf(ctx context.Context) *Client {
	call := engine.From(ctx)
	if call == nil || call.Peer == nil {
		return nil
	}
	c := &Client{Revision: call.Peer.Revision.Name}
	call.While(func() {
		name, _ := jsonx.Lookup(call.Peer.Info, "name")
		version, _ := jsonx.Lookup(call.Peer.Info, "version")
		c.Name, c.Version = stringOf(name), stringOf(version)
	})
	if id := call.Header.Get("Mcp-Session-Id"); id != "" {
		c.Session = digest([]byte(id))[:len(hashPrefix)+16]
	}
	return c
}

// traceOf returns the trace id of a traceparent (W3C Trace Context).
func traceOf(parent string) string {
	parts := strings.Split(parent, "-")
	if len(parts) < 4 || len(parts[1]) != 32 || strings.Trim(parts[1], "0123456789abcdef") != "" || strings.Trim(parts[1], "0") == "" {
		return ""
	}
	return parts[1]
}

// names notes the method of a request and what it names.
func (r *record) names(req *mcp.Request) {
	if req.Method != "tools/call" {
		r.entry.Method, r.entry.Tool = req.Method, ""
	}
	if strings.HasPrefix(req.Method, "resources/") {
		r.uri = stringOf(req.Param("uri"))
	}
	r.trail.nameInto(&r.entry, req)
}

// nameInto sets what a request names.
func (t *Trail) nameInto(e *Entry, req *mcp.Request) {
	switch req.Method {
	case "tools/call":
		e.Tool = stringOf(req.Param("name"))
	case "prompts/get":
		e.Name = stringOf(req.Param("name"))
	case "resources/read", "resources/subscribe", "resources/unsubscribe":
		raw := req.Param("uri")
		e.Name = t.uri(stringOf(raw))
		if raw != nil { // also of what Name leaves out
			e.Arguments = &Arguments{Digest: Digest(jsonx.With(nil, nil, "uri", raw))}
		}
	case "tasks/update", "tasks/cancel", "tasks/get":
		e.Name = stringOf(req.Param("taskId"))
	case "completion/complete":
		ref := req.Param("ref")
		if name, ok := jsonx.Lookup(ref, "name"); ok {
			e.Name = stringOf(name)
		} else if uri, ok := jsonx.Lookup(ref, "uri"); ok {
			e.Name = t.uri(stringOf(uri))
		}
	}
}

// uri returns a URI without its user, query and fragment, and without what looks like a secret.
func (t *Trail) uri(uri string) string {
	uri = text.Clip(text.URI(uri), 4*maxText)
	if strings.Contains(uri, "=") {
		return string(t.Log.options.Redactor.Frame(trace.Frame{Raw: []byte(uri)}).Raw)
	}
	return t.Log.options.Redactor.Text(uri)
}

func stringOf(raw json.RawMessage) string {
	s, _ := jsonx.Unquote(raw)
	return s
}

// Decided implements [note.Recorder].
func (r *record) Decided(server string, d note.Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.list { // its entries are filtered, and the list is answered
		return
	}
	e := &r.entry
	if e.Tool != "" && d.Tool != "" {
		e.Tool = d.Tool
	}
	own := Decision{}
	if e.Decision != nil {
		own = *e.Decision
	}
	own.Effect, own.Rule, own.Policy = "deny", d.Rule, d.Policy
	if d.Allow {
		own.Effect = "allow"
	}
	e.Decision = &own
	if d.Allow {
		return
	}
	e.Server = r.trail.server(server)
	// A resource that no server lists is asked for at each server.
	if last := r.refusal; last != nil && (last.server == nil || last.server.Name != server) {
		e.Server = nil
	}
	r.refusal = &refusal{e.Server, e.Decision}
}

// refusal is the last decision of a policy against a request. Its server is nil if there is another one
// about another server.
type refusal struct {
	server   *Server
	decision *Decision
}

// begin returns the line of a call that is about to leave, and whether another server passes it on.
// A request that is probing has no server.
func (r *record) begin(server *Server, req *mcp.Request, probing bool) (out Entry, nested bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if probing {
		server = nil
	}
	out, nested = r.entry, r.inside > 0
	r.inside++
	out.Server, out.Arguments = server, nil
	r.trail.nameInto(&out, req)
	args := req.Param("arguments")
	if args != nil {
		out.Arguments = &Arguments{Digest: Digest(args)}
	}
	if !nested {
		r.begins++
		r.probed = probing
		r.entry.Server, r.entry.Tool, r.entry.Name = server, out.Tool, out.Name
		if out.Arguments != nil {
			r.entry.Arguments = out.Arguments
		}
	}
	if args != nil && r.trail.Log.options.Arguments == ContentRedacted { // the end has the digest alone
		out.Arguments = &Arguments{Value: args, Digest: out.Arguments.Digest}
	}
	out.Kind = CallBegin
	if r.begins > 1 {
		out.Kind, out.Attempt = CallRetry, r.begins
	}
	return out, nested
}

// defined sets the digest of the definition of the tool in the line of a begin, and notes it for the end. The
// program that has begun the call itself (Begin) may have set it before.
func (r *record) defined(begin *Entry, digest string, nested bool) {
	switch {
	case nested:
		begin.Definition = digest
	case digest != "":
		begin.Definition = digest
		r.mu.Lock()
		defer r.mu.Unlock()
		r.entry.Definition = digest
	}
}

// probes reports whether a line stands already for a request that goes to one server after another.
func (r *record) probes() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.probed
}

// left notes that a server has the call no more.
func (r *record) left() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inside--
}

// refused notes that the call does not leave, since its line cannot be written.
func (r *record) refused(nested bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !nested {
		r.begins--
		r.probed = false
	}
	r.entry.Reason = "the audit log could not be written, so the call was not made"
}

// missing notes that the call does not leave, since its tool or prompt cannot be called, and whether the
// server does not list it.
func (r *record) missing(server *Server, req *mcp.Request, unlisted bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inside > 0 || r.begins > 0 { // the lines before name the server
		return
	}
	r.entry.Server, r.unknown = server, unlisted
	r.trail.nameInto(&r.entry, req)
}

// sawResult notes the size and digest of a result.
func (r *record) sawResult(res mcp.Result) {
	if res == nil {
		return
	}
	raw := res.JSON()
	sum := digest(raw)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entry.Bytes, r.entry.Result, r.task = len(raw), sum, taskend.Made(res)
}

// ended writes the line of a request that has ended.
func (t *Trail) ended(ctx context.Context, o middleware.Record) {
	r := recordOf(ctx)
	r.mu.Lock()
	e, begun, uri, task, unknown := r.entry, r.begins > 0, r.uri, r.task, r.unknown
	if o.Outcome == middleware.Denied && r.refusal != nil {
		e.Server, e.Decision = r.refusal.server, r.refusal.decision
	}
	r.mu.Unlock()
	if o.Outcome == middleware.Denied {
		if ruled := (interface{ Rule() string })(nil); errors.As(o.Err, &ruled) { // such as that of a view
			e.Decision = &Decision{Effect: "deny", Rule: ruled.Rule()}
		}
	}
	o.Duration -= wait.From(ctx).Asked()                                                     // which is not part of it in revisions with rounds either
	if call := engine.From(ctx); call != nil && r.call && o.Outcome == middleware.Question { // the end is that of a later round
		call.Remember(callKey, jsonx.AppendString(nil, fmt.Sprint(e.Call, " ", r.earlier+millis(o.Duration))))
		return
	}
	switch {
	case o.Outcome == middleware.Denied && !begun:
		e.Kind = Denied
		if e.Reason == "" && o.Err != nil {
			e.Reason = o.Err.Error()
			if rpc := (*mcp.Error)(nil); errors.As(o.Err, &rpc) {
				e.Reason = rpc.Message // the line has the code
			}
			if uri != "" {
				e.Reason = strings.ReplaceAll(e.Reason, uri, e.Name)
			}
		}
	case r.call:
		e.Kind = CallEnd
	case r.list:
		e.Kind = List
	case r.unsubscribed(&e, o.Outcome):
		t.Log.Add(e)
		return
	default:
		return
	}
	if e.Server == nil && e.Tool != "" && t.Owner != nil {
		if server, tool := t.Owner(e.Tool); server != "" {
			e.Server, e.Tool = t.server(server), cmp.Or(tool, e.Tool)
		}
	}
	e.Outcome, e.Code, e.Millis = string(o.Outcome), o.Code, r.earlier+millis(o.Duration)
	if o.Outcome == middleware.Failed {
		e.Fault = faults[outcome.Of(ctx, nil, o.Err).Cause]
		if outcome.ShutDown(ctx) && (o.Err == nil || e.Fault == faults[outcome.Lost]) {
			e.Fault, e.Reason = faults[outcome.Lost], "this program was stopped before the answer"
		}
	}
	if t.unknown(&e, begun, unknown) {
		e.Fault = unknownFault
	}
	if o.Outcome == middleware.Task && task != "" {
		e.Name = task
		t.tasks.Add(task, &pendingTask{e, time.Now()})
	}
	switch {
	case r.held:
		end := e // only these ends are kept
		r.mu.Lock()
		r.last = &end
		r.mu.Unlock()
	case e.Kind == CallEnd && (begun || o.Outcome != middleware.Failed && o.Outcome != middleware.Canceled || !t.begins.Load()):
		t.Log.Add(e)
	default:
		t.Log.addSome(e)
	}
}

// unknownFault is the Fault of a call of a tool or prompt that no server lists.
const unknownFault = "unknown"

// unknown reports whether a request that was refused, or has failed before it has left, is one for a tool or
// prompt that no server lists; found is true if Around has found that out.
func (t *Trail) unknown(e *Entry, begun, found bool) bool {
	switch {
	case begun || e.Outcome != string(middleware.Failed) && e.Outcome != string(middleware.Denied):
		return false
	case found || t.Unlisted == nil || e.Tool == "" || e.Fault != "" && e.Fault != faults[outcome.Server]:
		return found
	}
	server := ""
	if e.Server != nil {
		server = e.Server.Name
	}
	return t.Unlisted(server, e.Tool)
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// faults are the words for the causes of errors, as in the label error_type of metrics.
var faults = map[outcome.Cause]string{outcome.Deadline: "deadline", outcome.Lost: "transport", outcome.Server: "protocol", outcome.Unlogged: "audit", outcome.Waited: "unsent"}
