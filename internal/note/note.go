// Package note carries what the middlewares of a request decide to the audit log, so that neither
// imports the other.
package note

import "context"

// Decision is the decision of a policy about a request.
type Decision struct {
	Allow  bool
	Rule   string // that decided; empty: the default
	Policy string // digest of the rules; may be empty
	Tool   string // as the server names it; empty: it is about something else
}

// Recorder takes notes about one request. It is safe for concurrent use.
type Recorder interface {
	// Decided is called with the decision about a request to a server.
	Decided(server string, d Decision)
}

type key struct{}

// valued is a context with one more value. Package engine sees through it by the method AddsValuesTo: a context of
// package context in its place would cost each call that waits a further context.
type valued struct {
	context.Context
	key, value any
}

// Value implements [context.Context].
func (c *valued) Value(key any) any {
	if key == c.key {
		return c.value
	}
	return c.Context.Value(key)
}

// AddsValuesTo returns the context that c ends with.
func (c *valued) AddsValuesTo() context.Context { return c.Context }

// With returns a context whose notes go to r.
func With(ctx context.Context, r Recorder) context.Context {
	return &valued{ctx, key{}, r}
}

// From returns the recorder of a request, or nil.
func From(ctx context.Context) Recorder {
	r, _ := ctx.Value(key{}).(Recorder)
	return r
}

// probing marks a context.
type probing struct{}

// WithProbing returns the context of a request that goes to one server after another, to find the
// one that has a resource.
func WithProbing(ctx context.Context) context.Context {
	return context.WithValue(ctx, probing{}, true)
}

// Probing reports whether a context comes from [WithProbing].
func Probing(ctx context.Context) bool { return ctx.Value(probing{}) != nil }

// Attempts takes notes of the replicas to which a request goes.
type Attempts interface {
	// Attempt is called before a request is sent to a replica, for the first time or again. Its error says
	// that the request must not be sent.
	Attempt(ctx context.Context, replica string) error

	// Again is called before a request is sent again over another connection. Its error says that the request must not
	// be sent.
	Again(ctx context.Context) error
}

type attemptsKey struct{}

// WithAttempts returns a context whose attempts a takes note of.
func WithAttempts(ctx context.Context, a Attempts) context.Context {
	return &valued{ctx, attemptsKey{}, a}
}

// Attempt takes note that the request of a context is sent to a replica.
func Attempt(ctx context.Context, replica string) error {
	if a, ok := ctx.Value(attemptsKey{}).(Attempts); ok {
		return a.Attempt(ctx, replica)
	}
	return nil
}

// Again takes note that the request of a context is sent again over another connection.
func Again(ctx context.Context) error {
	if a, ok := ctx.Value(attemptsKey{}).(Attempts); ok {
		return a.Again(ctx)
	}
	return nil
}

// Continuable is what a session has that another process may continue.
type Continuable interface {
	// Used takes note that a server keeps state for the session.
	Used(server string)

	// Noted waits until what Used has taken note of is kept, or for a second at most. It costs nothing if it is.
	Noted(ctx context.Context)

	// Lost returns the servers that kept state for the session in the process that had it before.
	Lost() []string
}

// ContinuableKey is the key of the [Continuable] of a session in its context.
type ContinuableKey struct{}

// ContinuableOf returns what the session of a context keeps for another process; nil: none may continue it.
func ContinuableOf(session context.Context) Continuable {
	c, _ := session.Value(ContinuableKey{}).(Continuable)
	return c
}
