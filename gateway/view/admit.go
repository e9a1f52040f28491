package view

import (
	"context"
	"net/http"
	"strconv"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/policy"
)

// Admit returns the error with which the view refuses the caller of ctx, or nil. The error is an
// [mcp.Denial], and an audit log has the rule view "NAME" for it.
func (v *View) Admit(ctx context.Context) error {
	if v.For == nil || v.For(ctx) {
		return nil
	}
	return &refusal{v.rule(), mcp.Errorf(jsonrpc.CodeInvalidRequest, "you may not use the view %q; ask the operator of this server", text.Short(v.Name))}
}

// rule names the view as the cause of a refusal.
func (v *View) rule() string { return "view " + strconv.Quote(v.Name) }

// refuse returns the function that refuses a call of call_tool, for a tool that the view does not list. The audit log and
// the Logger get the name of that tool, as they do in a view without search. The caller can't tell from the error whether
// the tool exists outside of the view.
func (v *View) refuse() func(ctx context.Context, tool string) error {
	none := policy.Func(func(context.Context, *policy.Access) policy.Decision { return policy.Decision{Rule: v.rule()} })
	gate := policy.Foreign(v.Name, true, none, v.Logger)(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, nil // the gate passes nothing on
	}))
	return func(ctx context.Context, tool string) error {
		_, _ = gate.Handle(ctx, &mcp.Request{Method: "tools/call", Params: jsonx.With(nil, []byte("{}"), "name", jsonx.AppendString(nil, tool))})
		return &refusal{v.rule(), unknown(tool)}
	}
}

// refusal is the error of a caller who may not use a view, or a tool. Callers get the error that it wraps, with the
// usual HTTP response.
type refusal struct {
	rule string
	as   *mcp.Error
}

func (r *refusal) Error() string { return r.as.Error() }

func (r *refusal) Unwrap() error { return r.as }

// Rule returns what has refused the caller, for the audit log.
func (r *refusal) Rule() string { return r.rule }

// HTTPHeader implements [mcp.Denial].
func (*refusal) HTTPHeader(context.Context) (status int, h http.Header) { return 0, nil }
