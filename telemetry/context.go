package telemetry

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

// remote returns the span that a carrier names, which is not valid if it names none.
func remote(c propagation.TextMapCarrier) trace.SpanContext {
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), c))
}

// ofHeader returns the span that the header of a request names. Most name none.
func ofHeader(h http.Header) trace.SpanContext {
	if h.Get("Traceparent") == "" {
		return trace.SpanContext{}
	}
	return remote(propagation.HeaderCarrier(h))
}

// ofMeta returns the span that _meta names. Most name none.
func ofMeta(meta json.RawMessage) trace.SpanContext {
	parent, ok := jsonx.Lookup(meta, "traceparent")
	if !ok {
		return trace.SpanContext{}
	}
	state, _ := jsonx.Lookup(meta, "tracestate")
	c := propagation.MapCarrier{}
	c["traceparent"], _ = jsonx.Unquote(parent)
	c["tracestate"], _ = jsonx.Unquote(state)
	return remote(c)
}

// serverParent returns a context with the parent of the span of a server, and the span of the HTTP
// request as a link if it is not the parent.
func serverParent(ctx context.Context, req *mcp.Request, call *engine.Call) (context.Context, []trace.Link) {
	around := trace.SpanContextFromContext(ctx)
	if !around.IsValid() && call != nil {
		if around = ofHeader(call.Header); around.IsValid() {
			ctx = trace.ContextWithRemoteSpanContext(ctx, around)
		}
	}
	parent := ofMeta(req.Param("_meta"))
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
	if parent := ofMeta(req.Param("_meta")); parent.IsValid() {
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
			span = ofMeta(meta)
		}
	})
	if !span.IsValid() {
		span = ofHeader(call.Header)
	}
	return span
}

// withTrace returns the request with the span of ctx in its _meta. It is req itself if there is no
// span, or if params or _meta is not an object.
func withTrace(ctx context.Context, req *mcp.Request) *mcp.Request {
	span := trace.SpanContextFromContext(ctx)
	if !span.IsValid() {
		return req
	}
	params := jsonx.OrObject(req.Params)
	meta := req.Param("_meta")
	if jsonx.KindOf(params) != '{' || meta != nil && jsonx.KindOf(meta) != '{' {
		return req
	}
	if state := span.TraceState().String(); state != "" {
		params = jsonx.WithIn(nil, params, "_meta", "tracestate", jsonx.AppendString(nil, state))
	} else if _, ok := jsonx.Lookup(meta, "tracestate"); ok {
		params = jsonx.With(nil, params, "_meta", jsonx.Without(nil, meta, "tracestate"))
	}
	var parent [room]byte
	return &mcp.Request{Method: req.Method, Params: jsonx.WithIn(make([]byte, 0, len(params)+room), params, "_meta", "traceparent", appendParent(parent[:0], span))}
}

// appendParent appends traceparent of W3C Trace Context, level 2, in quotes.
func appendParent(b []byte, span trace.SpanContext) []byte {
	id, own := span.TraceID(), span.SpanID()
	b = hex.AppendEncode(append(b, `"00-`...), id[:])
	b = hex.AppendEncode(append(b, '-'), own[:])
	known := span.TraceFlags() & (trace.FlagsSampled | trace.FlagsRandom)
	return append(hex.AppendEncode(append(b, '-'), []byte{byte(known)}), '"')
}

// room is that of a member with a traceparent, and of _meta around it.
const room = 100

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
