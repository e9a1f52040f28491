package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/patchbay-dev/patchbay/internal/bridge"
	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/hop"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/stray"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/transport/duplex"
	"github.com/patchbay-dev/patchbay/internal/transport/stdio"
	"github.com/patchbay-dev/patchbay/internal/transport/streamable"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/trace"
)

// A Client opens sessions with servers. Its fields are read when a session opens
// and not after. One Client may open many sessions.
type Client struct {
	Name, Title, Version string

	// OnElicit answers questions to the user. If nil, elicitation is not declared. Fields that the
	// answer leaves out get the defaults of the form. The errors ErrDeclined and ErrDismissed stand
	// for the answers "decline" and "cancel". Any other error fails the question at a server before
	// 2026-07-28 and the call at a later one. If the question belongs to a call, ctx has
	// the values of that call's context. With a server that speaks 2026-07-28 it always does. A
	// question from an older server belongs to a call if it arrives on the stream of the call or
	// only one call is in progress. The same holds for OnSample and Roots.
	OnElicit func(ctx context.Context, r *ElicitRequest) (*ElicitResult, error)

	// OnSample answers requests for a language model's completion. ErrDeclined and ErrDismissed say
	// that the user refused: [Sample] then fails with ErrDeclined. Toward a server that speaks
	// 2026-07-28 a refusal cannot be sent, and the call itself fails with ErrDeclined. If nil,
	// sampling is not declared.
	OnSample func(ctx context.Context, r *SampleRequest) (*SampleResult, error)

	// Roots answers requests for the client's roots: file: URIs without ".." in their paths. With
	// any other URI the server gets an error. If nil, roots are not declared. The result may change
	// between calls; [Client.RootsChanged] notifies legacy servers of that.
	Roots func(ctx context.Context) ([]Root, error)

	// Capabilities restrict the declared settings of elicitation, sampling and roots to the given
	// ones, such as {"elicitation": {"form": {}}}; where {} stands for forms. A capability without
	// its function above is never declared. Nil: no restriction.
	Capabilities Capabilities

	// Front is the context of an incoming call. Set it in a handler that forwards requests with
	// [Session.Handle], if the Client opens connections only for the session of that call. A
	// question that a legacy server asks outside of any call is then forwarded to that session,
	// which must answer within 15 minutes, and within 10 seconds if it is asked for roots. If Front
	// is nil, or its call has no session, OnElicit, OnSample and Roots answer such a question;
	// otherwise they only determine the declared capabilities.
	Front context.Context

	// Extensions holds the settings of each extension to declare to servers of every revision, by
	// identifier, such as "io.modelcontextprotocol/ui". The settings are a JSON object, {} for
	// none. The tasks extension is always declared. The application implements everything else that
	// an extension asks of a client.
	Extensions map[string]json.RawMessage

	// OnEvent is called with the notifications that a server sends outside of calls, one at a time.
	// It must not wait for the session it is given. If nil, events are dropped.
	OnEvent func(s *Session, e Event)

	// LogLevel is the minimum level of log messages to ask servers for. Nil: none.
	LogLevel slog.Leveler

	// HTTPClient carries requests to HTTP servers. Nil: a client without an overall timeout,
	// because calls may be long. Package auth/login has a Transport for it that logs in.
	HTTPClient *http.Client

	// Header is sent with each HTTP request.
	Header http.Header

	Revisions []Revision // nil: all
	Limits    Limits

	// Eras remembers which servers are legacy. If nil, this Client keeps its own.
	Eras *Eras

	// OnFrame is called for traffic on the wire, like [Server.OnFrame], and for the processes of
	// servers and their standard error.
	OnFrame func(trace.Frame)

	// Watched switches OnFrame, like [Server.Watched].
	Watched *atomic.Bool

	// Logger gets errors that a session cannot return to a caller, and panics of the functions
	// above and of those in call options. Such a panic fails only the operation that called the
	// function. If nil, everything is discarded except panics, which go to the standard logger of
	// package log.
	Logger *slog.Logger

	wires atomic.Int64 // opened so far, for their names

	middleware []Middleware
	begun      atomic.Bool // a session has been opened

	mu       sync.Mutex
	sessions map[*Session]struct{} // open ones; guarded by mu
	own      Eras
}

// A Transport opens connections of a kind that this package does not implement.
type Transport interface {
	// Connect opens a connection. The context bounds the opening only.
	Connect(ctx context.Context) (jsonrpc.Conn, error)
}

