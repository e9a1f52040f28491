package telemetry

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/patchbay-dev/patchbay/internal/engine"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/outcome"
	"github.com/patchbay-dev/patchbay/internal/step"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/forward"
	"github.com/patchbay-dev/patchbay/trace"
)

// Options configure [Server] and [Client]. Nil and the zero value mean the defaults.
type Options struct {
	// Provider makes the spans. Nil: the global one, whenever otel.SetTracerProvider sets it.
	Provider oteltrace.TracerProvider

	// Server is the name of a server behind a gateway, as patchbay.server. Empty: none.
	Server string

	// Revision returns the revision that the server of a Client speaks, empty if it is not known.
	// Nil: not recorded. The middleware Server knows the revision of its callers by itself.
	Revision func() mcp.Revision

	// Transport is network.transport, such as "tcp" or "pipe". Empty: "tcp" for a request that a
	// Server gets over HTTP, and otherwise not recorded.
	Transport string

	Address string // of the server, as server.address; empty: not recorded
	Port    int    // of the server, as server.port; zero: not recorded

	// Content redacts the arguments and results of tools and the URIs of resources, which are then
	// recorded. Of a text that is longer than 16 KiB, only the length is recorded. Nil: they are not
	// recorded.
	Content *trace.Redactor
}

// maxContent is the maximum length of arguments, and of results, in a span.
const maxContent = 16 << 10

// Server returns a middleware that makes a span of kind SERVER for each request. It is for the Use
// of an [mcp.Server], and belongs in front of all other middleware, so that a log has its trace.
func Server(o *Options) mcp.Middleware { return observe(o, oteltrace.SpanKindServer) }

// Client returns a middleware that makes a span of kind CLIENT for each request, and sends the
// trace context along. It is for the Use of an [mcp.Client], and for the Middleware of a gateway,
// where it belongs behind all other middleware. A request that waits in the gateway, for the start of
// the server, for a connection or for its turn, has a span "wait" of kind INTERNAL with that time
// below it.
func Client(o *Options) mcp.Middleware { return observe(o, oteltrace.SpanKindClient) }

func observe(o *Options, kind oteltrace.SpanKind) mcp.Middleware {
	h := handler{once: new(sync.Once), kind: kind, ofKind: oteltrace.WithSpanKind(kind)}
	if o != nil {
		h.Options = *o
	}
	if h.Provider == nil {
		h.Provider = otel.GetTracerProvider()
	}
	h.tracer = h.Provider.Tracer(instrumentation)
	if h.Server != "" {
		h.fixed = append(h.fixed, keyServer.String(text.Short(h.Server)))
	}
	if h.Transport != "" {
		h.fixed = append(h.fixed, keyTransport.String(h.Transport))
	}
	if h.Address != "" {
		h.fixed = append(h.fixed, keyAddress.String(h.Address))
	}
	if h.Port != 0 {
		h.fixed = append(h.fixed, keyPort.Int(h.Port))
	}
	return func(next mcp.Handler) mcp.Handler {
		h := h // a middleware may wrap several handlers
		h.next = next
		return step.Like(next, &h)
	}
}

type handler struct {
	Options
	once   *sync.Once // of the report of a panic
	kind   oteltrace.SpanKind
	ofKind oteltrace.SpanStartOption
	tracer oteltrace.Tracer
	fixed  []attribute.KeyValue // of every span
	next   mcp.Handler
}

// Handle implements [mcp.Handler].
func (h *handler) Handle(ctx context.Context, req *mcp.Request) (res mcp.Result, err error) {
	ctx, req, span := h.begin(ctx, req, engine.From(ctx))
	ended := false
	defer func() {
		if !ended { // a panic
			span.SetAttributes(keyErrorType.String(errorPanic))
			span.SetStatus(codes.Error, errorPanic)
			span.End()
		}
	}()
	began, clock := time.Now(), wait.From(ctx)
	before := clock.Sum()
	res, err = h.next.Handle(ctx, req)
	ended = true
	if d := clock.Sum() - before; d > 0 && h.kind == oteltrace.SpanKindClient {
		h.waited(ctx, span, began, d)
	}
	h.end(ctx, span, req, res, err)
	return res, err
}

