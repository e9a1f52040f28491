package policy

import (
	"context"
	"encoding/json"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A Policy decides whether a caller may do something. Decide must be safe for concurrent use and
// must not block: each call of a tool waits for it, and a list calls it for each entry.
//
// If it has a method Decided(Decision), that is called with the decision about each request, and not
// with those about entries of lists.
type Policy interface {
	Decide(ctx context.Context, a *Access) Decision
}

// Versioned is a Policy whose decisions depend only on the fields of the Access, its Annotations
// and its Client, and do not change while Version returns the same value, which must be
// comparable. Filtered lists are then cached. A [Require] and the rules of package policy/rules
// are Versioned.
type Versioned interface {
	Policy
	Version() any
}

// Func is a function as a Policy.
type Func func(ctx context.Context, a *Access) Decision

// Decide calls f.
func (f Func) Decide(ctx context.Context, a *Access) Decision { return f(ctx, a) }

// Access is one use of a feature by a caller.
type Access struct {
	Principal *auth.Principal // of the caller; nil: not authenticated
	Server    string          // as the configuration names it

	// Method is the method of the request: "tools/call", "resources/read", "tasks/cancel". For an
	// entry of a list it is the method that uses the entry.
	Method string

	// Kind is KindTool, KindPrompt or KindResource. A template is a resource whose URI is
	// not known. It is empty for a method of an extension.
	Kind mcp.Kind

	// Name is the name of the tool or prompt on its server, the URI of the resource, or the
	// method of the extension.
	Name string

	// Template is the URI template that is listed or completed; Name is empty then.
	Template string

	// Arguments are an object, nil for none. A policy must not keep or change them.
	Arguments json.RawMessage

	// Partial reports that Arguments are not known, and that Name is not known if it is empty. A
	// policy must then refuse only what it would refuse for all their values.
	Partial bool

	// Annotations returns the server's annotations of the feature, or nil if there are none or the
	// server is not trusted (see [Middleware]): then [Unannotated] applies. It may have to ask
	// the server. A nil function means one that returns nil.
	Annotations func() *Annotations

	// Client returns the client's own description, which is not verified. If nil, there is none.
	Client func() mcp.Implementation
}

// Annotations are a trusted server's annotations of a feature.
type Annotations struct {
	Title string

	// For tools. The defaults are those of the specification, which assume the worst: see
	// [Unannotated].
	ReadOnly, Destructive, Idempotent, OpenWorld bool

	// For resources and templates.
	Audience []string // "user", "assistant"
	Priority float64
}

// Unannotated holds the defaults for a feature without annotations (2026-07-28, schema,
// ToolAnnotations).
var Unannotated = Annotations{Destructive: true, OpenWorld: true}

// Decision is a policy's decision on an [Access]. The zero value refuses.
type Decision struct {
	Allow bool

	// Rule names the rule that decided, for logs and for callers who may see the feature.
	Rule string

	// Scopes, if the access is refused, are all the scopes with which it would be allowed. They
	// are sent to the caller. If nil, no scope would help.
	Scopes []string

	// Show keeps a feature that Scopes would allow in lists.
	Show bool

	// Reason is sent to a caller whose arguments are refused. It may be empty.
	Reason string

	// Err is the error because of which the policy could not be evaluated and refuses. It is
	// logged, and never sent to the caller.
	Err error
}
