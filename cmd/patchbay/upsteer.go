package main

import (
	"context"
	"errors"
	"net"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/people"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/netfault"
)

// steered makes what acts on this run for people.
func (h *upServer) steered() {
	sessions := new(steer.Sessions)
	h.steers = &steer.Gateway{
		Servers: h.servers, Report: h.report, Sessions: sessions, Calls: &steer.Calls{Sessions: sessions}, AuditLog: h.chain.AuditLog(), AuditKey: h.chain.AuditKey(), Tools: h.gateway.KeptToolsOf,
		Acted: func(by string, o *steer.Outcome) {
			h.a.talk.Note("%s, by %s", o.Text, by)
			h.chain.Steered(by, o.Action, o.Server, o.Facts())
		},
		LoggedOut: func(by string, e *steer.Ended) {
			h.a.talk.Note("%s, by %s", e.Text, by)
			h.chain.Steered(by, "logins", "", map[string]any{"action": "end", "person": e.Person, "ended": e.Ended})
		},
		Refused: h.chain.Unsteered,
	}
	if h.member != nil {
		h.steers.Nodes = h.member
	}
	h.chain.Open(h.steers.Calls.Around)
}

// opened is called with each new session.
func (h *upServer) opened(session context.Context) {
	h.steers.Sessions.Add(session)
	h.asks.Watch(session)
	h.gateway.Continues(session)
	h.counters.Session(session)
}

// listenAdmin opens listen.admin of gateway.yaml, and sets its URL for people who log in. Without the member
// it does nothing.
func (h *upServer) listenAdmin(p *protection) (l net.Listener, err error) {
	a := h.a
	if a.deployed == nil || a.deployed.Listen.Admin == "" {
		return nil, nil
	}
	address, _, err := listen.Address(a.deployed.Listen.Admin, p.Knows())
	switch {
	case errors.Is(err, listen.ErrShared):
		return nil, usagef("%s", chain.SharedAdmin(a.deployed))
	case err != nil:
		return nil, usagef("%s", a.deployed.Problem("listen.admin", "listen.admin: "+err.Error(), ""))
	}
	if l, err = listen.Open(address); err != nil {
		f := &fault{Code: exitLocal, Err: netfault.Listen(address, err)}
		return nil, f.Hint(a.elsewhere("listen.admin", ""))
	}
	if p.Admin = people.Admin(a.deployed.Login, l.Addr(), p.Scheme(), steer.Path); p.Admin == "" && p.Login != nil {
		l.Close()
		return nil, usagef("%s", a.deployed.Problem("listen.admin", "listen.admin: administrators who log in need its URL, which "+l.Addr().String()+" does not tell", "add adminURL: https://admin.example.com to login"))
	}
	return l, nil
}

// serveAdmin serves the API for people over a listener until stop is called. Callers need the credentials of
// the endpoint w, and the role admin; people who log in, tokens for the URL site. A nil listener is not served.
func (h *upServer) serveAdmin(l net.Listener, w *listen.Endpoint, site string) (stop func(), err error) {
	a := h.a
	if l == nil {
		return func() {}, nil
	}
	p := listen.NewService(l, w, h.steers.API(w != nil && w.Guarded(), site), a.logger())
	a.talk.Note("administration: %s", p.URL+steer.Path)
	p.Serve() // ends with Close
	return func() { p.Close() }, nil
}
