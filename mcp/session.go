package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/bridge"
	"github.com/patchbay-dev/patchbay/internal/buffer"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// A Session is the client's end of a logical connection to one server. A [Client] creates it, and
// any number of goroutines may use it. It is a [Handler]: Handle forwards a request, with its
// questions and notifications, to the server.
//
// A legacy HTTP server may end the session on its side, for instance after a restart. The Session
// then opens a new one with the same subscriptions and log level, and Watch reports everything
// watched as changed. A read that the server refused because the session was lost has not run, and
// is sent once more. If the session has seen requests other than reads, the server may have kept
// state for it: the next tool call, and those made at the same time, then fail once with
// [ErrSessionLost]. If the server loses the new session before it was used, the Session ends.
type Session struct {
	client *Client
	remote bridge.Remote // the server, at the far end of the wire
	local  *localWire    // the wire, or nil if the server is not a Handler of this process
	behind *Session      // the session with the server, behind the middleware of the client; nil if there is none in between
	face   *Session      // the session that this one is behind, or nil

	older    *revision.Table // best common legacy revision, while opening
	repeated bool            // server/discover was sent twice with one revision, while opening
	info     atomic.Pointer[ServerInfo]
	how      string
	limits   Limits
	log      *slog.Logger
	user     *usercode.Runner
	tap      *engine.Tap // nil: OnFrame is not set

	outputs outputs
	feed    changeFeed // of changes that a legacy server announces
	changes changes    // list changes that the server has announced
	events  chan Event // for Client.OnEvent; full: the oldest is dropped and logged
	wg      sync.WaitGroup

	mu         sync.Mutex
	subscribed map[string]*subscription // by URI, on a legacy server; guarded by mu
}

// begin starts the session's goroutines and returns the session for the user: s itself, or one in
// front of the client's middleware.
func (s *Session) begin() (*Session, error) {
	if s.local == nil && len(s.client.middleware) > 0 {
		var err error
		if s.face, err = s.client.inFront(s); err != nil {
			s.failed(err)
			return nil, err
		}
		s.face.start()
	}
	s.start()
	return orDefault(s.face, s), nil
}

func (s *Session) start() {
	if s.tap != nil { // not local
		s.tap.Frame(trace.Frame{Kind: trace.KindSession, Dir: trace.Out, Note: s.remote.Rev.Name + " with " + s.Server().Name + " " + s.Server().Version + ": " + s.how})
	}
	leave := s.client.enter(s)
	s.wg.Go(func() { s.announce(leave) })
}

// announce calls Client.OnEvent until the session ends, and then leave.
func (s *Session) announce(leave func()) {
	over := false
	defer func() {
		if over {
			leave()
		} else { // OnEvent has ended the goroutine with runtime.Goexit
			s.wg.Go(func() { s.announce(leave) })
		}
	}()
	for {
		select {
		case e := <-s.events:
			_ = s.user.Run(context.Background(), "Client.OnEvent", func() error { s.client.OnEvent(orDefault(s.face, s), e); return nil })
		case <-s.remote.Wire.Done():
			if over = true; s.face != nil {
				s.face.local.end(s.remote.Wire.Err())
			}
			return
		}
	}
}

// failed releases a session that could not be opened.
func (s *Session) failed(err error) {
	if s.tap != nil {
		s.tap.Frame(trace.Frame{Kind: trace.KindClose, Dir: trace.Out, Note: "no session: " + publicError(err).Error()})
	}
	s.remote.Wire.Close()
}

// Revision is the revision spoken with the server.
func (s *Session) Revision() Revision { return Revision(s.server().remote.Rev.Name) }

// server returns the session with the server itself.
func (s *Session) server() *Session {
	if s.behind != nil {
		return s.behind
	}
	return s
}

// Server returns the server's description of itself from the opening of the session, or from the
// last time the session was opened again. For a Handler of this process, the first call of Server
// asks it; if it does not answer, Server returns an empty value. The value must not be changed.
func (s *Session) Server() *ServerInfo {
	s = s.server()
	if info := s.info.Load(); info != nil || s.local == nil {
		return info
	}
	return s.local.info()
}

// capabilities returns the server's capabilities, in the form of the revision that the session
// itself speaks.
func (s *Session) capabilities() Capabilities {
	if s.behind != nil {
		return s.behind.forwardInfo().Capabilities
	}
	return s.Server().Capabilities
}

// Negotiation describes in words how the revision was negotiated: with which request, and why not
// with another. It is for people; its words may change.
func (s *Session) Negotiation() string { return s.server().how }

