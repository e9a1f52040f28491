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
