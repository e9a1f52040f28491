package main

import (
	"context"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/steer"
)

// steered makes what acts on this run for people.
func (h *upServer) steered() {
	sessions := new(steer.Sessions)
	h.steers = &steer.Gateway{
		Servers: h.servers, Report: h.report, Sessions: sessions, Calls: &steer.Calls{Sessions: sessions}, AuditLog: h.chain.AuditLog(),
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