// Done is closed when the session is over; [Session.Err] then returns the reason.
func (s *Session) Done() <-chan struct{} { return s.remote.Wire.Done() }

// Err returns the reason why the session is over, nil while it is open: [ErrClosed] after Close, an
// [*ExitError] if the server's process ended.
func (s *Session) Err() error { return publicError(s.remote.Wire.Err()) }

// Close ends the session, within 4 seconds whatever the server does, and half a second more if
// there are tasks to cancel. Calls in progress fail with [ErrClosed], and the tasks that they wait
// for are cancelled.
func (s *Session) Close() error {
	quiet, err := s.remote.Close()
	if s.behind != nil {
		err = s.behind.Close()
	}
	ended := make(chan struct{})
	go func() { defer close(ended); s.wg.Wait(); <-quiet }()
	t := time.NewTimer(closeGrace)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C: // Client.OnEvent does not return; its goroutine is abandoned
	}
	return err
}

const closeGrace = 250 * time.Millisecond

// CallOption changes one call.
type CallOption func(*callOptions)

type callOptions struct {
	progress func(done, total float64, message string)
	log      func(LogMessage)
	idle     time.Duration
	meta     Meta
	header   http.Header // of WithHeader, with canonical names
	page     func(Meta)
	fresh    bool
	onBehalf bool

	told bool    // some progress was reported
	done float64 // the last value reported
}

// OnProgress calls f, in order and before the call returns, with the progress of the call. Total is
// 0 and message is empty if the server does not say them. Reports that do not grow are dropped.
// The function f may use the session.
func OnProgress(f func(done, total float64, message string)) CallOption {
	return func(o *callOptions) { o.progress = f }
}

// OnLog calls f, in order and before the call returns, with the log messages that belong to the
// call. [Client.LogLevel] selects the messages that the server sends.
func OnLog(f func(LogMessage)) CallOption { return func(o *callOptions) { o.log = f } }

// IdleTimeout bounds the time without an answer, progress, question or log message, in place of
// [Limits.CallTimeout]; negative: no bound. It does not run while the call waits for a task.
func IdleTimeout(d time.Duration) CallOption { return func(o *callOptions) { o.idle = d } }

// WithoutCache makes a call that gets a list, a resource or server/discover ask the server, even if
// the session has a valid cached result. The new result replaces the cached one.
//
// Specification: 2026-07-28, server/utilities/caching.
func WithoutCache() CallOption { return func(o *callOptions) { o.fresh = true } }

// OnBehalf sends questions, progress and log messages of one call to the caller of ctx instead of
// the functions of the [Client] and of the call. It is for a tool that calls another [Handler].
// Without a call in ctx, the call fails with [ErrNoCall].
//
// If the caller speaks 2026-07-28, it comes back with the answer, as after [Elicit]: the call fails
// with [ErrPending], the handler returns that error, runs again, and makes the same call again,
// which continues where it was. If the call fails because the caller does not support a question,
// the error is [ErrNotSupported], as that of Elicit is. The functions of the Client still determine what a server before
// 2026-07-28, or a Handler of this process, may ask. [Session.StartTask] refuses OnBehalf.
func OnBehalf() CallOption { return func(o *callOptions) { o.onBehalf = true } }

// OnPage calls f with the _meta of each page of a list, before the entries of the page; nil for a
// page without _meta.
func OnPage(f func(Meta)) CallOption { return func(o *callOptions) { o.page = f } }

// CallTool calls a tool. The arguments must marshal to a JSON object: args is a struct, a map, a
// json.RawMessage, or nil for none. The functions of the [Client] answer questions that the server
// asks.
//
// A failure of the tool is a result with IsError, not an error. Errors are the server's [*Error],
// [*HTTPError], [*ExitError], [ErrClosed], one that is [io.ErrUnexpectedEOF] when the connection
// was lost, or the cause of ctx; after one of the last five it is not known whether the tool has
// run, except that a call with a ctx that has ended before is not sent. If the server has asked a question in the call or made a task of it, the error is also a
// [BegunError]. A question from an older server that may belong to any of several calls counts for
// each.
//
// If the tool was listed with an output schema and the structured result does not fit it, CallTool
// returns an error that names the place, and the result with it. A schema that cannot be compiled
// is logged and not enforced.
func (s *Session) CallTool(ctx context.Context, name string, args any, opts ...CallOption) (*ToolResult, error) {
	buf := buffer.Get()
	defer buffer.Put(buf)
	params, err := appendNamed(*buf, name, args)
	*buf = params
	if err != nil {
		return nil, fmt.Errorf("call %q: %w", name, err)
	}
	raw, err := s.request(ctx, revision.MethodCall, params, opts)
	if err != nil {
		return nil, fmt.Errorf("call %q: %w", name, err)
	}
	res, err := decodeToolResult(raw)
	if err != nil {
		return nil, fmt.Errorf("call %q: %w", name, err)
	}
	if err := s.outputs.check(name, res); err != nil {
		return res, fmt.Errorf("call %q: %w", name, err)
	}
	return res, nil
}