// Event is a notification that a server sent outside of any call.
type Event struct {
	Method string          // "notifications/tools/list_changed" and others
	Params json.RawMessage // nil if there were none

	URI string      // of the resource that changed, for notifications/resources/updated
	Log *LogMessage // for notifications/message
}

// LogMessage is a log record from a server.
type LogMessage struct {
	Level  slog.Level // package level has the names
	Logger string
	Data   json.RawMessage
}

// HTTPError is an HTTP response with a status other than success and without a JSON-RPC error in
// its body.
type HTTPError struct {
	Status int
	Header http.Header
	Body   string // its beginning, for people
}

func (e *HTTPError) Error() string {
	return engine.StatusText(e.Status, e.Header, e.Body) + bridge.WaitText(e.Status, e.Header)
}

// ExitError says that the process of a server has ended, how it ended, and the last of its standard
// error.
type ExitError struct {
	Command string
	State   string // "exit status 1", "signal: killed"
	Stderr  string // at most 2 KiB
}

func (e *ExitError) Error() string {
	s := fmt.Sprintf("server process %q ended: %s", e.Command, e.State)
	if e.Stderr != "" {
		s += fmt.Sprintf("; it last said: %q", e.Stderr)
	}
	return s
}

// publicError turns an error from a transport into one of this package.
func publicError(err error) error {
	if err == nil {
		return nil
	}
	var he *engine.HTTPError
	var ee *stdio.ExitError
	var lost *streamable.SessionLostError
	var renewed *streamable.RenewedError
	var local *engine.LocalError
	switch {
	case errors.As(err, &local):
		return err // as the handler has returned it
	case errors.As(err, &renewed):
		return &lostError{renewed.Error(), ErrSessionLost}
	case errors.As(err, &lost):
		return &lostError{lost.Error(), publicError(lost.Err)}
	case errors.As(err, &he):
		if he.RPC != nil {
			return bridge.Refusal(he)
		}
		return &HTTPError{he.Status, he.Header, he.Body}
	case errors.As(err, &ee):
		return &ExitError{ee.Command, ee.State, ee.Stderr}
	case errors.Is(err, duplex.ErrClosed), errors.Is(err, jsonrpc.ErrClosed):
		return ErrClosed
	}
	return err
}

// lostError combines the text of a transport error with a cause of this package.
type lostError struct {
	text  string
	cause error
}

func (e *lostError) Error() string { return e.text }
func (e *lostError) Unwrap() error { return e.cause }

// Dial opens a session with the server at a URL. The context bounds the opening only.
//
//   - http and https: Streamable HTTP or, if the server does not serve that, HTTP+SSE of
//     2024-11-05. HTTP+SSE cannot resume: the end of its stream ends the session.
//   - ws and wss: WebSocket, as [Server.WebSocket] serves it.
//   - unix:///path and tcp://host:port: messages in lines, as [Server.ServeListener]
//     serves them, without authentication and encryption.
//
// Dial finds the era of the server by asking it: server/discover first, then initialize if the
// answer is not one of the modern era. Later Dials remember the era. A status such as 401 or 503
// does not decide the era, and Dial returns it as an [*HTTPError].
//
// Specification: 2026-07-28, basic/transports/streamable-http, Backward Compatibility.
func (c *Client) Dial(ctx context.Context, url string) (*Session, error) {
	u, err := parseAddress(url)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return c.dialDuplex(ctx, url, u)
	}
	s := c.newSession()
	s.remote.HTTP, s.remote.ID, s.tap = true, url, c.tap(ctx, "http", &s.remote)
	s.remote.Wire = streamable.NewClient(streamable.ClientOptions{
		URL: url, HTTP: c.HTTPClient, Inbox: &s.remote, Renew: s.renew, MaxMessage: orDefault(c.Limits.Message, 16<<20),
		MaxDepth: s.limits.Depth, Tap: s.tap, Header: c.Header, Logger: s.log,
	})
	if err := s.openHTTP(ctx, url); err != nil {
		s.failed(err)
		return nil, fmt.Errorf("dial %s: %w", url, publicError(err))
	}
	return s.begin()
}

