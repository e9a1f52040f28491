package bridge

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
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// URLs that a user must open before a server can do its work. A server that speaks 2025-11-25
// refuses the call with -32042 (2025-11-25, client/elicitation, URL Elicitation Required Error).
// Its client:
//
//   - asks the user about each page once;
//   - waits until the server notifies it that the visits are complete. The server need not do so,
//     therefore the call is also retried at intervals. A refused call has not run;
//   - gives up when the user declines, or after a time limit.

// Bounds of waiting for visits.
const (
	urlTime      = 10 * time.Minute // for a call of the API, without the time to ask
	heldURL      = 45 * time.Second // for a forwarded call, whose caller waits
	firstRetry   = 2 * time.Second  // without a notification from the server
	slowestRetry = 15 * time.Second
	maxURLs      = 1000 // that a session waits for
	maxURLsOnce  = 16   // in one error
)

// requiredURL is an elicitation in an error -32042.
type requiredURL struct {
	ID      string `json:"elicitationId"`
	Mode    string `json:"mode"`
	URL     string `json:"url"`
	Message string `json:"message"`
}

// Place returns the part of a URL that identifies its page: scheme, host and path. The query may
// change when the page is named again.
func Place(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return page
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// question asks the user to visit the page.
func (p requiredURL) question() engine.Question {
	return engine.Question{Method: revision.MethodElicit, Params: URLParams(p.Message, p.URL)}
}

// URLParams makes the params of an elicitation in URL mode.
func URLParams(message, url string) json.RawMessage {
	return encode(struct {
		Mode    string `json:"mode"`
		Message string `json:"message"`
		URL     string `json:"url"`
	}{"url", message, url})
}

// requiredURLs returns the URLs of an error -32042, or nil if err is another error.
func requiredURLs(err error) []requiredURL {
	if err == nil {
		return nil
	}
	var rpc *jsonrpc.Error
	if !errors.As(err, &rpc) || rpc.Code != revision.CodeURLRequired {
		return nil
	}
	var w struct {
		Elicitations []requiredURL `json:"elicitations"`
	}
	if jsonx.Unmarshal(jsonx.OrObject(rpc.Data), &w) != nil || len(w.Elicitations) > maxURLsOnce {
		return nil
	}
	for _, p := range w.Elicitations {
		if p.Mode != "url" || p.URL == "" || p.ID == "" { // ELIC-25-007
			return nil
		}
	}
	return w.Elicitations
}

// withRequiredURLs makes a request to a legacy server, with the visits that it requires.
func (x *Call) withRequiredURLs(ctx context.Context) (json.RawMessage, error) {
	raw, err := x.plain(ctx, x.params)
	if err == nil || !revision.Asks(x.method) {
		return raw, err
	}
	accepted := map[string]bool{} // by place
	var deadline <-chan time.Time
	for pause := firstRetry; ; pause = min(2*pause, slowestRetry) {
		pages := requiredURLs(err)
		if pages == nil {
			return raw, err
		}
		done, forget := x.r.awaitURLs(pages)
		for _, p := range pages {
			if accepted[Place(p.URL)] {
				continue
			}
			if len(accepted) >= x.r.Limits.Rounds {
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
			accepted[Place(p.URL)] = true
			pause = firstRetry
		}
		if deadline == nil {
			wait := urlTime
			if x.memo != nil {
				wait = heldURL
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

// pauseFor waits for visits or for d; false when the deadline has passed.
func (x *Call) pauseFor(ctx context.Context, done <-chan struct{}, d time.Duration, deadline <-chan time.Time) (bool, error) {
	x.timer.pause() // the server waits for this side
	defer x.timer.resume()
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

// errCannotAsk says that there is no user to ask to visit a page.
var errCannotAsk = errors.New("there is no user to ask to visit a page")

// consent asks the user about one page.
func (x *Call) consent(ctx context.Context, p requiredURL) error {
	answers, err := x.answer(ctx, p.question())
	var lacks *engine.LacksError
	var rpc *jsonrpc.Error
	switch {
	case errors.As(err, &lacks), errors.Is(err, ErrNoCall), errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound:
		return errCannotAsk
	case err != nil:
		return err
	}
	_, err = Accepted(answers[0])
	return err
}

// awaitURLs returns a channel that is closed when the server has announced that all visits are
// complete. The function forget ends the waiting.
func (r *Remote) awaitURLs(pages []requiredURL) (done <-chan struct{}, forget func()) {
	all := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	left := map[string]bool{}
	for _, p := range pages {
		left[p.ID] = true
	}
	for id := range left {
		if r.elicited == nil {
			r.elicited = map[string]func(){}
		}
		if len(r.elicited) >= maxURLs {
			break // the timer retries
		}
		r.elicited[id] = func() { // with mu held
			if delete(left, id); len(left) == 0 {
				close(all)
			}
		}
	}
	return all, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, p := range pages {
			delete(r.elicited, p.ID)
		}
	}
}

// expectURL records the elicitationId of a URL that a server has asked for in a question of its
// own, so that its completion becomes an event.
func (r *Remote) expectURL(params json.RawMessage) {
	raw, _ := jsonx.Lookup(params, "elicitationId")
	id, err := jsonx.Unquote(raw)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.elicited == nil {
		r.elicited = map[string]func(){}
	}
	if r.elicited[id] == nil && len(r.elicited) < maxURLs {
		r.elicited[id] = func() {}
	}
}

// urlOpened handles the server's notification that the user has finished at a URL; false if the URL
// was not expected, or was already finished (ELIC-25-003).
func (r *Remote) urlOpened(params json.RawMessage) bool {
	raw, _ := jsonx.Lookup(params, "elicitationId")
	id, err := jsonx.Unquote(raw)
	if err != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	complete := r.elicited[id]
	delete(r.elicited, id)
	if complete == nil {
		return false
	}
	complete()
	return true
}

// forwardURLs turns the refusal of a legacy server that requires visits into an answer for a caller
// in front that was not asked, or did not finish.
func forwardURLs(call *engine.Call, method string, err error, pages []requiredURL) error {
	var lacks *engine.LacksError
	able := call.Peer.CanAnswer(pages[0].question())
	if able == nil && call.Peer.Revision.Sessions && call.Peer.Revision.Lacks&revision.ElicitURL == 0 {
		return err // it knows the error (T-132)
	}
	if !call.Peer.Revision.Sessions && errors.As(able, &lacks) {
		return able // -32021 (T-41)
	}
	var text strings.Builder
	for _, p := range pages {
		fmt.Fprintf(&text, "%s: visit %s, then call again\n", p.Message, p.URL)
	}
	if method == revision.MethodCall { // T-26
		return &ToolFailure{strings.TrimSpace(text.String())}
	}
	return errorf(jsonrpc.CodeInternal, "%s", strings.TrimSpace(text.String()))
}
