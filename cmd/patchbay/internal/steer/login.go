package steer

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steps"
	"github.com/patchbay-dev/patchbay/launch"
)

// LogIn is the action of a person who logs in at a server from the page.
const LogIn = "login"

// maxFlows bounds how many logins run at once. Each has a listener for the browser.
const maxFlows = 8

// Flow is a login at a server as the page shows it.
type Flow struct {
	Server string        `json:"server"`
	State  string        `json:"state"` // none, running, done, failed or canceled
	By     string        `json:"by,omitempty"`
	Page   string        `json:"page,omitempty"` // where the person agrees, while the browser is waited for
	Host   string        `json:"host,omitempty"` // of Page
	Text   string        `json:"text,omitempty"` // for people: what has happened, or why it failed
	Steps  []steps.Step  `json:"steps"`
	Claims []steps.Claim `json:"claims,omitempty"` // of the access token, if it is a JWT
}

// flows are the logins at servers that people make from the page: one at a time for each server, and the last one of each
// is kept with its steps. The zero value has none. Each login owns a goroutine, which ends with it: by the browser, by
// cancel, at the end of the gateway, or after 10 minutes.
type flows struct {
	mu     sync.Mutex
	last   map[string]*flow // by server; guarded by mu
	closed bool             // guarded by mu
	wg     sync.WaitGroup
}

type flow struct {
	server, by string
	log        *steps.Log
	cancel     context.CancelCauseFunc
	shown      chan struct{} // closed when there is a page, or the login has ended
	once       sync.Once     // closes shown
	done       chan struct{} // closed when it has ended

	mu    sync.Mutex
	page  *url.URL // guarded by mu
	state string   // guarded by mu
	text  string   // guarded by mu
}

var errCanceled = errors.New("the login was canceled")

// Ending returns a function that cancels all logins and then ends the servers. The Gateway may be nil.
func (g *Gateway) Ending(servers func()) func() {
	if g == nil {
		return servers
	}
	return func() {
		g.flows.mu.Lock()
		g.flows.closed = true
		for _, f := range g.flows.last {
			f.cancel(errCanceled)
		}
		g.flows.mu.Unlock()
		g.flows.wg.Wait()
		servers()
	}
}

// Login does what a person wants with the login at a server: "start" starts one, unless one is running, and returns when
// there is a page for the person, or the login has failed; "cancel" ends it; empty: it is only shown.
func (g *Gateway) Login(ctx context.Context, server, by, action string) (any, error) {
	names := g.Servers.Names()
	if !slices.Contains(names, server) {
		slices.Sort(names)
		return nil, &Unknown{server, names}
	}
	l := &g.flows
	l.mu.Lock()
	f := l.last[server]
	l.mu.Unlock()
	var err error
	switch {
	case action == "start":
		if f, err = g.begin(server, by); err != nil {
			return nil, fmt.Errorf("nobody can log in to %q from here: %w", server, err)
		}
		select {
		case <-f.shown:
		case <-ctx.Done():
		}
	case action == "cancel" && f != nil:
		f.cancel(errCanceled)
		select {
		case <-f.done:
		case <-ctx.Done():
		}
	}
	if f == nil {
		return &Flow{Server: server, State: "none", Steps: []steps.Step{}}, nil
	}
	return f.show(), nil
}

