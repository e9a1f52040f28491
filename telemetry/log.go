package telemetry

import (
	"context"
	"log/slog"
)

// LogHandler returns a handler that adds trace_id and span_id to records whose context has a span,
// such as that of a tool behind [Server], or that of a request whose caller sent a traceparent: they
// are then those of the caller. They are not part of any group. Other records are passed on
// unchanged.
func LogHandler(next slog.Handler) slog.Handler { return &logHandler{next, next, nil} }

type logHandler struct {
	outer slog.Handler // without what came since the first group
	inner slog.Handler // with it
	since []func(slog.Handler) slog.Handler
}

func (h *logHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.inner.Enabled(ctx, level)
}

func (h *logHandler) Handle(ctx context.Context, r slog.Record) error {
	span := spanOf(ctx)
	if !span.IsValid() {
		return h.inner.Handle(ctx, r)
	}
	ids := []slog.Attr{slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String())}
	if h.since == nil {
		r = r.Clone()
		r.AddAttrs(ids...)
		return h.inner.Handle(ctx, r)
	}
	next := h.outer.WithAttrs(ids)
	for _, f := range h.since {
		next = f(next)
	}
	return next.Handle(ctx, r)
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	if h.since == nil {
		return LogHandler(h.inner.WithAttrs(attrs))
	}
	return h.with(func(next slog.Handler) slog.Handler { return next.WithAttrs(attrs) })
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(func(next slog.Handler) slog.Handler { return next.WithGroup(name) })
}

func (h *logHandler) with(f func(slog.Handler) slog.Handler) slog.Handler {
	return &logHandler{h.outer, f(h.inner), append(h.since[:len(h.since):len(h.since)], f)}
}
