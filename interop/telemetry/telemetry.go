// Package telemetry shows how a server of package mcp gets spans of OpenTelemetry and metrics of
// Prometheus: a middleware of some fifty lines, made to be copied.
//
//	t := telemetry.New(provider.Tracer("my-server"), prometheus.DefaultRegisterer)
//	srv := &mcp.Server{Name: "my-server", Tasks: mcp.TaskConfig{OnEnd: t.TaskEnded}}
//	srv.Use(t.Middleware)
//
// # Guarantees
//
//   - Each request counts once, on every revision. A run of a handler that ends with a question to
//     the user (2026-07-28) has a span, and is not counted; the run that ends the call is.
//   - A tool error counts as an error, with the type "tool_error". A JSON-RPC error has its code.
//   - A call that becomes a task is counted, and its span ends, when the task ends.
//   - The parent of a span is the traceparent in _meta, else the span in the context.
//   - Names that callers invent do not become label values.
package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Telemetry observes a server.
type Telemetry struct {
	tracer  trace.Tracer
	seconds *prometheus.HistogramVec
}

// New returns a Telemetry with the metric mcp_server_operation_duration_seconds. It panics if reg
// has that metric already.
func New(tracer trace.Tracer, reg prometheus.Registerer) *Telemetry {
	t := &Telemetry{tracer, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "mcp_server_operation_duration_seconds", Help: "Requests by method, name and type of error, and their duration.",
	}, []string{"method", "name", "error_type"})}
	reg.MustRegister(t.seconds)
	return t
}

// operation is a request at work.
type operation struct {
	method, name string
	start        time.Time
	span         trace.Span
}

type key struct{} // of the operation in a context

// Middleware is a [mcp.Middleware].
func (t *Telemetry) Middleware(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		op := &operation{method: req.Method, start: time.Now()}
		_ = json.Unmarshal(req.Param("name"), &op.name) // lists have none
		call := mcp.CallFrom(ctx)
		ctx = propagation.TraceContext{}.Extract(ctx, Carrier(call.Meta))
		ctx, op.span = t.tracer.Start(ctx, strings.TrimSpace(op.method+" "+op.name), trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String("mcp.method.name", op.method), attribute.String("mcp.protocol.version", string(call.Revision))))
		res, err := next.Handle(context.WithValue(ctx, key{}, op), req)
		switch _, task := res.(*mcp.CreateTaskResult); {
		case task: // TaskEnded ends it
		case errors.Is(err, mcp.ErrPending):
			op.span.AddEvent("question")
			op.span.End()
		default:
			t.end(ctx, op, res, err)
		}
		return res, err
	})
}

// TaskEnded is for [mcp.TaskConfig.OnEnd].
func (t *Telemetry) TaskEnded(ctx context.Context, res mcp.Result, err error) {
	t.end(ctx, ctx.Value(key{}).(*operation), res, err)
}

func (t *Telemetry) end(ctx context.Context, op *operation, res mcp.Result, err error) {
	failure := ""
	var rpc *jsonrpc.Error
	var denied mcp.Denial
	isRPC := errors.As(err, &rpc)
	tool, ok := res.(*mcp.ToolResult)
	if failed := err != nil || ok && tool.IsError; failed && errors.Is(ctx.Err(), context.Canceled) {
		failure = "cancelled" // whatever the handler made of it
	} else if failed && err == nil {
		failure = "tool_error"
	} else if errors.As(err, &denied) {
		failure = "denied"
	} else if isRPC {
		failure = strconv.Itoa(rpc.Code)
	} else if err != nil {
		failure = "internal"
	}
	if isRPC && rpc.Code == jsonrpc.CodeInvalidParams {
		op.name = "" // perhaps not a name of this server
	}
	if failure != "" {
		op.span.SetStatus(codes.Error, failure)
		op.span.SetAttributes(attribute.String("error.type", failure))
	}
	op.span.End()
	t.seconds.WithLabelValues(op.method, op.name, failure).Observe(time.Since(op.start).Seconds())
}

// Carrier carries a trace context in _meta. A client sends it with [mcp.WithMeta]:
//
//	meta := mcp.Meta{}
//	propagation.TraceContext{}.Inject(ctx, telemetry.Carrier(meta))
type Carrier mcp.Meta

// Get implements [propagation.TextMapCarrier].
func (c Carrier) Get(key string) (value string) {
	_ = json.Unmarshal(c[key], &value) // another type is not a trace context
	return value
}

// Set implements [propagation.TextMapCarrier].
func (c Carrier) Set(key, value string) { c[key], _ = json.Marshal(value) }

// Keys implements [propagation.TextMapCarrier].
func (c Carrier) Keys() []string { return slices.Collect(maps.Keys(c)) }
