package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/patchbay-dev/patchbay/host/approval"
)

// The decision about a call rests on the definition of the tool that the model was offered. That
// definition may be minutes old when the call is made: the model thinks, the person is away, the
// server reconnects. To keep an approval, a rule or a hint from applying to a different tool, the
// host compares the definition with the one that the server lists now, before it asks the person
// and again immediately before each attempt. A call of a tool that has changed fails without
// running, and the next step offers the model the new definition.

// errChanged says that a tool differs from the one that the model was offered.
var errChanged = errors.New("the tool has changed since it was offered to the model")

// unchanged returns an error that wraps errChanged if the server now defines the tool of the call
// differently, or not at all. A server that reported a change of its tools has 2 seconds to list
// them. If a server cannot be asked, unchanged returns nil.
func (p *pending) unchanged(ctx context.Context) error {
	if p.server == nil || p.tool.do != nil {
		return nil // a tool of the host itself
	}
	now, err := p.c.h.toolsOf(ctx, p.server, againTime)
	if err != nil {
		return nil // the call will find out why
	}
	at := slices.IndexFunc(now, func(t Tool) bool { return t.Tool.Name == p.tool.Tool.Name })
	switch {
	case at < 0:
		return fmt.Errorf("%w: its server does not list it any more", errChanged)
	case now[at].Tool != p.tool.Tool && approval.Hash(now[at].Tool) != approval.Hash(p.tool.Tool):
		return errChanged
	case p.server.listing():
		return fmt.Errorf("%w, or is another one: its server has not listed its tools again yet", errChanged)
	}
	return nil
}

// listing reports whether the tools of a server are being listed again, after a change or a
// reconnect.
func (s *server) listing() bool {
	now, why, idle := s.standing()
	l := &s.tools
	l.mu.Lock()
	defer l.mu.Unlock()
	return why == "" && !idle && l.of != now && l.coming != nil
}
