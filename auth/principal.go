package auth

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/internal/principal"
)

// Principal is the caller that a verified credential names. All requests with the same credential
// share one Principal, so it must not be changed.
type Principal struct {
	// ID tells principals apart: data of one ID is given to no other. It consists of the issuer, or
	// without one of the scheme, and of the subject: "https://login.example.com#alice",
	// "apikey#alice". It is never empty.
	ID string

	// Scheme is the kind of the credential: "jwt", "introspection", "apikey", "basic" or "mtls",
	// or a word of the program's own Verifier.
	Scheme string

	Issuer   string // of the token; empty for credentials without one
	Subject  string // the user, as the issuer or the file of keys names it
	ClientID string // the OAuth client that got the token, if it says so
	Name     string // for people to see; may be empty

	Scopes []string // granted, with the implied ones (Guard.Implied)
	Roles  []string

	Expires time.Time // when the credential expires; zero: not known

	// Claims are the claims of a token, as encoding/json decodes them into any: a number is a
	// float64. Nil for other credentials.
	Claims map[string]any
}

// same reports whether two credentials give a caller the same identity and rights.
func (p *Principal) same(q *Principal) bool {
	return p != nil && q != nil && p.ID == q.ID && slices.Equal(p.Scopes, q.Scopes) && slices.Equal(p.Roles, q.Roles)
}

// HasScope reports whether a scope was granted. A nil principal has none.
func (p *Principal) HasScope(scope string) bool {
	return p != nil && slices.Contains(p.Scopes, scope)
}

// HasRole reports whether the principal has a role. A nil principal has none.
func (p *Principal) HasRole(role string) bool {
	return p != nil && slices.Contains(p.Roles, role)
}

// callerKey is that of the caller in a context.
type callerKey struct{}

// caller is the caller of a request, as a Guard knows it.
type caller struct {
	principal *Principal // nil: not known
	guard     *Guard     // nil: the principal was put there by With
	target    string     // of the request that the guard let through, as the client wrote it
}

// callerContext carries a caller without a box for it.
type callerContext struct {
	context.Context
	caller
}

func (c *callerContext) Value(key any) any {
	switch key.(type) {
	case callerKey:
		return &c.caller
	case principal.Key:
		return c.id()
	case principal.CredentialKey:
		return c.principal
	}
	return c.Context.Value(key)
}

// nobody is the ID of a caller that is not known.
var nobody = new(string)

// id is the ID of the caller, for a Server.
func (c *caller) id() *string {
	if c.principal == nil {
		return nobody
	}
	return &c.principal.ID
}

func callerOf(ctx context.Context) caller {
	if c, ok := ctx.Value(callerKey{}).(*caller); ok {
		return *c
	}
	return caller{}
}

// From returns the caller, or nil if it is not known. In an MCP handler that is the sender of the
// request; on a connection that stays open, such as a WebSocket, it is the client that opened it.
func From(ctx context.Context) *Principal { return callerOf(ctx).principal }

// With returns a context whose caller is p; nil: no known caller. It is for transports that have
// no [Guard] in front of them, such as mcp.Server.Serve, and for tests.
func With(ctx context.Context, p *Principal) context.Context {
	c := callerOf(ctx)
	c.principal = p
	return &callerContext{ctx, c}
}

// ID returns the ID of the caller of an HTTP request, or "" if the caller is not known. An
// mcp.Server behind a [Guard] uses it without configuration; call ID in mcp.HTTPConfig.Principal if
// that has another source too.
func ID(r *http.Request) string {
	if p := From(r.Context()); p != nil {
		return p.ID
	}
	return ""
}
