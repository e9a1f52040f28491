package mcp

import (
	"sync/atomic"

	"github.com/patchbay-dev/patchbay/internal/feature"
)

// changes counts the changes of each list of a server, in the order of changeNotes.
type changes [len(changeNotes)]atomic.Uint64

// changesOf has the index of the changes of a list, by its capability.
var changesOf = map[string]int{feature.Tools.Capability: 0, feature.Prompts.Capability: 1, feature.Resources.Capability: 2}

// note counts a notification of a list change, and ignores others.
func (c *changes) note(method string) {
	for i := range changeNotes {
		if changeNotes[i].method == method {
			c[i].Add(1)
		}
	}
}

// all counts a change of every list, because a change may have been missed.
func (c *changes) all() {
	for i := range c {
		c[i].Add(1)
	}
}

// ListVersion returns a number for the list that a method such as "tools/list" asks for. The number
// increases each time the server announces, on any stream, that the list has changed, and each time
// such an announcement may have been missed. A caller that caches a list compares the version from
// before its request with the current one.
//
// The result heard reports whether the server announces changes of the list without
// [Session.Watch]. It does if it speaks a revision before 2026-07-28, declares listChanged for the
// list, and has an open channel for notifications. Over Streamable HTTP that channel is the GET
// stream.
func (s *Session) ListVersion(method string) (version uint64, heard bool) {
	list, ok := feature.Of(method)
	if !ok {
		return 0, false
	}
	s = s.server()
	version = s.changes[changesOf[list.Capability]].Load()
	heard = s.remote.Announces(list.Capability)
	if w, ok := s.remote.Wire.(interface{ Streams() (uint64, bool) }); ok {
		times, open := w.Streams()
		version, heard = version+times, heard && open
	}
	return version, heard
}
