package mcp

import (
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/revision"
)

// changes counts the changes of each list of a server, in the order of changeNotes.
type changes [len(changeNotes)]atomic.Uint64

// note counts a notification of a list change, and ignores others.
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

// ListVersion returns a number that grows with each change that the server announces, on any
// stream, of the list that a method asks for, such as "tools/list". It also grows when a change may
// have been missed. A caller that caches a list compares the version from before its request with
// the current one.
//
// Heard reports whether changes of the list are announced without [Session.Watch]: the server
// speaks a revision before 2026-07-28 and declares listChanged for the list, and its channel for
// notifications is open, which over Streamable HTTP is the GET stream.
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
