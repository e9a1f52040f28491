package view

import (
	"context"
	"net/http"
	"strconv"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
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

// refusal is the error of a caller who may not use a view. Callers get the error that it wraps, with the
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
