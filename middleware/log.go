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
// attributes method, name (of the tool or prompt, or the URI of the resource without user and
// query), caller (the principal), ms and outcome ([Outcome]). Attributes without a value are left out. A [Failed]
// request is logged at Warn with code, and with err unless the code is
// [jsonrpc.CodeInvalidParams], because that text may quote arguments; all others are logged at Info.
// If logger is nil, it is [slog.Default].
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
		if r.Name != "" {
			attrs = append(attrs, slog.String("name", text.Short(shownName(r))))
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

// shownName returns the name of a record without the parts of a URI that may be secret.
func shownName(r Record) string {
	if r.Method != "resources/read" {
		return r.Name
	}
	u, err := url.Parse(r.Name)
	if err != nil {
		return "" // and not what may be in it
	}
	u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
	return u.String()
}
