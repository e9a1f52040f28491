package telemetry

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

var w3c propagation.TraceContext

// remote returns the span that a carrier names, which is not valid if it names none.
func remote(c propagation.TextMapCarrier) trace.SpanContext {
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), c))
}

// serverParent returns a context with the parent of the span of a server, and the span of the HTTP
// request as a link if it is not the parent.
func serverParent(ctx context.Context, req *mcp.Request, call *engine.Call) (context.Context, []trace.Link) {
	around := trace.SpanContextFromContext(ctx)
	if !around.IsValid() && call != nil && call.Header != nil {
		if around = remote(propagation.HeaderCarrier(call.Header)); around.IsValid() {
			ctx = trace.ContextWithRemoteSpanContext(ctx, around)
		}
	}
	parent := remote(&metaCarrier{meta: req.Param("_meta")})
	if !parent.IsValid() {
		return ctx, nil
	}
	ctx = trace.ContextWithRemoteSpanContext(ctx, parent)
	if !around.IsValid() || around.SpanID() == parent.SpanID() {
		return ctx, nil
	}
	return ctx, []trace.Link{{SpanContext: around}}
}

// clientParent returns a context with the parent of the span of a client.
func clientParent(ctx context.Context, req *mcp.Request) context.Context {
	if trace.SpanContextFromContext(ctx).IsValid() {
		return ctx
	}
	if parent := remote(&metaCarrier{meta: req.Param("_meta")}); parent.IsValid() {
		return trace.ContextWithRemoteSpanContext(ctx, parent)
	}
	return ctx
}

// TraceID returns the trace id of a request, 32 hexadecimal digits: that of the span of its context,
// or else of traceparent in _meta or in the HTTP header. It is empty if there is none, or none that is
// valid.
func TraceID(ctx context.Context) string {
	if span := spanOf(ctx); span.IsValid() {
		return span.TraceID().String()
	}
	return ""
}

// spanOf returns the span of a context, or else the span that the caller of its request sent.
func spanOf(ctx context.Context) trace.SpanContext {
	span := trace.SpanContextFromContext(ctx)
	call := engine.From(ctx)
	if span.IsValid() || call == nil {
		return span
	}
	call.While(func() {
		if meta, ok := jsonx.Lookup(call.Params, "_meta"); ok {
			span = remote(&metaCarrier{meta: meta})
		}
	})
	if !span.IsValid() && call.Header != nil {
		span = remote(propagation.HeaderCarrier(call.Header))
	}
	return span
}

// withTrace returns the request with the span of ctx in its _meta. It is req itself if there is no
// span, or if params or _meta is not an object.
func withTrace(ctx context.Context, req *mcp.Request) *mcp.Request {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return req
	}
	params := jsonx.OrObject(req.Params)
	meta := req.Param("_meta")
	if meta == nil {
		meta = json.RawMessage(`{}`)
	}
	if jsonx.KindOf(params) != '{' || jsonx.KindOf(meta) != '{' {
		return req
	}
	c := metaCarrier{meta: meta}
	if _, ok := jsonx.Lookup(meta, "tracestate"); ok {
		c.meta = jsonx.Without(nil, meta, "tracestate")
	}
	w3c.Inject(ctx, &c)
	return &mcp.Request{Method: req.Method, Params: jsonx.With(make([]byte, 0, len(params)+len(c.meta)+room), params, "_meta", c.meta)}
}

// room is that of the name of a member, its quotes, its colon and a comma.
const room = 20

// within is a context with the values of another one, which only adds values to it. Package engine sees through it by
// the method AddsValuesTo, so that a call that waits needs no further context.
type within struct {
	context.Context
	values context.Context
}

// Value implements [context.Context].
func (c *within) Value(key any) any { return c.values.Value(key) }

// AddsValuesTo returns the context that c ends with.
func (c *within) AddsValuesTo() context.Context { return c.Context }

// metaCarrier carries a trace context in the JSON of _meta. It implements
// propagation.TextMapCarrier.
type metaCarrier struct{ meta json.RawMessage }

// Get returns a member that is a string, or else an empty one.
func (c *metaCarrier) Get(key string) string {
	raw, _ := jsonx.Lookup(c.meta, key)
	s, _ := jsonx.Unquote(raw)
	return s
}

// Set sets a member.
func (c *metaCarrier) Set(key, value string) {
	quoted := jsonx.AppendString(make([]byte, 0, len(value)+room), value)
	c.meta = jsonx.With(make([]byte, 0, len(c.meta)+len(quoted)+room), c.meta, key, quoted)
}

// Keys returns nil: the W3C propagator asks for members by name.
func (c *metaCarrier) Keys() []string { return nil }
