package middleware

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Log returns a middleware that logs a line "request" at the end of each request, with the
// attributes method, caller (the principal), ms, outcome ([Outcome]) and, as far as the method has
// one, tool, prompt, uri (of a resource, without user and query), ref (of a completion: a prompt or
// a template, like uri) or task (its id). Attributes without a value are left out. A [Failed] request
// is logged at Warn with code, all others at Info. The text of an error may quote arguments and
// results: err is logged only for a fault of a connection, a timeout, and what the other side does
// not support. [Observe] has every error. If logger is nil, it is [slog.Default].
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
			attrs = append(attrs, slog.Int("code", r.Code))
			if fault := faultText(r.Err); fault != "" {
				attrs = append(attrs, slog.String("err", text.Short(fault)))
			}
		}
		logger.LogAttrs(ctx, level, "request", attrs...)
	})
}

// faultText returns the text of an error, as far as it has no part of arguments and results.
func faultText(err error) string {
	var rpc *mcp.Error // with a text of the handler, or of the server behind it
	var status *mcp.HTTPError
	var op *net.OpError
	switch {
	case errors.As(err, &rpc):
		return ""
	case errors.As(err, &status): // its body is the server's
		return fmt.Sprintf("HTTP %d %s", status.Status, http.StatusText(status.Status))
	case errors.As(err, &op): // its address may be an argument
		fault := op.Op + " " + op.Net
		var errno syscall.Errno
		var dns *net.DNSError
		switch {
		case errors.As(err, &errno):
			fault += ": " + errno.Error()
		case errors.As(err, &dns):
			fault += ": " + dns.Err
		}
		return fault
	}
	for _, known := range []error{mcp.ErrSessionLost, mcp.ErrClosed, mcp.ErrNotSupported, context.DeadlineExceeded, io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return ""
}

// named returns the name of a record with its key.
func named(r Record) (key, name string) {
	switch r.Method {
	case "tools/call":
		return "tool", r.Name
	case "prompts/get":
		return "prompt", r.Name
	case "resources/read":
		return "uri", text.URI(r.Name)
	case "completion/complete":
		if strings.Contains(r.Name, ":") {
			return "ref", text.URI(r.Name)
		}
		return "ref", r.Name
	}
	return "task", r.Name
}
