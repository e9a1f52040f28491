package engine

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/node"
	"github.com/patchbay-dev/patchbay/internal/revision"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// Question is something that only the client can answer: an elicitation, a
// sampling request or a request for roots, in the inner form.
type Question struct {
	Method string
	Params json.RawMessage
	Key    string // identity; empty: the ordinal and a digest of the question
}

// ErrSuspended is returned by Ask when the answer is not there yet. A handler returns it like any
// error; the engine then answers input_required.
var ErrSuspended = errors.New("mcp: waiting for the caller's answer; return this error")

// LacksError reports that the caller did not declare, or its revision does not have, a capability
// that a question needs.
type LacksError struct {
	// Required is the missing part as a ClientCapabilities object, or nil if no
	// capability would help.
	Required json.RawMessage
	What     string
}

func (e *LacksError) Error() string { return "the caller has no " + e.What }

// asker asks questions in the way of one era.
type asker interface {
	ask(ctx context.Context, c *Call, qs []Question) ([]json.RawMessage, error)
	remember(key string, v json.RawMessage)
	recall(key string) (json.RawMessage, bool)
	carry()           // the pending questions came with a state of a server
	carries() bool    // carry was called in this run
	stay(node string) // the next runs are there
	stayed() string   // where this run has to be, as the run before has said with stay; empty: anywhere
	round() int
}

// Ask asks the caller all questions at once and returns the answers in order. The error is a
// [*LacksError] if nothing was sent, [ErrSuspended], the client's *jsonrpc.Error, [ErrOver] if
// the call has been answered, or the cause of ctx.
func (c *Call) Ask(ctx context.Context, qs ...Question) ([]json.RawMessage, error) {
	if c.asker == nil {
		return nil, &LacksError{What: "way to be asked on this connection"}
	}
	fitting := make([]Question, len(qs))
	var lacks error
	if !c.While(func() {
		for i, q := range qs {
			if lacks = c.Peer.CanAnswer(q); lacks != nil {
				return
			}
			fitting[i] = c.Peer.withoutContext(q)
		}
	}) {
		return nil, ErrOver
	}
	if lacks != nil {
		return nil, lacks
	}
	clock := wait.From(ctx)
	if c.of != nil {
		clock = &c.of.waits
	}
	clock.Ask()
	defer clock.Answered()
	if c.session != nil && c.session.beside != nil {
		return c.askBoth(ctx, fitting, c.session.beside)
	}
	return c.asker.ask(ctx, c, fitting)
}

// OnAsk returns a call like c that calls f before it asks questions.
func (c *Call) OnAsk(f func()) *Call {
	out := c.Redirect(nil)
	if out.ex = c.ex; c.asker != nil {
		out.asker = observedAsker{c.asker, f}
	}
	return out
}

// observedAsker calls a function before it asks.
type observedAsker struct {
	asker
	asks func()
}

func (a observedAsker) ask(ctx context.Context, c *Call, qs []Question) ([]json.RawMessage, error) {
	a.asks()
	return a.asker.ask(ctx, c, qs)
}

// ErrOver is the error of a question asked after its call was answered.
var ErrOver = errors.New("the call was answered; its caller can no longer be asked")

// Remember keeps a value for the later runs of the same call.
func (c *Call) Remember(key string, v json.RawMessage) {
	if c.asker != nil {
		c.asker.remember(key, v)
	}
}

// RememberHere keeps a value for the later runs of the same call, which only this process can continue.
func (c *Call) RememberHere(ctx context.Context, key string, v json.RawMessage) {
	c.Remember(key, v)
	if name := node.Name(ctx); name != "" && c.asker != nil {
		c.asker.stay(name)
	}
}

// Carry says that a server has given the caller a state with the pending questions, which the next run gives back.
func (c *Call) Carry() {
	if c.asker != nil {
		c.asker.carry()
	}
}

// Stay says that the server of [Call.Carry] is of this process alone. Without such a state, any process can continue the call.
func (c *Call) Stay(ctx context.Context) {
	if name := node.Name(ctx); name != "" && c.asker != nil && c.asker.carries() {
		c.asker.stay(name)
	}
}

