package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/revision"
)

// Pages that a user must visit before a server can do its work. A server of 2025-11-25
// refuses the call with -32042 (2025-11-25, client/elicitation, URL Elicitation Required
// Error). Its client:
//
//   - asks the user about each page, once;
//   - waits until the server says that the visits are complete, which it need not say, so
//     that the call is also repeated now and then. What is refused has not run;
//   - gives up when the user declines, or after a time.

// Bounds of waiting for visits.
const (
	visitTime    = 10 * time.Minute // for a call of the API, without the time to ask
	heldVisit    = 45 * time.Second // for a forwarded call, whose caller waits
	firstRetry   = 2 * time.Second  // without a word of the server
	slowestRetry = 15 * time.Second
	maxVisits    = 1000 // that a session waits for
	maxPagesOnce = 16   // in one error
)

// visit is an elicitation in an error -32042.
type visit struct {
	ID      string `json:"elicitationId"`
	Mode    string `json:"mode"`
	URL     string `json:"url"`
	Message string `json:"message"`
}

// place is what a page is known by when it is named again, perhaps with another query.
func (p visit) place() string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return p.URL
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// question asks whether the user goes there.
func (p visit) question() engine.Question {
	return engine.Question{Method: revision.MethodElicit, Params: urlParams(p.Message, p.URL)}
}

func urlParams(message, url string) json.RawMessage {
	return encode(struct {
		Mode    string `json:"mode"`
		Message string `json:"message"`
		URL     string `json:"url"`
	}{"url", message, url})
}

// requiredPages reads the pages that an error wants visited, nil if it is no such error.
func requiredPages(err error) []visit {
	if err == nil {
		return nil
	}
	var rpc *Error
	if !errors.As(err, &rpc) || rpc.Code != revision.CodeURLRequired {
		return nil
	}
	var w struct {
		Elicitations []visit `json:"elicitations"`
	}
	if jsonx.Unmarshal(orObject(rpc.Data), &w) != nil || len(w.Elicitations) > maxPagesOnce {
		return nil
	}
	for _, p := range w.Elicitations {
		if p.Mode != "url" || p.URL == "" || p.ID == "" { // ELIC-25-007
			return nil
		}
	}
	return w.Elicitations
}

// visiting makes a request to a legacy server, with the visits that it wants.
func (x *outgoingCall) visiting(ctx context.Context) (json.RawMessage, error) {
	raw, err := x.plain(ctx, x.params)
	if err == nil || !revision.Asks(x.method) {
		return raw, err
	}
	accepted := map[string]bool{} // by place
	var deadline <-chan time.Time
	for pause := firstRetry; ; pause = min(2*pause, slowestRetry) {
		pages := requiredPages(err)
		if pages == nil {
			return raw, err
		}
		done, forget := x.s.awaitVisits(pages)
		for _, p := range pages {
			if accepted[p.place()] {
				continue
			}
			if len(accepted) >= x.s.limits.Rounds {
				forget()
				return nil, err
			}
			if e := x.consent(ctx, p); e != nil {
				forget()
				if e == errCannotAsk {
					return nil, err
				}
				return nil, e
			}
			accepted[p.place()] = true
			pause = firstRetry
		}
		if deadline == nil {
			wait := visitTime
			if x.memo != nil {
				wait = heldVisit
			}
			t := time.NewTimer(wait)
			defer t.Stop()
			deadline = t.C
		}
		again, e := x.pauseFor(ctx, done, pause, deadline)
		forget()
		switch {
		case e != nil:
			return nil, e
		case !again:
			return nil, err
		}
		raw, err = x.plain(ctx, x.params)
	}
}