// Start starts a server as a child process and opens a session over its standard streams. Leave
// cmd.Stdin and cmd.Stdout nil; cmd.Stderr gets the server's standard error. If the era of the
// command is not known (see [Eras]) and the process ends when it is asked, Start starts it a second
// time; cmd.Process is then the second process. The context bounds the opening only. The process
// ends with the session: its input is closed, then it is asked to terminate, then killed, with
// everything in its process group, within 4 seconds. If this process dies, the child also dies on
// Linux and Windows.
//
// Specification: 2026-07-28, basic/transports/stdio.
func (c *Client) Start(ctx context.Context, cmd *exec.Cmd) (*Session, error) {
	if cmd.Err != nil {
		return nil, fmt.Errorf("start: %w", cmd.Err)
	}
	key := fmt.Sprint(cmd.Args, cmd.Dir)
	run, again := cmd, cloneCmd(cmd)
	s, err := c.openTwice(key, func() (*Session, error) {
		s, err := c.start(ctx, run, key)
		if s != nil && run != cmd { // the first process has ended
			cmd.Process = run.Process
		}
		run = again
		return s, err
	})
	var exit *ExitError
	switch err = publicError(err); {
	case err == nil:
		return s, nil
	case errors.As(err, &exit):
		return nil, err // it names the command
	}
	return nil, fmt.Errorf("start %q: %w", stdio.Name(cmd), err)
}

func (c *Client) start(ctx context.Context, cmd *exec.Cmd, key string) (*Session, error) {
	tap := c.tap(ctx, "stdio", nil)
	child, err := stdio.Start(cmd, c.Limits.Message, tap)
	if err != nil {
		return nil, err
	}
	return c.openDuplex(ctx, child.Conn(), key, child.Explain, tap)
}

// cloneCmd copies the configuration of a command that has not been started.
func cloneCmd(cmd *exec.Cmd) *exec.Cmd {
	out := exec.Command(cmd.Path)
	out.Args, out.Env, out.Dir, out.Stderr, out.ExtraFiles = cmd.Args, cmd.Env, cmd.Dir, cmd.Stderr, cmd.ExtraFiles
	if cmd.SysProcAttr != nil {
		attr := *cmd.SysProcAttr
		out.SysProcAttr = &attr
	}
	return out
}

// Connect opens a session over a transport of another kind. The context bounds the opening only.
func (c *Client) Connect(ctx context.Context, t Transport) (*Session, error) {
	conn, err := t.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	s, err := c.openDuplex(ctx, conn, "", nil, c.tap(ctx, transportOf(conn), nil))
	if err != nil {
		return nil, fmt.Errorf("connect: %w", publicError(err))
	}
	return s, nil
}

func (c *Client) openDuplex(ctx context.Context, conn jsonrpc.Conn, key string, explain func(error) error, tap *engine.Tap) (*Session, error) {
	s := c.newSession()
	s.remote.ID, s.tap = key, tap
	if tap != nil {
		tap.Causes.Asker = s.remote.CauseOf
	}
	wire := duplex.NewClient(conn, duplex.ClientOptions{
		Inbox: &s.remote, MaxDepth: s.limits.Depth, Tap: tap, Logger: s.log, Explain: explain, Stray: stray.From(ctx),
	})
	if explain != nil && s.limits.Mute > 0 { // it is a command
		s.remote.Mute(s.limits.Mute, wire.Frames, func(calls int, limit time.Duration) {
			go wire.End(fmt.Errorf("it did not answer %d calls in a row, each given up after %v", calls, limit))
		})
	}
	s.remote.Wire = wire
	if err := s.openDuplex(ctx, key); err != nil {
		s.failed(err)
		return nil, err
	}
	return s.begin()
}