// Away returns the process that alone could continue the call, if this run is at another one because that has ended; else "".
func (c *Call) Away(ctx context.Context) string {
	if c.asker == nil {
		return ""
	}
	if here, at := node.Name(ctx), c.asker.stayed(); here != "" && at != here {
		return at
	}
	return ""
}

// Recall returns a value that this or an earlier run of the same call remembered.
func (c *Call) Recall(key string) (json.RawMessage, bool) {
	if c.asker == nil {
		return nil, false
	}
	return c.asker.recall(key)
}

// Round is the number of rounds of questions answered before this run.
func (c *Call) Round() int {
	if c.asker == nil {
		return 0
	}
	return c.asker.round()
}

// CanAnswer checks a question against the capabilities of the client (MRTR-26: no input request
// without its capability).
func (p *Peer) CanAnswer(q Question) error {
	lacks := func(what, required string) error {
		return &LacksError{What: what, Required: json.RawMessage(required)}
	}
	caps := p.Capabilities
	switch q.Method {
	case revision.MethodElicit:
		mode := ""
		if raw, ok := jsonx.Lookup(q.Params, "mode"); ok {
			mode, _ = jsonx.Unquote(raw)
		}
		e, ok := jsonx.Lookup(caps, "elicitation")
		_, form := jsonx.Lookup(e, "form")
		_, url := jsonx.Lookup(e, "url")
		switch {
		case mode == "url" && !url:
			return lacks("elicitation by URL", `{"elicitation":{"url":{}}}`)
		case mode != "url" && (!ok || (url && !form)): // {} alone means forms
			return lacks("elicitation", `{"elicitation":{"form":{}}}`)
		}
	case revision.MethodSample:
		s, ok := jsonx.Lookup(caps, "sampling")
		if !ok {
			return lacks("sampling", `{"sampling":{}}`)
		}
		tools, some := jsonx.Lookup(q.Params, "tools")
		_, choice := jsonx.Lookup(q.Params, "toolChoice")
		if some && string(tools) != "[]" || choice {
			if _, ok := jsonx.Lookup(s, "tools"); !ok {
				return lacks("sampling with tools", `{"sampling":{"tools":{}}}`)
			}
		}
	case revision.MethodRoots:
		if _, ok := jsonx.Lookup(caps, "roots"); !ok {
			return lacks("roots", `{"roots":{}}`)
		}
	default:
		return &LacksError{What: fmt.Sprintf("answer to %q", text.Short(q.Method))} // MRTR-26-005: the three above and no other
	}
	return nil
}

// withoutContext removes the request for other servers' context from a sampling request, unless
// the client declared that it can include it. Clients of revisions without sampling settings
// cannot declare it, so they get it (T-81), and so does a caller in this process, which may stand
// in front of such a client.
func (p *Peer) withoutContext(q Question) Question {
	if q.Method != revision.MethodSample || p.Local || p.Revision.Lacks&revision.SampleTools != 0 {
		return q
	}
	if _, ok := jsonx.LookupPath(p.Capabilities, "sampling", "context"); ok {
		return q
	}
	q.Params = jsonx.Without(nil, q.Params, "includeContext")
	return q
}

// live asks with requests to a legacy client and waits for the answers.
type live struct {
	mu     sync.Mutex
	kept   map[string]json.RawMessage // guarded by mu
	opened []json.RawMessage          // elicitationIds of URLs that the user has opened; guarded by mu
}

func (l *live) ask(ctx context.Context, c *Call, qs []Question) ([]json.RawMessage, error) {
	params := make([]json.RawMessage, len(qs))
	for i, q := range qs {
		p, err := c.Peer.Revision.Question(q.Method, q.Params)
		if err != nil {
			var lack *revision.Lack
			if errors.As(err, &lack) {
				return nil, &LacksError{What: lack.What}
			}
			return nil, err
		}
		params[i] = p
	}
	answers := make([]json.RawMessage, len(qs))
	if len(qs) == 1 {
		var err error
		answers[0], err = c.ex.Request(ctx, qs[0].Method, params[0])
		l.noteOpened(params[0], answers[0])
		return answers, err
	}
	errs := make([]error, len(qs))
	var wg sync.WaitGroup
	for i, q := range qs {
		wg.Go(func() {
			answers[i], errs[i] = c.ex.Request(ctx, q.Method, params[i])
			l.noteOpened(params[i], answers[i])
		})
	}
	wg.Wait()
	return answers, errors.Join(errs...)
}

