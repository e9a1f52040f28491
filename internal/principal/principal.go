// Package principal carries the ID of a caller in a context. It is the only source of identity in
// the module: package auth sets it, package mcp reads it, and sessions, tasks, streams, states,
// limits and policies belong to the principal that mcp has read.
package principal

import "context"

// Key is the context key. Its value is a *string, the ID, empty for an unauthenticated caller. A
// context type that carries more about a caller returns the ID for this key too.
type Key struct{}

// With returns a context with the caller's ID; empty means unauthenticated.
func With(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, Key{}, &id)
}

// From returns the ID of the caller, or "" if unauthenticated.
func From(ctx context.Context) string {
	if id, ok := ctx.Value(Key{}).(*string); ok {
		return *id
	}
	return ""
}

// CredentialKey is the context key of the credential that a request came with. Its value is
// comparable, and equal for all requests with the same credential: two credentials of one
// principal may have different rights.
type CredentialKey struct{}

// Credential returns the credential of a request, or nil if unknown.
func Credential(ctx context.Context) any { return ctx.Value(CredentialKey{}) }
