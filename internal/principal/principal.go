// Package principal carries the ID of a caller in a context. It is the one source of
// identity in the module: package auth sets it, package mcp reads it, and sessions, tasks,
// streams, states, limits and policies belong to what mcp has read.
package principal

import "context"

// Key is the context key. Its value is a *string, the ID, which is empty if nobody that is
// known is calling. A context that carries more of a caller answers this key by itself.
type Key struct{}

// With returns a context in which the principal with an ID is calling; empty: nobody.
func With(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, Key{}, &id)
}

// From returns the ID of the principal that is calling, empty for nobody.
func From(ctx context.Context) string {
	if id, ok := ctx.Value(Key{}).(*string); ok {
		return *id
	}
	return ""
}

// CredentialKey is the context key of the credential that a request came with. Its value can be
// compared, and is the same for all requests with the same credential: two credentials of one
// principal may not let it do the same.
type CredentialKey struct{}

// Credential returns the credential that a request came with, nil if that is not known.
func Credential(ctx context.Context) any { return ctx.Value(CredentialKey{}) }
