package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/patchbay-dev/patchbay/host/approval"
)

// A call is decided by the definition of its tool that the model was offered, which may be
// minutes old when the call is made: the model thinks, the person is away, the connection is
// opened anew. So that no approval, no rule and no hint holds for another tool, the definition is
// compared with the one that its server lists now, before the person is asked and again
// immediately before each attempt. A call of a tool that has changed fails without having run, and
// the model is offered the new definition in its next step.

// errChanged says that a tool is not what the call of it was decided by.
var errChanged = errors.New("the tool has changed since the model was offered it")

// unchanged returns an error that wraps errChanged if the server defines the tool of the call
// otherwise now, or not at all. A server that has said that its tools change is given 2 seconds to
// list them; one that cannot be asked is taken to be as it was.
func (p *pending) unchanged(ctx context.Context) error {
	if p.server == nil || p.tool.do != nil {
		return nil // a tool of the host itself
	}
	now, err := p.c.h.toolsOf(ctx, p.server, againTime)
	if err != nil {
		return nil // the call finds out why
	}
	at := slices.IndexFunc(now, func(t Tool) bool { return t.Tool.Name == p.tool.Tool.Name })
	switch {
	case at < 0:
		return fmt.Errorf("%w: its server does not list it any more", errChanged)
	case now[at].Tool != p.tool.Tool && approval.Hash(now[at].Tool) != approval.Hash(p.tool.Tool):
		return errChanged
	case p.server.listing():
		return fmt.Errorf("%w, or another has: its server has not listed its tools again yet", errChanged)
	}
	return nil
}

// listing tells whether the tools of a server are being listed again, as they have changed or the
// server is connected anew.
func (s *server) listing() bool {
	now, why, idle := s.standing()
	l := &s.tools
	l.mu.Lock()
	defer l.mu.Unlock()
	return why == "" && !idle && l.of != now && l.coming != nil
}
