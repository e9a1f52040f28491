package policy

import (
	"context"
	"encoding/json"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A Policy decides who may do what. Decide is called by several goroutines at once. It must
// not wait for anybody: each call of a tool waits for it, and a list asks about each entry.
type Policy interface {
	Decide(ctx context.Context, a *Access) Decision
}

// Versioned is a Policy that decides by nothing but the fields of the Access, its Annotations and
// its Client, in the same way as long as Version returns the same value, which can be compared. What
// it leaves of a list is kept then. A [Require] and the rules of package policy/rules are Versioned.
type Versioned interface {
	Policy
	Version() any
}

// Func makes a Policy of a function.
type Func func(ctx context.Context, a *Access) Decision

// Decide calls f.
func (f Func) Decide(ctx context.Context, a *Access) Decision { return f(ctx, a) }

// Access is what a caller wants to do.
type Access struct {
	Principal *auth.Principal // of the caller; nil: the caller is not known
	Server    string          // as the configuration names it

	// Method is what is asked: "tools/call", "resources/read", "tasks/cancel". In a list it
	// is what the entry would be used with.
	Method string

	// Kind is KindTool, KindPrompt or KindResource. A template is a resource whose URI is
	// not known. It is empty for a method of an extension.
	Kind mcp.Kind

	// Name is that of the tool or prompt, as its server calls it, the URI of the
	// resource, or the method of the extension.
	Name string

	// Template is the URI template that is listed or completed; Name is empty then.
	Template string

	// Arguments are an object, nil for none. A policy must not keep or change them.
	Arguments json.RawMessage

	// Partial says that Arguments are not known, and that Name is not if it is empty. Then a
	// policy refuses only what it would refuse whatever they are.
	Partial bool

	// Annotations returns what the server says of the feature, nil if it says nothing or is
	// not trusted (see [Middleware]): then [Unannotated] holds. It may have to ask the server.
	// A nil function stands for one that returns nil.
	Annotations func() *Annotations

	// Client returns how the client names itself, which proves nothing. Nil: it does not.
	Client func() mcp.Implementation
}

// Annotations are what a server that is trusted says of a feature.
type Annotations struct {
	Title string

	// Of tools. The defaults are those of the specification, the worst: see [Unannotated].
	ReadOnly, Destructive, Idempotent, OpenWorld bool

	// Of resources and templates.
	Audience []string // "user", "assistant"
	Priority float64
}

// Unannotated is what holds of a feature of which nothing is said (2026-07-28, schema,
// ToolAnnotations).
var Unannotated = Annotations{Destructive: true, OpenWorld: true}

// Decision is what a policy says to an [Access]. The zero value refuses.
type Decision struct {
	Allow bool

	// Rule names what decided, for logs and for callers who may know of the feature.
	Rule string

	// Scopes, if the access is refused, are all the scopes with which it would be allowed. A
	// caller who has none of them is told. Nil: no scope would help.
	Scopes []string

	// Show has a feature that Scopes would open in lists all the same.
	Show bool

	// Reason is told to a caller whose arguments are refused. It may be empty.
	Reason string

	// Err is why the policy could not be evaluated, so that it refuses. It is logged, and
	// never told.
	Err error
}