// CallAs calls a tool and decodes its structured result, or else its text, into an Out. If Out cannot
// hold the structured result, and that has only the member "result", as those of [AddTool] have for
// numbers and lists, CallAs decodes the member. A result with IsError is returned as a [*ToolError].
func CallAs[Out any](ctx context.Context, s *Session, name string, args any, opts ...CallOption) (Out, error) {
	var out Out
	res, err := s.CallTool(ctx, name, args, opts...)
	if err != nil {
		return out, err
	}
	if res.IsError {
		return out, &ToolError{name, res}
	}
	if res.Structured != nil {
		err := jsonx.Unmarshal(res.Structured, &out)
		if err == nil {
			return out, nil
		}
		var value Out
		if only := jsonx.Only(res.Structured, "result"); only != nil && jsonx.Unmarshal(only, &value) == nil {
			return value, nil
		}
		return out, fmt.Errorf("call %q: the result: %w", name, err)
	}
	if text, ok := any(&out).(*string); ok {
		*text = res.Text()
		return out, nil
	}
	if err := jsonx.Unmarshal([]byte(res.Text()), &out); err != nil {
		return out, fmt.Errorf("call %q: the result is not JSON for %T: %w", name, out, err)
	}
	return out, nil
}

// GetPrompt gets a prompt. Its arguments are all strings; args may be nil.
func (s *Session) GetPrompt(ctx context.Context, name string, args map[string]string, opts ...CallOption) (*PromptResult, error) {
	var a any
	if args != nil {
		a = args
	}
	params, err := namedParams(name, a)
	if err != nil {
		return nil, fmt.Errorf("prompt %q: %w", name, err)
	}
	raw, err := s.request(ctx, revision.MethodPrompt, params, opts)
	if err != nil {
		return nil, fmt.Errorf("prompt %q: %w", name, err)
	}
	return decodePromptResult(raw)
}

// ReadResource reads a resource.
func (s *Session) ReadResource(ctx context.Context, uri string, opts ...CallOption) (*ReadResult, error) {
	params := append(jsonx.AppendString([]byte(`{"uri":`), uri), '}')
	raw, err := s.request(ctx, revision.MethodRead, params, opts)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", uri, err)
	}
	var res ReadResult
	if err := jsonx.Unmarshal(raw, &res); err != nil {
		return nil, fmt.Errorf("read %q: the result: %w", uri, err)
	}
	res.Cache.TTL, res.Cache.Public = bridge.Freshness(raw)
	return &res, nil
}

// Complete asks for values of an argument of a prompt, or of a variable of a resource template,
// that suit the prefix typed so far. The Feature is of kind KindPrompt, KindResource or
// KindResourceTemplate; others holds the arguments that are already known.
func (s *Session) Complete(ctx context.Context, of Feature, argument, prefix string, others map[string]string) (*CompleteResult, error) {
	ref := map[string]string{"type": "ref/resource", "uri": of.Name}
	if of.Kind == KindPrompt {
		ref = map[string]string{"type": "ref/prompt", "name": of.Name}
	}
	params := map[string]any{"ref": ref, "argument": map[string]string{"name": argument, "value": prefix}}
	if len(others) > 0 {
		params["context"] = map[string]any{"arguments": others}
	}
	raw, err := s.request(ctx, revision.MethodComplete, encode(params), nil)
	if err != nil {
		return nil, fmt.Errorf("complete %q: %w", of.Name, err)
	}
	var w completeWire
	if err := jsonx.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("complete %q: the result: %w", of.Name, err)
	}
	return &CompleteResult{w.Completion.Values, w.Completion.Total, w.Completion.HasMore}, nil
}

