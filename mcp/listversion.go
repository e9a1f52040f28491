package mcp

import (
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/revision"
)

// changes counts how often the lists of a server have changed, in the order of changeNotes.
type changes [len(changeNotes)]atomic.Uint64

// note counts a notification, if it is one of a change of a list.
func (c *changes) note(method string) {
	for i := range changeNotes {
		if changeNotes[i].method == method {
			c[i].Add(1)
		}
	}
}

// all counts a change of every list: one may have been missed.
func (c *changes) all() {
	for i := range c {
		c[i].Add(1)
	}
}

// ListVersion returns a number that grows with each change that the server announces of the list
// that a method asks for, such as "tools/list", on whatever stream the announcement comes. It
// grows also when a change may have been missed. Whoever keeps a list compares the version of
// before the request with that of now.
//
// Heard tells whether a change of the list is heard now without [Session.Watch]: the server is one
// before 2026-07-28 that declares listChanged for the list, and its way for notifications is open,
// which over Streamable HTTP is the GET stream.
func (s *Session) ListVersion(method string) (version uint64, heard bool) {
	capability, at := "", 0
	switch method {
	case revision.MethodTools:
		capability = "tools"
	case revision.MethodPrompts:
		capability, at = "prompts", 1
	case revision.MethodResources, revision.MethodTemplates:
		capability, at = "resources", 2
	default:
		return 0, false
	}
	s = s.server()
	version = s.changes[at].Load()
	heard = s.remote.Announces(capability)
	if w, ok := s.remote.Wire.(interface{ Streams() (uint64, bool) }); ok {
		times, open := w.Streams()
		version, heard = version+times, heard && open
	}
	return version, heard
}
