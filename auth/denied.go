package auth

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/auth/internal/oauth"
)

// InsufficientScopeError says that the caller lacks scopes for an operation. An MCP handler, or
// middleware in front of it, returns it, wrapped or not. Over HTTP the answer is 403 with
// error="insufficient_scope" (401 if the caller is not known), and a client can log in for more
// scopes. After the response has begun, and on other transports, it is a JSON-RPC error.
// [RequireScopes] makes one.
//
// Specification: 2026-07-28, basic/authorization, Scope Challenge Handling.
type InsufficientScopeError struct {
	// Scopes are all scopes that the operation needs, also those that the caller has, so that one
	// login is enough.
	Scopes []string
}

// Error names the scopes.
func (e *InsufficientScopeError) Error() string {
	switch len(e.Scopes) {
	case 0:
		return "this needs an authenticated caller"
	case 1:
		return "this needs the scope " + e.Scopes[0]
	}
	return "this needs the scopes " + strings.Join(e.Scopes, " ")
}

// HTTPHeader returns the status and the headers of the answer to the call of ctx.
func (e *InsufficientScopeError) HTTPHeader(ctx context.Context) (status int, h http.Header) {
	c := callerOf(ctx)
	code := oauth.InsufficientScope
	if status = http.StatusForbidden; c.principal == nil {
		status, code = http.StatusUnauthorized, ""
	}
	h = http.Header{}
	c.guard.challenge(h, c.target, code, e.Scopes)
	return status, h
}

// otherAudience is the error of a valid token that is for another resource.
type otherAudience struct{ error }

// RequireScopes returns nil if the caller of ctx is known and has all of the scopes, else an
// [*InsufficientScopeError]. If scopes is empty, any known caller is enough.
func RequireScopes(ctx context.Context, scopes ...string) error {
	p := From(ctx)
	if p != nil && !slices.ContainsFunc(scopes, func(s string) bool { return !p.HasScope(s) }) {
		return nil
	}
	return &InsufficientScopeError{Scopes: scopes}
}

// challenge adds the schemes that the Guard takes to the headers of a refusal. The argument code is
// the error of a Bearer challenge, empty for a request without a credential; scopes are the
// required scopes, and target is the target of the request. A nil Guard takes Bearer tokens.
//
// Specification: RFC 6750, 3; RFC 9728, 5.1; RFC 7617, 2.
func (g *Guard) challenge(h http.Header, target, code string, scopes []string) {
	var b strings.Builder
	b.WriteString("Bearer")
	sep := " "
	add := func(name, value string) {
		if value != "" {
			b.WriteString(sep + name + `="` + quotable(value) + `"`)
			sep = ", "
		}
	}
	var metadata string
	var basic bool
	tokens := true
	if g != nil {
		metadata = g.at.urlFor(target)
		basic, tokens = g.basic, g.tokens
	}
	add("error", code)
	add("scope", strings.Join(scopes, " "))
	add("resource_metadata", metadata)
	if tokens || !basic {
		h.Add("WWW-Authenticate", b.String())
	}
	if basic && code != oauth.InsufficientScope {
		h.Add("WWW-Authenticate", `Basic realm="`+quotable(g.realm())+`", charset="UTF-8"`)
	}
}

// quotable drops the characters that a quoted string would have to escape.
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' {
			return -1
		}
		return r
	}, s)
}