// Do sends any request and returns its result as a [RawResult]. Params and result have the form of
// revision 2026-07-28 whatever the server speaks, but the method is sent as it is: one that the
// revision of the server does not have fails with the server's method-not-found error, such as
// server/discover, subscriptions/listen and tasks/update before 2026-07-28, and ping and
// logging/setLevel since. Behind middleware ([Client.Use]) the first three work with every server,
// as in [Session.Handle].
//
// Unlike [Session.Handle], Do sends the request as the client's own: the functions of the [Client]
// answer questions, and Do waits for a task that the server makes of the request. The params must
// be a JSON object; nil stands for an empty one. Errors are those of [Session.CallTool].
func (s *Session) Do(ctx context.Context, req *Request, opts ...CallOption) (Result, error) {
	var params json.RawMessage
	var err error
	switch {
	case req == nil:
		return nil, errNilRequest
	case s.local != nil: // there may be middleware
		if params, err = req.exact(); err != nil {
			return nil, err
		}
	default:
		if params, err = req.validParams(); err != nil {
			return nil, Errorf(jsonrpc.CodeInvalidParams, "%s: %v", text.Short(req.Method), err)
		}
	}
	raw, err := s.request(ctx, req.Method, jsonx.OrObject(params), opts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", req.Method, err)
	}
	return RawResult(raw), nil
}

// Raw is [Session.Do] for params that marshal to a JSON object, nil for an empty one. It returns
// the result object without the members that belong to the wire.
func (s *Session) Raw(ctx context.Context, method string, params any, opts ...CallOption) (json.RawMessage, error) {
	raw := json.RawMessage(`{}`)
	if params != nil {
		var err error
		if raw, err = jsonx.Marshal(params); err != nil {
			return nil, fmt.Errorf("%s: params: %w", method, err)
		}
	}
	res, err := s.Do(ctx, &Request{Method: method, Params: raw}, opts...)
	if err != nil {
		return nil, err
	}
	return json.RawMessage(res.(RawResult)), nil
}

// Tools iterates over the server's tools. Pages are fetched as needed, unless the session has a
// cached page that is still valid ([WithoutCache]). An error ends the iteration. A tool that cannot
// be decoded, or that must not be used because of its x-mcp-header annotations
// ([Session.CheckTool]), is left out and logged.
func (s *Session) Tools(ctx context.Context, opts ...CallOption) iter.Seq2[*Tool, error] {
	return func(yield func(*Tool, error) bool) {
		for t, err := range listOf[Tool](ctx, s, feature.Tools, opts) {
			if t != nil && s.learn(t) != nil {
				continue
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// Prompts iterates over the server's prompts, like [Session.Tools].
func (s *Session) Prompts(ctx context.Context, opts ...CallOption) iter.Seq2[*Prompt, error] {
	return listOf[Prompt](ctx, s, feature.Prompts, opts)
}

// Resources iterates over the server's resources, like [Session.Tools].
func (s *Session) Resources(ctx context.Context, opts ...CallOption) iter.Seq2[*Resource, error] {
	return listOf[Resource](ctx, s, feature.Resources, opts)
}

// ResourceTemplates iterates over the server's resource templates, like [Session.Tools].
func (s *Session) ResourceTemplates(ctx context.Context, opts ...CallOption) iter.Seq2[*ResourceTemplate, error] {
	return listOf[ResourceTemplate](ctx, s, feature.Templates, opts)
}

// namedParams makes the params of a request that names a feature.
func namedParams(name string, args any) (json.RawMessage, error) {
	return appendNamed(nil, name, args)
}

// appendNamed appends what namedParams returns.
func appendNamed(dst []byte, name string, args any) ([]byte, error) {
	out := jsonx.AppendString(append(dst, `{"name":`...), name)
	if args == nil {
		return append(out, '}'), nil
	}
	out = append(out, `,"arguments":`...)
	start := len(out)
	out, err := jsonx.AppendMarshal(out, args)
	if err != nil {
		return dst, fmt.Errorf("arguments: %w", err)
	}
	if jsonx.KindOf(out[start:]) != '{' {
		return dst, errors.New("the arguments must become a JSON object")
	}
	return append(out, '}'), nil
}

// AsksRoots reports whether a server before 2026-07-28 has asked for the client's roots. From then
// on its behaviour may depend on them.
func (s *Session) AsksRoots() bool { return s.server().remote.AsksRoots() }

// Asks reports whether the server asks questions that do not name their call, so that forwarded
// calls of different callers take turns. It is always false for a server that speaks 2026-07-28.
func (s *Session) Asks() bool { return s.server().remote.Asks() }

// Turns returns how many forwarded calls wait for their turn (see Asks). If a forwarded call has an
// open question of a server before 2026-07-28, it also returns when the oldest was asked, and the
// principal who has to answer it, empty if unknown; otherwise asked is zero. The question may be open
// although no call waits for it.
func (s *Session) Turns() (waiting int, asked time.Time, principal string) {
	return s.server().remote.Turns()
}

// TakeTurns makes s behave as if Asks were true. Use it for a server that is known from an earlier
// session.
func (s *Session) TakeTurns() { s.server().remote.TakeTurns() }
