package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

const (
	maxTries  = 3  // attempts at an answer that fits its form
	perMinute = 20 // questions from a server outside of calls, and as many sampling requests
)

// client makes a client for a server, or for the sessions of a conversation with it. Questions
// during a call go to the caller; others go to the conversation, or else to the person.
func (h *Host) client(s *server, c *Conversation) *mcp.Client {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clientLocked(s, c)
}

// clientLocked is client with mu held.
func (h *Host) clientLocked(s *server, c *Conversation) *mcp.Client {
	client := &mcp.Client{Name: cmp.Or(h.Name, "patchbay-host"), Version: h.Version, Logger: h.Logger, LogLevel: h.LogLevel, Eras: &h.eras}
	client.Limits.CallTimeout = s.patience()
	client.OnElicit = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return s.elicit(ctx, c, r) }
	switch {
	case h.OnSample != nil:
		client.OnSample = h.OnSample
	case (h.Person != nil || h.AutoSample) && (h.Model != nil || h.Sampler != nil):
		client.OnSample = func(ctx context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) { return s.sample(ctx, c, r) }
	}
	if h.Roots != nil {
		client.Roots = func(context.Context) ([]mcp.Root, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.Roots, nil
		}
	}
	return client
}

// SetRoots replaces the folders that servers may use, and notifies servers that follow changes.
// Servers that were connected while Roots was nil are not notified. The context bounds the
// notification.
func (h *Host) SetRoots(ctx context.Context, roots []mcp.Root) {
	h.start()
	h.mu.Lock()
	h.Roots = roots
	var clients []*mcp.Client
	for _, s := range h.running {
		s.mu.Lock()
		if s.client != nil {
			clients = append(clients, s.client)
		}
		s.mu.Unlock()
	}
	h.mu.Unlock()
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() { c.RootsChanged(ctx) })
	}
	wg.Wait()
}

// calling is a call of a conversation, for the questions from its server.
type calling struct {
	c   *Conversation
	e   CallEvent
	ctx context.Context // of the call

	mu      sync.Mutex
	budget  budget // so far; guarded by mu
	refused string // why the last question had no answer; guarded by mu
}

