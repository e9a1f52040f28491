package main

import (
	"context"
	"errors"
	"net"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/netfault"
)

// steered makes what acts on this run for people.
func (h *upServer) steered() {
	sessions := new(steer.Sessions)
	h.steers = &steer.Gateway{
		Servers: h.servers, Report: h.report, Sessions: sessions, Calls: &steer.Calls{Sessions: sessions}, AuditLog: h.chain.AuditLog(), Tools: h.gateway.KeptToolsOf,
		Acted: func(by string, o *steer.Outcome) {
			h.a.talk.Note("%s, by %s", o.Text, by)
			h.chain.Steered(by, o.Action, o.Server, map[string]any{"action": o.Action, "changed": o.Changed, "state": o.State, "calls": o.Calls})
		},
		Refused: h.chain.Unsteered,
	}
	h.chain.Open(h.steers.Calls.Around)
}

// opened is called with each new session.
func (h *upServer) opened(session context.Context) {
	h.steers.Sessions.Add(session)
	h.counters.Session(session)
}

// serveAdmin serves the API for people at listen.admin of gateway.yaml until stop is called. Callers need the
// credentials of the endpoint w, and the role admin. Without the member it does nothing.
func (h *upServer) serveAdmin(w *listen.Endpoint) (stop func(), err error) {
	a := h.a
	if a.deployed == nil || a.deployed.Listen.Admin == "" {
		return func() {}, nil
	}
	guarded := w != nil && w.Guarded()
	address, _, err := listen.Address(a.deployed.Listen.Admin, guarded)
	switch {
	case errors.Is(err, listen.ErrShared):
		return nil, usagef("%s", chain.SharedAdmin(a.deployed))
	case err != nil:
		return nil, usagef("%s", a.deployed.Problem("listen.admin", "listen.admin: "+err.Error(), ""))
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		f := &fault{Code: exitLocal, Err: netfault.Listen(address, err)}
		return nil, f.Hint(a.elsewhere("listen.admin", ""))
	}
	p := listen.NewService(l, w, h.steers.API(guarded), a.logger())
	a.talk.Note("administration: %s", p.URL+steer.Path)
	p.Serve() // ends with Close
	return func() { p.Close() }, nil
}
