package gateway

import (
	"context"
	"encoding/json"

	"github.com/patchbay-dev/patchbay/internal/principal"
)

// definition returns the digest of the definition of a tool, by the server's own name for it, as the server
// last listed it for the caller; empty: it has not, or its list is too long to be kept.
func (up *upstream) definition(ctx context.Context, tool string) string {
	for _, who := range up.definers(ctx) {
		if l := up.cache.get(who, listTools); l != nil && l.ids[tool] {
			return l.digests.Of(tool, func() json.RawMessage { return l.named(tool) })
		}
	}
	return ""
}

// definers returns the clients whose kept lists show the tools of a caller, the caller's own first.
func (up *upstream) definers(ctx context.Context) [3]client {
	if up.pool != nil && up.pool.perClient() {
		views := up.views(clientOf(ctx))
		return [3]client{views[0], views[1], {}}
	}
	return [3]client{{principal: principal.From(ctx)}, {}, {}} // mcp.CallFrom decodes what the client says of itself
}

// named returns the entry of a tool; nil: there is none.
func (l *keptList) named(tool string) json.RawMessage {
	for i := range l.entries {
		if l.entries[i].id == tool {
			return l.entries[i].raw
		}
	}
	return nil
}