// visit records the elicitationId of a URL elicitation that the user accepted.
func (l *live) noteOpened(params, answer json.RawMessage) {
	id, ok := jsonx.Lookup(params, "elicitationId")
	if action, _ := jsonx.Lookup(answer, "action"); !ok || string(action) != `"accept"` {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened = append(l.opened, id)
}

// complete notifies the client of the call, and no other, that its URL elicitations are complete
// (ELIC-25-001, -002).
func (l *live) complete(c *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range l.opened {
		params := append(append([]byte(`{"elicitationId":`), id...), '}')
		_ = c.Emit(revision.NoteElicited, params) // the client may have disconnected
	}
}

func (l *live) remember(key string, v json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		l.kept = map[string]json.RawMessage{}
	}
	l.kept[key] = v
}

func (l *live) recall(key string) (json.RawMessage, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.kept[key]
	return v, ok
}

func (*live) carry()         {}
func (*live) carries() bool  { return false }
func (*live) stay(string)    {} // its caller waits
func (*live) stayed() string { return "" }

func (*live) round() int { return 0 }

// replay answers questions from the inputResponses of the request, and collects those without an
// answer for an input_required result.
type replay struct {
	answers map[string]json.RawMessage // that came with this request, by wire key
	at      string                     // the Node of the state that came with it

	mu      sync.Mutex
	state   state             // guarded by mu
	ordinal int               // questions without a key so far; guarded by mu
	pending []pendingQuestion // guarded by mu
	fault   error             // guarded by mu
	carried bool              // carry was called; guarded by mu
}

type pendingQuestion struct {
	key string
	q   Question
}

// maxVolatile is the number of times a question may change its wording between two runs before
// the call fails: such a handler would never stop asking.
const maxVolatile = 2

func (r *replay) ask(_ context.Context, _ *Call, qs []Question) ([]json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]json.RawMessage, len(qs))
	missing := false
	for i, q := range qs {
		key := r.key(q)
		if a, ok := r.state.Answers[key]; ok {
			out[i] = a
			continue
		}
		if a, ok := r.answers[key]; ok {
			if r.state.Answers == nil {
				r.state.Answers = map[string]json.RawMessage{}
			}
			r.state.Answers[key] = a
			out[i] = a
			continue
		}
		missing = true
		if q.Key == "" && r.answeredOther(key) {
			if r.state.Volatile++; r.state.Volatile > maxVolatile {
				r.fault = errors.New("the wording of a question changes with every run of the handler; name the question with mcp.QuestionKey")
				return nil, r.fault
			}
		}
		r.pending = append(r.pending, pendingQuestion{key, q})
	}
	if missing {
		return nil, ErrSuspended
	}
	return out, nil
}

// key returns the identity of a question within its call: the name its author gave it, or its
// ordinal and a digest of its content.
func (r *replay) key(q Question) string {
	if q.Key != "" {
		return q.Key
	}
	r.ordinal++
	h := sha256.New()
	h.Write([]byte(q.Method))
	h.Write([]byte{0})
	h.Write(q.Params)
	sum := h.Sum(nil)
	return strconv.Itoa(r.ordinal) + "." + base64.RawURLEncoding.EncodeToString(sum[:9])
}

// answeredOther reports whether the client answered a question with the same ordinal but another
// wording.
func (r *replay) answeredOther(key string) bool {
	ordinal, _, _ := strings.Cut(key, ".")
	for k := range r.answers {
		if o, _, ok := strings.Cut(k, "."); ok && o == ordinal && k != key {
			return true
		}
	}
	return false
}

func (r *replay) remember(key string, v json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Kept == nil {
		r.state.Kept = map[string]json.RawMessage{}
	}
	r.state.Kept[key] = v
}

