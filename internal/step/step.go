// Package step makes a middleware transparent for the gateway and the policy in front of it.
//
// A gateway encodes a list once for all callers if the middleware around a server changes no list, and a
// policy trusts less of a server that is not part of the program. They find that out from methods of the
// handler. [Like] gives a handler those of the one behind it.
package step

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Leaver is a handler that filters lists for a gateway, such as that of a policy. Leaves returns which
// entries of a list the caller of ctx may see, as a bitmap: entry i stays if bit i%8 of byte i/8 is
// set. Two lists with the same serial, unless it is zero, are equal.
type Leaver interface {
	Leaves(ctx context.Context, method string, serial uint64, entries iter.Seq[json.RawMessage]) (left string)
}

// Onlooker is a handler that passes on every request and result unchanged. The lists and subscriptions
// of a gateway bypass it.
type Onlooker interface{ PassesAll() }

// Checker is a handler that finds out whether a name exists before it gets the request, such as that of a
// gateway. Missing returns the error that the request gets if it names a tool or a prompt that cannot be
// called, and whether the reason is that no such tool or prompt is listed. It returns no error for other
// requests, and where the handler itself does not check names.
type Checker interface {
	Missing(ctx context.Context, req *mcp.Request) (unlisted bool, err error)
}

// Missing returns what next returns if it is a [Checker], and else no error.
func Missing(ctx context.Context, next mcp.Handler, req *mcp.Request) (unlisted bool, err error) {
	if c, ok := next.(Checker); ok {
		return c.Missing(ctx, req)
	}
	return false, nil
}

// Definer is a handler that knows the definitions of tools, such as that of a gateway. Definition returns the
// digest of the definition of a tool as the caller of ctx was last shown it, in the form of audit.Digest;
// empty: it is unknown. It asks no server.
type Definer interface {
	Definition(ctx context.Context, tool string) string
}

// Definition returns what next returns if it is a [Definer], and else nothing.
func Definition(ctx context.Context, next mcp.Handler, tool string) string {
	if d, ok := next.(Definer); ok {
		return d.Definition(ctx, tool)
	}
	return ""
}

type taskToolKey struct{}

// WithTaskTool returns a context for a request about a task of a tool, which another process has begun.
func WithTaskTool(ctx context.Context, tool string) context.Context {
	return context.WithValue(ctx, taskToolKey{}, tool)
}

// TaskTool returns the tool of WithTaskTool, "" if there is none.
func TaskTool(ctx context.Context) string {
	tool, _ := ctx.Value(taskToolKey{}).(string)
	return tool
}

// Like returns h, which passes requests on to next unchanged and returns its results, as a handler that
// looks to a gateway and a policy as next does.
func Like(next, h mcp.Handler) mcp.Handler {
	l := like{h, next}
	switch next := next.(type) {
	case Leaver:
		return &leaving{l, next}
	case Onlooker:
		return &passing{l}
	}
	return &l
}

// Passing is [Like] for a middleware directly in front of a server, whose lists nothing changes.
func Passing(next, h mcp.Handler) mcp.Handler { return &passing{like{h, next}} }

type like struct {
	mcp.Handler
	next mcp.Handler
}

// Foreign reports whether next is a server that is not part of the program.
func (l *like) Foreign() bool {
	switch next := l.next.(type) {
	case *mcp.Session:
		return true
	case interface{ Foreign() bool }:
		return next.Foreign()
	}
	return false
}

// Missing implements [Checker].
func (l *like) Missing(ctx context.Context, req *mcp.Request) (unlisted bool, err error) {
	return Missing(ctx, l.next, req)
}

// Definition implements [Definer].
func (l *like) Definition(ctx context.Context, tool string) string {
	return Definition(ctx, l.next, tool)
}

type leaving struct {
	like
	Leaver
}

type passing struct{ like }

// PassesAll implements [Onlooker].
func (*passing) PassesAll() {}

type quietKey struct{}

// Quiet returns the context of a request that the program makes of its own middleware, to measure a list:
// middleware does not warn because of it.
func Quiet(ctx context.Context) context.Context { return context.WithValue(ctx, quietKey{}, true) }

// IsQuiet reports whether ctx is one of [Quiet].
func IsQuiet(ctx context.Context) bool { return ctx.Value(quietKey{}) != nil }