// waited makes a span of the time that a request has waited in the gateway before it was sent.
func (h *handler) waited(ctx context.Context, span oteltrace.Span, began time.Time, d time.Duration) {
	defer h.recovered("the span of a wait")
	if span.IsRecording() {
		_, span := h.tracer.Start(ctx, spanWait, oteltrace.WithTimestamp(began), oteltrace.WithAttributes(h.fixed...))
		span.End(oteltrace.WithTimestamp(began.Add(d)))
	}
}

// begin starts the span of a request. If the provider or a function of Options panics, it returns what
// there is before the panic, and the request goes on.
func (h *handler) begin(from context.Context, got *mcp.Request, call *engine.Call) (ctx context.Context, req *mcp.Request, span oteltrace.Span) {
	ctx, req, span = from, got, none
	defer h.recovered("the start of a span")
	var links []oteltrace.Link
	parent := from
	if h.kind == oteltrace.SpanKindServer {
		parent, links = serverParent(from, req, call)
	} else {
		parent = clientParent(from, req)
	}
	method := text.Short(req.Method)
	room := rooms.Get().(*[]attribute.KeyValue)
	name, attrs := nameOf(req, append((*room)[:0], h.fixed...))
	attrs = h.describe(append(attrs, keyMethod.String(method)), call)
	options := []oteltrace.SpanStartOption{h.ofKind, oteltrace.WithAttributes(attrs...)}
	if links != nil {
		options = append(options, oteltrace.WithLinks(links...))
	}
	values, span := h.tracer.Start(parent, strings.TrimSpace(method+" "+name), options...) // which copies the attributes
	clear(attrs)
	*room = attrs
	rooms.Put(room)
	ctx = &within{from, values}
	if h.kind == oteltrace.SpanKindClient {
		req = withTrace(ctx, req)
	}
	if span.IsRecording() {
		if call != nil && call.ProgressWanted() {
			ctx = withProgress(ctx, span)
		}
		if h.Content != nil {
			h.contents(span, got)
		}
	}
	return ctx, req, span
}

// rooms are lists of attributes for the start of a span.
var rooms = sync.Pool{New: func() any { return new([]attribute.KeyValue) }}

// none is a span that records nothing.
var none = oteltrace.SpanFromContext(context.Background())

// recovered stops a panic. The error handler of OpenTelemetry gets the first. It must be deferred itself.
func (h *handler) recovered(where string) {
	if v := recover(); v != nil {
		h.once.Do(func() {
			otel.Handle(fmt.Errorf("telemetry: panic in %s, perhaps of Options.Revision or a span processor: %v\n%s", where, v, debug.Stack()))
		})
	}
}

// nameOf returns the name of the tool or prompt of a request, and attrs with those of it.
func nameOf(req *mcp.Request, attrs []attribute.KeyValue) (string, []attribute.KeyValue) {
	key := keyTool
	switch req.Method {
	case "tools/call":
	case "prompts/get":
		key = keyPrompt
	default:
		return "", attrs
	}
	name, err := jsonx.Unquote(req.Param("name"))
	if err != nil {
		return "", attrs
	}
	name = text.Short(name)
	attrs = append(attrs, key.String(name))
	if key == keyTool {
		attrs = append(attrs, keyOperation.String(executeTool))
	}
	return name, attrs
}

// describe appends the attributes of a request that are known before it is served, without its content.
func (h *handler) describe(attrs []attribute.KeyValue, call *engine.Call) []attribute.KeyValue {
	switch {
	case h.kind == oteltrace.SpanKindClient:
		if h.Revision != nil {
			if r := h.Revision(); r != "" {
				attrs = append(attrs, keyRevision.String(string(r)))
			}
		}
	case call != nil:
		attrs = append(attrs, keyRevision.String(call.Peer.Revision.Name))
		if call.Msg != nil && !call.Msg.ID.IsZero() {
			attrs = append(attrs, keyRequestID.String(text.Short(call.Msg.ID.String())))
		}
		if call.Header != nil && h.Transport == "" {
			attrs = append(attrs, keyTransport.String("tcp"))
		}
		if id := call.Header.Get("Mcp-Session-Id"); id != "" {
			sum := sha256.Sum256([]byte(id))
			attrs = append(attrs, keySession.String(hex.EncodeToString(sum[:8])))
		}
		if n := call.Round(); n > 0 {
			attrs = append(attrs, keyRound.Int(n))
		}
	}
	return attrs
}