// refusal returns the reason why a question that the server asked during the call of ctx got no
// answer, or "" if all were answered. A call to a server that speaks 2026-07-28 fails if one of its
// questions gets no answer.
func refusal(ctx context.Context) string {
	k, ok := ctx.Value(callingKey{}).(*calling)
	if !ok {
		return ""
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refused
}

// unanswered records why the question has no answer.
func (q *question) unanswered(err error) {
	if q.call == nil || err == nil {
		return
	}
	q.call.mu.Lock()
	defer q.call.mu.Unlock()
	if q.call.refused = err.Error(); errors.Is(err, mcp.ErrDeclined) {
		q.call.refused = "the person declined it"
	}
}

// callingKey is the context key for the calling of a call.
type callingKey struct{}

// calling returns the context for a call, by which a question from the server is matched to the
// call.
func (c *Conversation) calling(ctx context.Context, e *CallEvent) context.Context {
	return context.WithValue(ctx, callingKey{}, &calling{c: c, e: CallEvent{ID: e.ID, Server: e.Server, Tool: e.Tool}, ctx: ctx})
}

// question is a request from a server to the person or to a model.
type question struct {
	s    *server
	call *calling      // that it belongs to; nil: unknown
	c    *Conversation // that it belongs to; nil: unknown
	over func()        // called when it is answered
}

// question finds the call and conversation of a question, and returns a context that ends with the
// call.
//
// A server that speaks 2026-07-28 asks in the result of a call. An older server sends a request:
// over HTTP on the stream of the call; elsewhere the question belongs to the only call in progress,
// or to c, the conversation of all of them. If c is nil, it belongs to none.
func (s *server) question(ctx context.Context, c *Conversation) (context.Context, *question) {
	q := &question{s: s, c: c}
	waits := func() (over func()) { return s.stats.waits() }
	if a := attemptOf(ctx); a != nil {
		a.mu.Lock()
		if a.at != nil {
			q.s = a.at
		}
		if a.timing != nil {
			waits = a.timing.wait
		}
		a.mu.Unlock()
	}
	q.call, _ = ctx.Value(callingKey{}).(*calling)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := func() bool { return true }
	if q.call != nil {
		q.c = q.call.c
		stop = context.AfterFunc(q.call.ctx, func() { cancel(context.Cause(q.call.ctx)) })
	}
	waited := waits()
	q.over = func() {
		stop()
		cancel(nil)
		waited()
	}
	return ctx, q
}

// waits records a wait of the server in all calls in progress, because it is unknown which call
// asks.
func (s *stats) waits() (over func()) {
	var ends []func()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.underway {
		ends = append(ends, t.wait())
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// id returns the ids of the conversation and the call; empty: unknown.
func (q *question) id() (conversation, call string) {
	if q.c != nil {
		conversation = q.c.ID
	}
	if q.call != nil {
		call = q.call.e.ID
	}
	return conversation, call
}

// tell reports an event of the conversation and sets its call.
func (q *question) tell(e Event) {
	if q.c == nil {
		return
	}
	e.Call = &CallEvent{Server: q.s.Name}
	if q.call != nil {
		of := q.call.e
		e.Call = &of
	}
	q.c.tell(e)
}

// note reports something to the person.
func (q *question) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if q.c == nil {
		q.s.h.log().Info("note on a question", "server", q.s.Name, "note", text)
		return
	}
	q.tell(Event{Kind: Noted, Text: text})
}

// budget counts questions and sampling requests.
type budget struct {
	since          time.Time
	asked, sampled int
}

// mayAsk counts a question, and fails if there were too many. The person is told once.
func (q *question) mayAsk() error {
	most := or(q.s.h.Limits.Questions, 20)
	return q.may("questions", most, func(b *budget) *int { return &b.asked })
}

// maySample is mayAsk for a sampling request.
func (q *question) maySample() error {
	most := or(q.s.h.Limits.Samples, 16)
	return q.may("completions", most, func(b *budget) *int { return &b.sampled })
}

func (q *question) may(what string, most int, of func(*budget) *int) error {
	in, mu, b := "in a minute outside of calls", &q.s.mu, &q.s.lately
	if q.call != nil {
		in, mu, b = "in one call", &q.call.mu, &q.call.budget
	} else {
		most = perMinute
	}
	mu.Lock()
	if q.call == nil && time.Since(b.since) >= time.Minute {
		*b = budget{since: time.Now()}
	}
	n := *of(b)
	*of(b)++
	mu.Unlock()
	if n < most {
		return nil
	}
	if n == most {
		q.note("server %q wants more than %d %s %s; it gets no more", q.s.Name, most, what, in)
	}
	return mcp.Errorf(jsonrpc.CodeInternal, "this host allows %d %s %s, and no more", most, what, in)
}

// elicit passes a question from the server to the person.
func (s *server) elicit(ctx context.Context, c *Conversation, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	ctx, q := s.question(ctx, c)
	defer q.over()
	if err := q.mayAsk(); err != nil {
		q.unanswered(err)
		return nil, err
	}
	q.tell(Event{Kind: Asked, Text: clip(r.Message)})
	switch person := s.h.Person; {
	case r.URL != "" && !visitable(r.URL):
		q.note("declined the page %q of server %q: it is not an http address", bounded(r.URL, 200), q.s.Name)
		return &mcp.ElicitResult{Action: "decline"}, nil
	case person == nil:
		q.note("declined the question %q of server %q: there is nobody to answer it", bounded(r.Message, 200), q.s.Name)
		return &mcp.ElicitResult{Action: "decline"}, nil
	default:
		return q.elicit(ctx, person, r)
	}
}

// elicit asks the person until the answer fits, at most maxTries times.
func (q *question) elicit(ctx context.Context, person Person, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	e := &Elicitation{Server: q.s.Name, ElicitRequest: r}
	e.Conversation, e.Call = q.id()
	for range maxTries {
		res, err := ask(ctx, func() (*mcp.ElicitResult, error) { return person.Elicit(ctx, e) })
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, mcp.ErrDeclined):
			return &mcp.ElicitResult{Action: "decline"}, nil
		case errors.Is(err, mcp.ErrDismissed) || err == nil && res == nil:
			return &mcp.ElicitResult{Action: "cancel"}, nil
		case err != nil:
			q.note("the question %q of server %q was not answered: %v", bounded(r.Message, 200), q.s.Name, err)
			return &mcp.ElicitResult{Action: "cancel"}, nil
		case res.Action != "accept" || r.URL != "":
			return res, nil
		}
		bad := fits(r.Schema, res.Content)
		if bad == nil {
			return res, nil
		}
		again := *e
		again.Problem = bad.Error()
		e = &again
	}
	q.note("the question %q of server %q was dismissed: no answer to it fits its form: %s", bounded(r.Message, 200), q.s.Name, e.Problem)
	return &mcp.ElicitResult{Action: "cancel"}, nil
}

// fits returns what is wrong with the answer to a form. Fields that are left out have their
// default.
func fits(raw json.RawMessage, content map[string]any) error {
	form, err := schema.FormOf(raw)
	if err != nil {
		return nil // leave the check to the server
	}
	values := form.Defaults()
	for k, v := range content {
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("%q: %w", k, err)
		}
		values[k] = b
	}
	return form.Check(values)
}

// visitable reports whether a person may be sent to a URL.
func visitable(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
}

// spent adds the usage of a sampling request to the reply of the turn.
func (c *Conversation) spent(u model.Usage, cost float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asides.Add(u)
	c.extra += cost
}

// bill adds the usage of sampling requests to the reply of a turn.
func (c *Conversation) bill(r *Reply) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Usage.Add(c.asides)
	r.Cost += c.extra
	c.asides, c.extra = model.Usage{}, 0
}
