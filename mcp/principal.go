package mcp

import (
	"context"
	"net/http"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/principal"
)

// principalOf returns the caller of a request on any HTTP transport, or "" if nobody is
// authenticated. [HTTPConfig.Principal] comes first; if it returns an empty string, the principal
// of an auth.Guard holds.
func (s *Server) principalOf(r *http.Request) string {
	if s.HTTP.Principal != nil {
		if id := s.HTTP.Principal(r); id != "" {
			return id
		}
	}
	return principal.From(r.Context())
}

// callerOf returns the caller of a connection that was opened elsewhere.
func callerOf(ctx context.Context) engine.Caller {
	return engine.Caller{Principal: principal.From(ctx)}
}
