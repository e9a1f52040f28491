package middleware

import (
	"context"
	"log/slog"
	"net/url"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Log returns a middleware that logs a line "request" at the end of each request, with the
// attributes method, caller (the principal), ms, outcome ([Outcome]) and, as far as the method has
// one, tool, prompt, uri (of a resource, without user and query), ref (of a completion: a prompt or
// a template) or task (its id). Attributes without a value are left out. A [Failed] request is logged
// at Warn with code, and with err unless the code is [jsonrpc.CodeInvalidParams], because that text
// may quote arguments; all others are logged at Info. If logger is nil, it is [slog.Default].
func Log(logger *slog.Logger) mcp.Middleware {
	if logger == nil {
		logger = slog.Default()
	}
	return Observe(func(ctx context.Context, r Record) {
		level := slog.LevelInfo
		if r.Outcome == Failed {
			level = slog.LevelWarn
		}
		if !logger.Enabled(ctx, level) {
			return
		}
		attrs := append(make([]slog.Attr, 0, 7), slog.String("method", text.Short(r.Method)))
		if key, name := named(r); name != "" {
			attrs = append(attrs, slog.String(key, text.Short(name)))
		}
		if r.Caller != "" {
			attrs = append(attrs, slog.String("caller", r.Caller))
		}
		attrs = append(attrs, slog.Float64("ms", float64(r.Duration.Microseconds())/1000), slog.String("outcome", string(r.Outcome)))
		if r.Outcome == Failed {
			if attrs = append(attrs, slog.Int("code", r.Code)); r.Code != jsonrpc.CodeInvalidParams {
				attrs = append(attrs, slog.String("err", text.Short(r.Err.Error())))
			}
		}
		logger.LogAttrs(ctx, level, "request", attrs...)
	})
}

// named returns the name of a record with its key.
func named(r Record) (key, name string) {
	switch r.Method {
	case "tools/call":
		return "tool", r.Name
	case "prompts/get":
		return "prompt", r.Name
	case "resources/read":
		return "uri", shownURI(r.Name)
	case "completion/complete":
		return "ref", r.Name
	}
	return "task", r.Name
}

// shownURI returns a URI without the parts that may be secret.
func shownURI(uri string) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}
