package telemetry_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/telemetry"
	"github.com/patchbay-dev/patchbay/trace"
)

// A client that has no answer records no code, and says why it has none.
func TestClientFailures(t *testing.T) {
	ended := func(end func(context.Context) (context.Context, context.CancelFunc)) context.Context {
		ctx, cancel := end(t.Context())
		cancel()
		return ctx
	}
	late, cancelLate := context.WithDeadline(t.Context(), time.Unix(1, 0))
	defer cancelLate()
	for _, tt := range []struct {
		name       string
		ctx        context.Context
		err        error
		kind, code string
	}{
		{"a deadline of the caller", late, context.DeadlineExceeded, "deadline", ""},
		{"a deadline, and an error of JSON-RPC", late, mcp.Errorf(7001, "no"), "deadline", ""},
		{"a limit", t.Context(), &mcp.LimitError{Limit: time.Second}, "deadline", ""},
		{"canceled", ended(context.WithCancel), context.Canceled, "cancelled", ""},
		{"not reached", t.Context(), &net.OpError{Op: "dial", Err: errors.New("refused")}, "transport", ""},
		{"closed", t.Context(), mcp.ErrClosed, "transport", ""},
		{"another error", t.Context(), errors.New("x"), "_OTHER", ""},
		{"an answer", t.Context(), mcp.Errorf(7001, "no"), "7001", "7001"},
	} {
		o, spans := recorder()
		h := telemetry.Client(o)(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, tt.err }))
		h.Handle(tt.ctx, &mcp.Request{Method: "tools/call"})
		s := spans.Ended()[0]
		if kind, code := attr(s, "error.type"), attr(s, "rpc.response.status_code"); kind != tt.kind || code != tt.code || s.Status().Code != codes.Error {
			t.Errorf("%s: error.type %q and code %q, want %q and %q", tt.name, kind, code, tt.kind, tt.code)
		}
	}
}

// A server that takes too long answers with a code; the type of the error is the deadline.
func TestServerDeadline(t *testing.T) {
	o, spans := recorder()
	h := telemetry.Server(o)(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, &mcp.LimitError{Limit: time.Second}
	}))
	h.Handle(t.Context(), call())
	if s := spans.Ended()[0]; attr(s, "error.type") != "deadline" || attr(s, "rpc.response.status_code") != "-32603" {
		t.Errorf("attributes %v", s.Attributes())
	}
}

// The subscription of a client is a parent of that of its server.
func TestListenIsInTheTree(t *testing.T) {
	clients, clientSpans := recorder()
	servers, serverSpans := recorder()
	srv := &mcp.Server{Name: "s"}
	srv.Use(telemetry.Server(servers))
	mcp.AddTool(srv, mcp.Tool{Name: "t"}, func(context.Context, nothing) (string, error) { return "", nil })
	c := &mcp.Client{Name: "c"}
	c.Use(telemetry.Client(clients))
	s := mcptest.Connect(t, srv, c, mcp.V2026_07_28)
	ctx, cancel := context.WithCancel(t.Context())
	for e, err := range s.Watch(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		_ = e
		cancel()
	}
	cancel()
	find := func(spans *tracetest.SpanRecorder) sdktrace.ReadOnlySpan {
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			for _, span := range spans.Ended() {
				if attr(span, "mcp.method.name") == "subscriptions/listen" {
					return span
				}
			}
		}
		t.Fatal("no span of the subscription")
		return nil
	}
	of, at := find(clientSpans), find(serverSpans)
	if at.Parent().SpanID() != of.SpanContext().SpanID() || at.SpanContext().TraceID() != of.SpanContext().TraceID() {
		t.Errorf("the parent of the server's span is %v, want %v", at.Parent(), of.SpanContext())
	}
}

// badProcessor is a span processor that panics.
type badProcessor struct{ sdktrace.SpanProcessor }

func (badProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) { panic("start") }
func (badProcessor) OnEnd(sdktrace.ReadOnlySpan)                     { panic("end") }

// badEnd is a span processor that panics at the end of a span.
type badEnd struct{ badProcessor }

func (badEnd) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// A function or a span processor that panics does not fail the request, and the error handler of
// OpenTelemetry gets the first panic.
func TestPanicsOfOthers(t *testing.T) {
	var said atomic.Int64
	before := otel.GetErrorHandler()
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if strings.Contains(err.Error(), "telemetry: panic in") {
			said.Add(1)
		}
	}))
	defer otel.SetErrorHandler(before)
	revision, _ := recorder()
	revision.Revision = func() mcp.Revision { panic("revision") }
	for name, o := range map[string]*telemetry.Options{
		"Revision": revision,
		"OnStart":  {Provider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(badProcessor{}))},
		"OnEnd":    {Provider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(badEnd{}))},
		"Content":  {Provider: sdktrace.NewTracerProvider(), Content: trace.NewRedactor(nil)},
	} {
		for kind, mw := range map[string]mcp.Middleware{"Server": telemetry.Server(o), "Client": telemetry.Client(o)} {
			said.Store(0)
			ran := 0
			h := mw(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { ran++; return mcp.RawResult(`{}`), nil }))
			for range 3 {
				if _, err := h.Handle(t.Context(), call()); err != nil {
					t.Errorf("%s, %s: %v", name, kind, err)
				}
			}
			want := int64(1)
			if name == "Content" || name == "Revision" && kind == "Server" {
				want = 0 // nothing panics
			}
			if ran != 3 || said.Load() != want {
				t.Errorf("%s, %s: %d requests ran, %d panics reported; want 3 and %d", name, kind, ran, said.Load(), want)
			}
		}
	}
}

func call() *mcp.Request {
	return &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"t","arguments":{}}`)}
}