// contents sets the attributes with the content of a request.
func (h *handler) contents(span oteltrace.Span, req *mcp.Request) {
	switch req.Method {
	case "tools/call":
		if args := req.Param("arguments"); args != nil {
			span.SetAttributes(keyArguments.String(h.content(args)))
		}
	case "resources/read":
		if uri, err := jsonx.Unquote(req.Param("uri")); err == nil {
			f := h.Content.Frame(trace.Frame{Note: text.Short(uri)})
			span.SetAttributes(keyURI.String(f.Note))
		}
	}
}

// content returns JSON without its secrets.
func (h *handler) content(raw json.RawMessage) string {
	if len(raw) > maxContent {
		return fmt.Sprintf("%d bytes, more than the %d that are recorded", len(raw), maxContent)
	}
	f := h.Content.Frame(trace.Frame{Msg: raw})
	if f.Msg == nil {
		return string(f.Raw)
	}
	return string(f.Msg)
}

// withProgress returns a context that records the progress of the call as events of the span.
func withProgress(ctx context.Context, span oteltrace.Span) context.Context {
	return forward.WithNotify(ctx, func(method string, params json.RawMessage) error {
		if method == "notifications/progress" {
			var p struct {
				Progress *float64 `json:"progress"`
				Total    *float64 `json:"total"`
			}
			if jsonx.Unmarshal(params, &p) == nil && p.Progress != nil {
				attrs := []attribute.KeyValue{keyProgress.Float64(*p.Progress)}
				if p.Total != nil {
					attrs = append(attrs, keyTotal.Float64(*p.Total))
				}
				span.AddEvent(eventProgress, oteltrace.WithAttributes(attrs...))
			}
		}
		return forward.Notify(ctx, method, params)
	})
}

// end records how a request ended, and ends the span.
func (h *handler) end(ctx context.Context, span oteltrace.Span, req *mcp.Request, res mcp.Result, err error) {
	defer h.recovered("the end of a span")
	defer span.End()
	if span.IsRecording() {
		h.outcome(ctx, span, req, res, err)
	}
}

// outcome records how a request ended.
func (h *handler) outcome(ctx context.Context, span oteltrace.Span, req *mcp.Request, res mcp.Result, err error) {
	if errors.Is(err, mcp.ErrPending) {
		span.AddEvent(eventQuestion)
		return
	}
	if _, task := res.(*mcp.CreateTaskResult); task {
		span.AddEvent(eventTask)
	}
	failure, code := h.failureOf(ctx, req, res, err)
	switch code {
	case 0:
	case jsonrpc.CodeMethodNotFound:
		span.SetName("unknown method") // a caller can invent any number of them
	case jsonrpc.CodeInvalidParams:
		span.SetName(text.Short(req.Method))
	}
	if code != 0 {
		span.SetAttributes(keyStatusCode.String(strconv.Itoa(code)))
	}
	if failure != "" {
		span.SetAttributes(keyErrorType.String(failure))
		span.SetStatus(codes.Error, failure)
	}
	if h.Content != nil && err == nil && res != nil && req.Method == "tools/call" {
		span.SetAttributes(keyResult.String(h.content(res.JSON())))
	}
}

// failureOf returns error.type of a request, empty if it did not fail, and the code of its JSON-RPC
// error, zero if there is none: a client that gives up, or does not reach the server, has no answer.
func (h *handler) failureOf(ctx context.Context, req *mcp.Request, res mcp.Result, err error) (failure string, code int) {
	e := outcome.Of(ctx, res, err)
	canceled := errors.Is(e.Ctx, context.Canceled) && e.Cause != outcome.Deadline
	switch {
	case !e.Failed():
		return "", 0
	case canceled && req.Method == "subscriptions/listen":
		return "", 0 // its usual end
	case canceled && e.Cause != outcome.Lost: // Lost: the server shuts down
		return errorCanceled, 0
	case !e.Err:
		failure = errorTool
	default:
		failure, code = strconv.Itoa(e.Code), e.Code
	}
	var rpc *mcp.Error
	if e.Err && h.kind == oteltrace.SpanKindClient && (e.Ctx != nil || !errors.As(err, &rpc)) {
		failure, code = errorOther, 0
	}
	switch {
	case e.Cause == outcome.Deadline:
		failure = errorDeadline
	case code == 0 && e.Cause == outcome.Lost:
		failure = errorTransport
	}
	return failure, code
}
