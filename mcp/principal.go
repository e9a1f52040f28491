package mcp

import (
	"context"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/principal"
)

// principalOf names the caller of a request on any wire of HTTP, empty for nobody.
// [HTTPConfig.Principal] comes first, and what an auth.Guard found out holds where that
// has no answer.
func (s *Server) principalOf(r *http.Request) string {
	if s.HTTP.Principal != nil {
		if id := s.HTTP.Principal(r); id != "" {
			return id
		}
	}
	return principal.From(r.Context())
}

// callerOf is the caller of a connection that was opened elsewhere.
func callerOf(ctx context.Context) engine.Caller {
	return engine.Caller{Principal: principal.From(ctx)}
}