// pauseFor waits for visits, or for a while; false when the time for all of it is over.
func (x *outgoingCall) pauseFor(ctx context.Context, done <-chan struct{}, d time.Duration, deadline <-chan time.Time) (bool, error) {
	x.clock.pause() // it is ours
	defer x.clock.resume()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true, nil
	case <-t.C:
		return true, nil
	case <-deadline:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// errCannotAsk says that nobody is there to be asked about a page.
var errCannotAsk = errors.New("nobody can be asked to visit a page")

// consent asks the user about one page.
func (x *outgoingCall) consent(ctx context.Context, p visit) error {
	answers, err := x.answer(ctx, p.question())
	var lacks *engine.LacksError
	var rpc *Error
	switch {
	case errors.As(err, &lacks), errors.Is(err, ErrNoCall), errors.As(err, &rpc) && rpc.Code == CodeMethodNotFound:
		return errCannotAsk
	case err != nil:
		return err
	}
	_, err = accepted(answers[0])
	return err
}

// awaitVisits returns a channel that is closed when the server has said of all pages that
// the visit is complete. Forget ends the waiting.
func (s *Session) awaitVisits(pages []visit) (done <-chan struct{}, forget func()) {
	all := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	left := map[string]bool{}
	for _, p := range pages {
		left[p.ID] = true
	}
	for id := range left {
		if s.visits == nil {
			s.visits = map[string]func(){}
		}
		if len(s.visits) >= maxVisits {
			break // there is the timer
		}
		s.visits[id] = func() { // with mu held
			if delete(left, id); len(left) == 0 {
				close(all)
			}
		}
	}
	return all, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, p := range pages {
			delete(s.visits, p.ID)
		}
	}
}

// expectVisit keeps the name of a visit that a server has asked for by a question of its
// own, so that its completion is an event.
func (s *Session) expectVisit(params json.RawMessage) {
	raw, _ := jsonx.Lookup(params, "elicitationId")
	id, err := jsonx.Unquote(raw)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.visits == nil {
		s.visits = map[string]func(){}
	}
	if s.visits[id] == nil && len(s.visits) < maxVisits {
		s.visits[id] = func() {}
	}
}

// visited takes the server's word that a visit is complete; false if it was not
// expected, or was said before (ELIC-25-003).
func (s *Session) visited(params json.RawMessage) bool {
	raw, _ := jsonx.Lookup(params, "elicitationId")
	id, err := jsonx.Unquote(raw)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	complete := s.visits[id]
	delete(s.visits, id)
	if complete == nil {
		return false
	}
	complete()
	return true
}

// forwardPages turns the refusal of a legacy server that wants pages visited into an
// answer for a caller in front who was not asked, or did not finish.
func forwardPages(call *engine.Call, method string, err error, pages []visit) (Result, error) {
	var lacks *engine.LacksError
	able := call.Peer.CanAnswer(pages[0].question())
	if able == nil && call.Peer.Revision.Sessions && call.Peer.Revision.Lacks&revision.ElicitURL == 0 {
		return nil, err // it knows the error (T-132)
	}
	if !call.Peer.Revision.Sessions && errors.As(able, &lacks) {
		return nil, able // -32021 (T-41)
	}
	var text strings.Builder
	for _, p := range pages {
		fmt.Fprintf(&text, "%s: visit %s, then call again\n", p.Message, p.URL)
	}
	if method == revision.MethodCall { // T-26
		return &ToolResult{Content: []Content{Text(strings.TrimSpace(text.String()))}, IsError: true}, nil
	}
	return nil, Errorf(CodeInternal, "%s", strings.TrimSpace(text.String()))
}

// RequireURL ends a call that cannot go on before the user has visited a page, for
// instance to log in at a third party: return the error that it returns. The handler should
// look first whether the visit has been made, since the call comes again after it.
//
//	if token, ok := tokens.Of(mcp.CallFrom(ctx).Principal); !ok {
//		return "", mcp.RequireURL(ctx, "Log in at Example", loginURL)
//	}
//
// A caller of 2025-11-25 is answered with -32042, and one of 2026-07-28 with the question
// of [ElicitURL] or, if the user has agreed but not finished, an error that says so. Callers
// of other revisions, who cannot be sent to a page, get the page as the text of an error.
//
// Specification: 2025-11-25, client/elicitation, URL Elicitation Required Error.
func RequireURL(ctx context.Context, message, url string) error {
	call := engine.From(ctx)
	if call == nil {
		return ErrNoCall
	}
	if err := checkURL(url); err != nil {
		return err
	}
	page := visit{URL: url, Message: message}
	q := page.question()
	rev := call.Peer.Revision
	if !rev.Sessions {
		if err := ElicitURL(ctx, message, url, Key("visit:"+page.place())); err != nil { // the query may change
			return err
		}
		return fmt.Errorf("%s: finish at %s, then call again", message, url)
	}
	if call.Peer.CanAnswer(q) == nil {
		if params, err := rev.Question(q.Method, q.Params); err == nil {
			return &Error{Code: revision.CodeURLRequired, Message: message, Data: encode(map[string][]json.RawMessage{"elicitations": {params}})}
		}
	}
	return fmt.Errorf("%s: visit %s, then call again: %w", message, url, ErrNotSupported)
}
