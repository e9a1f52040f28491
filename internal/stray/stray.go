// Package stray lets the program that starts a server as a command learn which lines the command prints to its standard
// output although they are not messages, such as "Listening on port 3000".
package stray

import "context"

// Advice says how to correct such a server.
const Advice = "standard output is only for messages: log to standard error"

// A Func is called with each line, which it must not keep, by one goroutine for each connection. It returns the line for the
// log of the client: short, and without secrets. If the person knows already that the server prints, the log has no warning.
type Func func(line []byte) (shown string, known bool)

type key struct{}

// With returns a context for opening sessions whose stray lines f gets, even if the opening fails.
func With(ctx context.Context, f Func) context.Context { return context.WithValue(ctx, key{}, f) }

// From returns the function of With, or nil.
func From(ctx context.Context) Func {
	f, _ := ctx.Value(key{}).(Func)
	return f
}
