package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"reflect"
	"time"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/usercode"
	"github.com/patchbay-dev/patchbay/store"
	"github.com/patchbay-dev/patchbay/trace"
)

// User code runs behind usercode.Runner.Run, which turns a panic into an error:
//
//   - Every request, because the engine runs its handler behind a Runner, and every step from one
//     middleware to the next, so that middleware gets the error and not the panic. The functions of
//     tools, resources, prompts and completion, and Server.Visible, are called in dispatch, behind
//     the last of these steps.
//   - A task, which goes on without a request.
//   - The stores, because they are used on both sides of a call.
//   - The functions of a Client, of a call and of a server that run on other goroutines: those of
//     a connection or a timer.
//
// A test in internal/layers finds calls elsewhere.

// userCode returns the runner for the code of the server's user.
func (s *Server) userCode() *usercode.Runner {
	return &usercode.Runner{OnPanic: s.OnPanic, Logger: s.Logger}
}

// userCode returns the runner for the code of the client's user.
func (c *Client) userCode() *usercode.Runner { return &usercode.Runner{Logger: c.Logger} }

// contained is a Handler that turns panics into errors.
type contained struct {
	s    *Server
	next Handler
}

// Handle implements [Handler].
func (h contained) Handle(ctx context.Context, req *Request) (res Result, err error) {
	if _, err = req.exact(); err != nil {
		return nil, err
	}
	err = h.s.eng.User.Run(ctx, req.Method, func() (err error) {
		if res, err = h.next.Handle(ctx, req); err == nil {
			usable(res)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// Foreign tells package policy whether text from another program may come from behind h. It may if
// the server serves a Handler that is not a server of this program.
func (h contained) Foreign() bool { return h.s.foreign() }

// Missing implements the Checker of internal/step.
func (h contained) Missing(ctx context.Context, req *Request) (unlisted bool, err error) {
	if next, ok := h.next.(interface {
		Missing(ctx context.Context, req *Request) (bool, error)
	}); ok {
		return next.Missing(ctx, req)
	}
	return false, nil
}

// Definition implements the Definer of internal/step.
func (h contained) Definition(ctx context.Context, tool string) string {
	if next, ok := h.next.(interface {
		Definition(ctx context.Context, tool string) string
	}); ok {
		return next.Definition(ctx, tool)
	}
	return ""
}

// dispatcher is the Handler of a server's own features.
type dispatcher struct{ s *Server }

// Handle implements [Handler].
func (d dispatcher) Handle(ctx context.Context, req *Request) (Result, error) {
	return d.s.dispatch(ctx, req)
}

// Missing implements the Checker of internal/step. It does not call Server.Visible: dispatch does.
func (d dispatcher) Missing(_ context.Context, req *Request) (unlisted bool, err error) {
	switch req.Method {
	case revision.MethodCall:
		if _, ok := d.s.tools.snapshot().named(req.Param("name")); !ok {
			err = noTool(req)
		}
	case revision.MethodPrompt:
		if _, ok := d.s.prompts.snapshot().named(req.Param("name")); !ok {
			err = noPrompt(req)
		}
	}
	return err != nil, err
}

// Definition implements the Definer of internal/step.
func (d dispatcher) Definition(_ context.Context, tool string) string {
	t, ok := d.s.tools.snapshot().by[tool]
	if !ok {
		return ""
	}
	return t.digest.Of(tool, t.json)
}

func (s *Server) foreign() bool {
	own, ok := s.Handler.(*Server)
	return s.Handler != nil && !(ok && !own.foreign())
}

// usable panics if a result cannot be encoded.
func usable(res Result) {
	switch r := res.(type) {
	case RawResult: // nil stands for {}
		return
	case *ToolResult:
		if r == nil {
			break
		}
		for i, c := range r.Content {
			if absent(c) {
				panic(fmt.Errorf("mcp: the content of a tool result is nil at index %d", i))
			}
		}
		return
	case *PromptResult:
		if r == nil {
			break
		}
		for i := range r.Messages {
			if absent(r.Messages[i].Content) {
				panic(fmt.Errorf("mcp: the content of a prompt result is nil in message %d", i))
			}
		}
		return
	default:
		if v := reflect.ValueOf(res); v.Kind() == reflect.Pointer && !v.IsNil() {
			return
		}
	}
	panic(errNoResult)
}

// maxOwnDepth bounds the nesting of JSON in a result.
const maxOwnDepth = 1000

// mustBeJSON panics if a raw value from a handler is not valid JSON: it would break the message it
// is part of, or change its meaning.
func mustBeJSON(what string, raw json.RawMessage) {
	if err := jsonx.Valid(raw, maxOwnDepth); err != nil {
		panic(fmt.Errorf("mcp: %s of a handler: %w", what, err))
	}
}

// checked returns a handler with results that are valid. Only a function of the user needs the check:
// other handlers forward what was checked when it arrived.
func checked(h Handler) Handler {
	f, ok := h.(HandlerFunc)
	if !ok {
		return h
	}
	return HandlerFunc(func(ctx context.Context, req *Request) (Result, error) {
		res, err := f(ctx, req)
		if raw, ok := res.(RawResult); ok && err == nil && len(raw) > 0 {
			mustBeJSON("a RawResult", json.RawMessage(raw))
			if jsonx.KindOf(json.RawMessage(raw)) != '{' {
				panic(errors.New("mcp: a RawResult of a handler is not a JSON object"))
			}
		}
		return res, err
	})
}

var errNoResult = errors.New("mcp: a handler returned no result and no error")

// absent reports whether a block is nil, or a nil pointer.
func absent(c Content) bool {
	switch c.(type) {
	case nil:
		return true
	case TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource, ToolUseContent, ToolResultContent, RawContent:
		return false
	}
	v := reflect.ValueOf(c)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// serveWeb serves an HTTP request. Functions that are called before the request is parsed, such as
// HTTPConfig.Principal, are user code too.
func (s *Server) serveWeb(h http.Handler, w http.ResponseWriter, r *http.Request) {
	aborted := false
	err := s.eng.User.Run(r.Context(), "ServeHTTP", func() error {
		defer func() {
			if v := recover(); v == http.ErrAbortHandler {
				aborted = true
			} else if v != nil {
				panic(v)
			}
		}()
		h.ServeHTTP(w, r)
		return nil
	})
	if aborted { // by a node that was to answer: the connection has to break
		panic(http.ErrAbortHandler)
	}
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
	}
}

// containedTap returns a function that calls one of the user for a frame.
func containedTap(user *usercode.Runner, on func(trace.Frame)) func(trace.Frame) {
	return func(f trace.Frame) {
		_ = user.Run(context.Background(), "OnFrame", func() error { on(f); return nil })
	}
}

// containedStates is a [store.States] of the user.
type containedStates struct {
	user  *usercode.Runner
	store store.States
}

func (c containedStates) Put(ctx context.Context, state []byte, ttl time.Duration) (ref string, err error) {
	err = c.user.Run(ctx, "store.States.Put", func() (err error) { ref, err = c.store.Put(ctx, state, ttl); return err })
	return ref, err
}

func (c containedStates) Take(ctx context.Context, ref string) (state []byte, err error) {
	err = c.user.Run(ctx, "store.States.Take", func() (err error) { state, err = c.store.Take(ctx, ref); return err })
	return state, err
}

// containedTasks is a [store.Tasks] of the user.
type containedTasks struct {
	user  *usercode.Runner
	store store.Tasks
}

func (c containedTasks) PutTask(ctx context.Context, t store.Task) error {
	return c.user.Run(ctx, "store.Tasks.PutTask", func() error { return c.store.PutTask(ctx, t) })
}

func (c containedTasks) GetTask(ctx context.Context, id string) (t store.Task, ok bool, err error) {
	err = c.user.Run(ctx, "store.Tasks.GetTask", func() (err error) { t, ok, err = c.store.GetTask(ctx, id); return err })
	return t, ok, err
}

func (c containedTasks) ListTasks(ctx context.Context, owner, after string, limit int) (ts []store.Task, err error) {
	err = c.user.Run(ctx, "store.Tasks.ListTasks", func() (err error) { ts, err = c.store.ListTasks(ctx, owner, after, limit); return err })
	return ts, err
}

// containEvents contains a [store.Events] of the user.
func containEvents(user *usercode.Runner, events store.Events) store.Events {
	contained := containedEvents{user, events}
	if shared, ok := events.(store.SharedEvents); ok {
		return containedSharedEvents{contained, shared}
	}
	return contained
}

// containedEvents is a [store.Events] of the user.
type containedEvents struct {
	user  *usercode.Runner
	store store.Events
}

func (c containedEvents) Append(ctx context.Context, stream string, position int64, event []byte) error {
	return c.user.Run(ctx, "store.Events.Append", func() error { return c.store.Append(ctx, stream, position, event) })
}

func (c containedEvents) After(ctx context.Context, stream string, position int64) (events [][]byte, err error) {
	err = c.user.Run(ctx, "store.Events.After", func() (err error) { events, err = c.store.After(ctx, stream, position); return err })
	return events, err
}

func (c containedEvents) Forget(ctx context.Context, stream string) error {
	return c.user.Run(ctx, "store.Events.Forget", func() error { return c.store.Forget(ctx, stream) })
}

// containedSharedEvents is a [store.SharedEvents] of the user.
type containedSharedEvents struct {
	containedEvents
	shared store.SharedEvents
}

func (c containedSharedEvents) Name(stream string) (name string) {
	name = stream
	_ = c.user.Run(context.Background(), "store.SharedEvents.Name", func() error { name = c.shared.Name(stream); return nil })
	return name
}

func (c containedSharedEvents) Follow(ctx context.Context, stream string, position int64) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		wanted := true
		err := c.user.Run(ctx, "store.SharedEvents.Follow", func() error {
			for e, err := range c.shared.Follow(ctx, stream, position) {
				if wanted = yield(e, err); !wanted {
					break
				}
			}
			return nil
		})
		if err != nil && wanted {
			yield(store.Event{}, err)
		}
	}
}

// containSessions contains a [store.Sessions] of the user.
func containSessions(user *usercode.Runner, sessions store.Sessions) store.Sessions {
	contained := containedSessions{user, sessions}
	if shared, ok := sessions.(store.SharedSessions); ok {
		return containedSharedSessions{contained, shared}
	}
	return contained
}

// containedSharedSessions is a [store.SharedSessions] of the user.
type containedSharedSessions struct {
	containedSessions
	shared store.SharedSessions
}

func (c containedSharedSessions) Pass(ctx context.Context, id string, message json.RawMessage) error {
	return c.user.Run(ctx, "store.SharedSessions.Pass", func() error { return c.shared.Pass(ctx, id, message) })
}

func (c containedSharedSessions) OnPassed(handle func(id string, message json.RawMessage)) {
	_ = c.user.Run(context.Background(), "store.SharedSessions.OnPassed", func() error { c.shared.OnPassed(handle); return nil }) // a panic is reported
}

// containedSessions is a [store.Sessions] of the user.
type containedSessions struct {
	user  *usercode.Runner
	store store.Sessions
}

func (c containedSessions) PutSession(ctx context.Context, s store.Session) error {
	return c.user.Run(ctx, "store.Sessions.PutSession", func() error { return c.store.PutSession(ctx, s) })
}

func (c containedSessions) GetSession(ctx context.Context, id string) (s store.Session, ok bool, err error) {
	err = c.user.Run(ctx, "store.Sessions.GetSession", func() (err error) { s, ok, err = c.store.GetSession(ctx, id); return err })
	return s, ok, err
}

func (c containedSessions) DropSession(ctx context.Context, id string) error {
	return c.user.Run(ctx, "store.Sessions.DropSession", func() error { return c.store.DropSession(ctx, id) })
}

func (c containedSessions) OnTaken(end func(id string)) {
	_ = c.user.Run(context.Background(), "store.Sessions.OnTaken", func() error { c.store.OnTaken(end); return nil }) // a panic is reported
}
