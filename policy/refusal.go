package policy

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/note"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// admit returns nil if the policy allows an access, else the error for the caller.
func (g *gate) admit(ctx context.Context, a *Access) error {
	d := g.policy.Decide(ctx, a)
	if p, ok := g.policy.(interface{ Decided(Decision) }); ok {
		p.Decided(d)
	}
	for _, decided := range g.decided {
		decided(d.Allow, d.Rule)
	}
	if r := note.From(ctx); r != nil {
		noted := note.Decision{Allow: d.Allow, Rule: d.Rule}
		if a.Kind == mcp.KindTool {
			noted.Tool = a.Name
		}
		if p, ok := g.policy.(interface{ Digest() string }); ok {
			noted.Policy = p.Digest()
		}
		r.Decided(a.Server, noted)
	}
	if d.Allow {
		return nil
	}
	g.refused(ctx, a, &d)
	switch {
	case d.Scopes != nil:
		return &auth.InsufficientScopeError{Scopes: d.Scopes}
	case g.shown(ctx, a):
		return &refusal{forbidden(a, &d)}
	}
	return &refusal{unknown(a)}
}

// A refusal is an [mcp.Denial] for the middleware of this process. Callers get the error that it
// wraps, with the usual HTTP response, so that they cannot tell it from that of the next handler.
type refusal struct{ as *mcp.Error }

func (r *refusal) Error() string { return r.as.Error() }
func (r *refusal) Unwrap() error { return r.as }

// HTTPHeader implements [mcp.Denial].
func (r *refusal) HTTPHeader(context.Context) (status int, h http.Header) { return 0, nil }

// shown reports whether a list would show a refused feature: whether the refusal is about its
// arguments.
func (g *gate) shown(ctx context.Context, a *Access) bool {
	if a.Partial || a.Kind == "" {
		return false
	}
	some := *a
	some.Partial, some.Arguments = true, nil
	d := g.policy.Decide(ctx, &some)
	return d.visible()
}

// visible reports whether a list shows the feature.
func (d *Decision) visible() bool { return d.Allow || d.Show && d.Scopes != nil }

// forbidden returns the error for a feature that the caller may see.
func forbidden(a *Access, d *Decision) *mcp.Error {
	why := ""
	if d.Reason != "" {
		why = ": " + d.Reason
	}
	return mcp.Errorf(jsonrpc.CodeInvalidRequest, "%s %q is refused with these arguments by %q of the policy%s", a.Kind, text.Short(a.Name), text.Short(d.Rule), why)
}

// unknown returns the error for a feature that does not exist, or seems not to.
func unknown(a *Access) *mcp.Error {
	switch a.Kind {
	case mcp.KindTool:
		return mcp.Errorf(jsonrpc.CodeInvalidParams, "no tool %q; see tools/list", text.Short(a.Name))
	case mcp.KindPrompt:
		return mcp.Errorf(jsonrpc.CodeInvalidParams, "no prompt %q; see prompts/list", text.Short(a.Name))
	case mcp.KindResource:
		if a.Template != "" {
			return mcp.ResourceNotFound(a.Template)
		}
		return mcp.ResourceNotFound(a.Name)
	}
	return mcp.Errorf(jsonrpc.CodeMethodNotFound, "no method %q", text.Short(a.Name))
}

// refused logs a refusal.
func (g *gate) refused(ctx context.Context, a *Access, d *Decision) {
	level, what := slog.LevelInfo, "refused by the policy"
	if d.Err != nil {
		level, what = slog.LevelWarn, "the policy failed, so it refuses"
	}
	if !g.log.Enabled(ctx, level) {
		return
	}
	who := ""
	if a.Principal != nil {
		who = text.Short(a.Principal.ID)
	}
	attrs := []slog.Attr{slog.String("rule", d.Rule), slog.String("principal", who), slog.String("server", a.Server), slog.String("method", text.Short(a.Method))}
	switch {
	case a.Template != "":
		attrs = append(attrs, slog.String("template", text.Short(text.URI(a.Template))))
	case a.Kind == mcp.KindResource:
		attrs = append(attrs, slog.String("uri", text.Short(text.URI(a.Name))))
	case a.Kind != "":
		attrs = append(attrs, slog.String(string(a.Kind), text.Short(a.Name)))
	}
	if d.Scopes != nil {
		attrs = append(attrs, slog.Any("scopes", d.Scopes))
	}
	if d.Err != nil {
		attrs = append(attrs, slog.String("err", d.Err.Error()))
	}
	g.log.LogAttrs(ctx, level, what, attrs...)
}