func (c *Client) newSession() *Session {
	c.begun.Store(true)
	s := &Session{
		client: c, limits: c.Limits.withDefaults(), log: c.Logger, user: c.userCode(),
		events: make(chan Event, 256), subscribed: map[string]*subscription{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	r := &s.remote
	r.Owner, r.Log, r.Hop = (*owner)(s), s.log, c.Header.Get(hop.Header)
	r.Limits = bridge.Limits{
		Rounds: s.limits.Rounds, Cache: s.limits.Cache, Idle: orDefault(c.Limits.CallTimeout, time.Minute),
		CallTimeout: s.limits.CallTimeout, CallLimit: s.limits.CallLimit,
	}
	if call := engine.From(orDefault(c.Front, context.Background())); call != nil && call.Session() != nil {
		r.Front, r.Opener = call, c.Front
	}
	r.Init()
	return s
}

// tap returns the tap for the frames of one connection, which ctx opens, or nil if OnFrame is nil.
// The remote is that of the session, or nil if there is none yet.
func (c *Client) tap(ctx context.Context, transport string, remote *bridge.Remote) *engine.Tap {
	f := c.OnFrame // later changes of the field do not count
	if f == nil {
		return nil
	}
	tap := newTap(c.userCode(), f, c.Watched, transport, &c.wires)
	tap.Causes = new(engine.Causes)
	if remote != nil {
		tap.Causes.Asker = remote.CauseOf
	}
	if tap.On() {
		tap.Opener = engine.CauseOf(ctx)
	}
	return tap
}

func (c *Client) implementation() Implementation {
	return Implementation{Name: orDefault(c.Name, "patchbay"), Title: c.Title, Version: orDefault(c.Version, "0")}
}

// capabilities returns the capabilities for the client's fields, in the form of the newest
// revision.
func (c *Client) capabilities() json.RawMessage {
	extensions := map[string]json.RawMessage{revision.Tasks: json.RawMessage(`{}`)}
	maps.Copy(extensions, c.Extensions)
	caps := Capabilities{"extensions": encode(extensions)}
	declare := func(name, all string, settings ...string) {
		caps[name] = json.RawMessage(all)
		if c.Capabilities == nil {
			return
		}
		if !c.Capabilities.Has(name) {
			delete(caps, name)
			return
		}
		some := map[string]json.RawMessage{}
		for _, s := range settings {
			if c.Capabilities.Has(name, s) {
				some[s] = json.RawMessage(`{}`)
			}
		}
		caps[name] = encode(some)
	}
	if c.OnElicit != nil {
		declare("elicitation", `{"form":{},"url":{}}`, "form", "url")
		if string(caps["elicitation"]) == `{}` {
			caps["elicitation"] = json.RawMessage(`{"form":{}}`)
		}
	}
	if c.OnSample != nil {
		declare("sampling", `{"tools":{}}`, "tools", "context")
	}
	if c.Roots != nil {
		declare("roots", `{}`)
	}
	return encode(caps)
}

// RootsChanged announces that the result of [Client.Roots] has changed. Open sessions with legacy
// servers send a notification; modern servers ask again in each call. The context bounds the
// sending; failures are logged.
//
// Specification: 2025-11-25, client/roots, Root List Changes.
func (c *Client) RootsChanged(ctx context.Context) {
	if c.Roots == nil {
		return
	}
	c.mu.Lock()
	sessions := slices.Collect(maps.Keys(c.sessions))
	c.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range sessions {
		wg.Go(func() {
			if err := s.remote.RootsChanged(ctx); err != nil && !s.remote.Ended() {
				s.log.Warn("server not notified of changed roots", "server", text.Short(s.Server().Name), "err", err)
			}
		})
	}
	wg.Wait()
}

// enter adds a session to the open ones; leave removes it.
func (c *Client) enter(s *Session) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sessions == nil {
		c.sessions = map[*Session]struct{}{}
	}
	c.sessions[s] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.sessions, s)
	}
}

// answer answers a question from a server with the client's own functions. If one of them ends its
// goroutine, answer does not return.
func (c *Client) answer(ctx context.Context, method string, params json.RawMessage) (answer json.RawMessage, err error) {
	user := c.userCode()
	err = user.Run(ctx, "the client's answer to "+method, func() error {
		answer, err = c.ask(ctx, user, method, params)
		return err
	})
	return answer, err
}

// ask calls the client's own functions and encodes their answer.
func (c *Client) ask(ctx context.Context, user *usercode.Runner, method string, params json.RawMessage) (json.RawMessage, error) {
	switch {
	case method == revision.MethodElicit && c.OnElicit != nil:
		return c.elicit(ctx, user, params)
	case method == revision.MethodSample && c.OnSample != nil:
		r, err := decodeSampleRequest(params)
		if err != nil {
			return nil, Errorf(jsonrpc.CodeInvalidParams, "%v", err)
		}
		var res *SampleResult
		err = user.Run(ctx, "Client.OnSample", func() error { res, err = c.OnSample(ctx, r); return err })
		if errors.Is(err, ErrDeclined) || errors.Is(err, ErrDismissed) {
			return nil, fmt.Errorf("%w: %w", ErrDeclined, Errorf(bridge.CodeDeclined, "the user declined the sampling request"))
		}
		if err != nil {
			return nil, err
		}
		if res == nil {
			return nil, errors.New("sampling: OnSample returned neither an answer nor an error")
		}
		return res.encode(), nil
	case method == revision.MethodRoots && c.Roots != nil:
		var roots []Root
		err := user.Run(ctx, "Client.Roots", func() (err error) { roots, err = c.Roots(ctx); return err })
		if err != nil {
			return nil, err
		}
		for _, r := range roots {
			if err := r.check(); err != nil {
				return nil, err
			}
		}
		return encode(struct {
			Roots []Root `json:"roots"`
		}{roots}), nil
	}
	return nil, Errorf(jsonrpc.CodeMethodNotFound, "this client does not answer %q", text.Short(method))
}