// begin starts a login, or returns the one that is running.
func (g *Gateway) begin(server, by string) (*flow, error) {
	env := g.Servers.Env
	entry, err := g.Servers.Entry(server)
	if err != nil {
		return nil, err
	}
	if entry, err = env.Resolve(entry); err != nil {
		return nil, err
	}
	switch {
	case entry.URL == "":
		return nil, errors.New("it is not reached by a URL")
	case !launch.CanLogIn(entry):
		return nil, errors.New("its entry has a credential of its own, or tokens would go over a network in clear text")
	}
	t, err := env.OwnTransport(entry)
	if err != nil {
		return nil, err
	}
	g.flows.mu.Lock()
	defer g.flows.mu.Unlock()
	running := 0
	for name, f := range g.flows.last {
		select {
		case <-f.done:
		default:
			if running++; name == server {
				return f, nil // another tab or person has started it
			}
		}
	}
	switch {
	case g.flows.closed:
		return nil, errors.New("the gateway ends")
	case running >= maxFlows:
		return nil, fmt.Errorf("%d logins are running already", running)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	f := &flow{server: server, by: by, cancel: cancel, shown: make(chan struct{}), done: make(chan struct{}), state: "running", log: &steps.Log{Server: entry.URL}}
	if env.Redact != nil {
		f.log.Clean = env.Redact.Text
	}
	back, err := login.NewLoopback(f.visit)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	t.RedirectURL, t.Wrap = back.RedirectURL(), f.log.Around
	t.Visit = func(ctx context.Context, page string) (*url.URL, error) {
		returned := f.log.Visit(page)
		at, err := back.Visit(ctx, page)
		returned(at, err)
		return at, err
	}
	again, err := env.OwnTransport(entry) // without a browser: a refusal of the new token is the answer
	if err != nil {
		cancel(nil)
		back.Close()
		return nil, err
	}
	again.Wrap = f.log.Around
	if g.flows.last == nil {
		g.flows.last = map[string]*flow{}
	}
	g.flows.last[server] = f
	g.flows.wg.Go(func() {
		defer cancel(nil)
		defer back.Close()
		f.end(ctx, g, t.Login(ctx), again)
	})
	return f, nil
}

// visit shows the page to the person: it does not open it.
func (f *flow) visit(_ context.Context, page string) error {
	u, err := url.Parse(page)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return errors.New("the page of the authorization server is not an address of the web")
	}
	f.mu.Lock()
	f.page = u
	f.mu.Unlock()
	f.once.Do(func() { close(f.shown) })
	return nil
}

// probeTime bounds the request with the new token.
const probeTime = 15 * time.Second

// end tells how a login ended; err is nil if it is done.
func (f *flow) end(ctx context.Context, g *Gateway, err error, again *login.Transport) {
	state, text := "done", "logged in"
	switch {
	case err == nil:
		text += f.tries(ctx, again)
		g.Servers.Gateway.Retry(f.server)
	case errors.Is(context.Cause(ctx), errCanceled):
		state, text = "canceled", errCanceled.Error()
	default:
		state, text = "failed", "the login failed: "+f.log.Hide(screen.OneLine(err.Error()))
	}
	f.mu.Lock()
	f.page, f.state, f.text = nil, state, text
	f.mu.Unlock()
	f.once.Do(func() { close(f.shown) })
	close(f.done)
	now := ""
	for _, s := range g.Servers.Gateway.Status() {
		if s.Name == f.server {
			now = string(s.State)
		}
	}
	g.Acted(f.by, &Outcome{Server: f.server, Action: LogIn, Changed: err == nil, State: now, Text: f.server + ": " + text})
}

// tries sends a request with the new token, and says so if the server refuses it.
func (f *flow) tries(ctx context.Context, again *login.Transport) string {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, again.Server, nil)
	if err != nil {
		return ""
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := again.RoundTrip(req)
	if err != nil {
		return ", but the server was not reached with the token: " + f.log.Hide(screen.OneLine(err.Error()))
	}
	res.Body.Close()
	if res.StatusCode == http.StatusUnauthorized || res.StatusCode == http.StatusForbidden {
		return fmt.Sprintf(", but the server refuses the token with HTTP %d", res.StatusCode)
	}
	return ""
}

// show returns a login as the page has it.
func (f *flow) show() *Flow {
	f.mu.Lock()
	o := &Flow{Server: f.server, State: f.state, By: f.by, Text: f.text}
	if f.page != nil {
		o.Page, o.Host = f.page.String(), f.page.Host
	}
	f.mu.Unlock()
	o.Steps, o.Claims = f.log.Steps(o.State != "running")
	return o
}