func (r *replay) recall(key string) (json.RawMessage, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.state.Kept[key]
	return v, ok
}

func (r *replay) carry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.carried = true
}

func (r *replay) carries() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.carried
}

func (r *replay) stayed() string { return r.at }

func (r *replay) stay(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Node = node
}

func (r *replay) round() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Round
}

// answered reads inputResponses and requestState of a request (MRTR). It returns nil if
// there is neither. Both come from the client and are not trusted: the state is sealed, and an
// answer is only ever used as the answer to a question.
func (e *Engine) answered(ctx context.Context, msg *jsonrpc.Message, principal string) (asker, error) {
	responses, given := msg.Param("inputResponses")
	given = given && string(responses) != "null"
	sealed, going := msg.Param("requestState")
	going = going && string(sealed) != "null"
	if !given && !going {
		return nil, nil
	}
	r := &replay{}
	if given {
		if jsonx.KindOf(responses) != '{' {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "inputResponses must be an object"}
		}
		r.answers = map[string]json.RawMessage{}
		for name, v := range jsonx.Members(responses) {
			if jsonx.KindOf(v) != '{' {
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("inputResponses: %q must be an object", string(name))}
			}
			r.answers[string(name)] = append(json.RawMessage(nil), v...)
		}
	}
	if !going {
		return r, nil
	}
	token, err := jsonx.Unquote(sealed)
	if err == nil {
		r.state, err = e.Sealer.open(ctx, token, bind(msg, principal))
	}
	if err != nil {
		// One text for every failure, so that it gives nothing away.
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "requestState is invalid or expired; start the call again without it"}
	}
	r.state.Round++
	r.at, r.state.Node = r.state.Node, "" // if it does not end here, what it waits for says where it goes on
	return r, nil
}

// Node returns the process that has what a request of 2026-07-28 is about, if its requestState or the id of its task names one;
// else "".
func (e *Engine) Node(msg *jsonrpc.Message, principal string) string {
	switch {
	case revision.OfTasks(msg.Method):
		raw, _ := msg.Param("taskId")
		return nodeOfTask(raw)
	case msg.Method == revision.MethodListen:
		ids, _ := msg.ParamIn("notifications", "taskIds")
		for raw := range jsonx.Elements(ids) {
			return nodeOfTask(raw) // further ones are mostly there too
		}
	case revision.Asks(msg.Method):
		raw, _ := msg.Param("requestState")
		if token, err := jsonx.Unquote(raw); err == nil {
			return e.Sealer.node(token, bind(msg, principal))
		}
	}
	return ""
}

func nodeOfTask(raw json.RawMessage) string {
	id, err := jsonx.Unquote(raw)
	if err != nil {
		return ""
	}
	name, _ := node.OfTask(id)
	return name
}

// inputRequired makes the result that carries the pending questions and the
// sealed state, or nil if nothing is pending.
func (e *Engine) inputRequired(ctx context.Context, r *replay, msg *jsonrpc.Message, principal string) (json.RawMessage, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fault != nil {
		return nil, r.fault
	}
	if len(r.pending) == 0 {
		return nil, nil
	}
	if r.state.Round >= e.Limits.Rounds {
		return nil, fmt.Errorf("the call asked for input more than %d times (Limits.Rounds)", e.Limits.Rounds)
	}
	token, err := e.Sealer.seal(ctx, r.state, bind(msg, principal))
	if err != nil {
		return nil, err
	}
	out := []byte(`{"inputRequests":{`)
	seen := map[string]bool{}
	for _, p := range r.pending {
		if seen[p.key] {
			return nil, fmt.Errorf("two questions of one call have the key %q", p.key)
		}
		seen[p.key] = true
		if len(seen) > 1 {
			out = append(out, ',')
		}
		out = jsonx.AppendString(out, p.key)
		out = append(out, `:{"method":`...)
		out = jsonx.AppendString(out, p.q.Method)
		if p.q.Params != nil {
			out = append(append(out, `,"params":`...), p.q.Params...)
		}
		out = append(out, '}')
	}
	out = append(out, `},"requestState":`...)
	out = jsonx.AppendString(out, token)
	return append(out, '}'), nil
}
