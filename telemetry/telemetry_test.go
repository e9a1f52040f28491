package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/wait"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/telemetry"
	"github.com/patchbay-dev/patchbay/trace"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

type nothing struct{}

// recorder returns options whose spans are recorded.
func recorder() (*telemetry.Options, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	return &telemetry.Options{Provider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))}, spans
}

func attr(s sdktrace.ReadOnlySpan, key string) string {
	for _, a := range s.Attributes() {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

func events(s sdktrace.ReadOnlySpan) (names []string) {
	for _, e := range s.Events() {
		names = append(names, e.Name)
	}
	return names
}

const (
	callersTrace  = "0af7651916cd43dd8448eb211c80319c"
	callersSpan   = "b7ad6b7169203331"
	callersParent = "00-" + callersTrace + "-" + callersSpan + "-01"
)

func parentMeta(parent string) mcp.CallOption {
	return mcp.WithMeta(mcp.Meta{"traceparent": json.RawMessage(`"` + parent + `"`)})
}

// Each request has one span on every revision and wire, a child of the caller's (META-26-018), with
// the outcome that the caller gets.
func TestServer(t *testing.T) {
	var o *telemetry.Options
	var spans *tracetest.SpanRecorder
	var srv *mcp.Server
	newServer := func() *mcp.Server {
		o, spans = recorder()
		srv = &mcp.Server{Name: "s", Version: "1", Logger: slog.New(slog.DiscardHandler)} // it logs the panic
		srv.Use(telemetry.Server(o))
		mcp.AddTool(srv, mcp.Tool{Name: "works"}, func(ctx context.Context, _ nothing) (string, error) {
			mcp.Progress(ctx, 1, 2, "half")
			return "done", nil
		})
		mcp.AddTool(srv, mcp.Tool{Name: "fails"}, func(context.Context, nothing) (string, error) { return "", errors.New("no paper") })
		mcp.AddTool(srv, mcp.Tool{Name: "breaks"}, func(context.Context, nothing) (string, error) { return "", mcp.Errorf(7001, "broken") })
		mcp.AddTool(srv, mcp.Tool{Name: "panics"}, func(context.Context, nothing) (string, error) { panic("oops") })
		mcp.AddTool(srv, mcp.Tool{Name: "asks"}, func(ctx context.Context, _ nothing) (string, error) {
			_, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 1, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("hello")}}}})
			return "asked", err
		})
		return srv
	}
	newClient := func() *mcp.Client {
		return &mcp.Client{OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
			return &mcp.SampleResult{Role: "assistant", Model: "m", Content: []mcp.Content{mcp.Text("hi")}}, nil
		}}
	}
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		told := 0.0
		_, err := s.CallTool(t.Context(), "works", nil, parentMeta(callersParent), mcp.OnProgress(func(done, _ float64, _ string) { told = done }))
		if err != nil || told != 1 {
			t.Errorf("works: %v, progress %v", err, told)
		}
		for _, name := range []string{"fails", "breaks", "panics", "asks", "invented"} {
			if _, err := s.CallTool(t.Context(), name, nil, parentMeta(callersParent)); name == "asks" && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		s.Close()
		if err := srv.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		var got []string
		for _, span := range spans.Ended() {
			if attr(span, "mcp.method.name") != "tools/call" {
				continue
			}
			if p := span.Parent(); p.TraceID().String() != callersTrace || p.SpanID().String() != callersSpan || !p.IsRemote() {
				t.Errorf("%s: the parent is %v", span.Name(), p)
			}
			if span.SpanKind() != oteltrace.SpanKindServer || attr(span, "mcp.protocol.version") != string(s.Revision()) || attr(span, "gen_ai.operation.name") != "execute_tool" ||
				attr(span, "gen_ai.tool.call.arguments")+attr(span, "gen_ai.tool.call.result") != "" {
				t.Errorf("%s: kind %v, attributes %v", span.Name(), span.SpanKind(), span.Attributes())
			}
			if failed := attr(span, "error.type") != ""; failed != (span.Status().Code == codes.Error) {
				t.Errorf("%s: status %v, attributes %v", span.Name(), span.Status(), span.Attributes())
			}
			got = append(got, strings.TrimSpace(fmt.Sprint(span.Name(), " ", attr(span, "error.type"), attr(span, "rpc.response.status_code"), attr(span, "patchbay.round"), events(span))))
		}
		want := []string{"tools/call works [mcp.progress]", "tools/call fails tool_error[]", "tools/call breaks 70017001[]", "tools/call panics -32603-32603[]"}
		if s.Revision() == mcp.V2026_07_28 {
			want = append(want, "tools/call asks [mcp.question]", "tools/call asks 1[]")
		} else {
			want = append(want, "tools/call asks []")
		}
		want = append(want, "tools/call -32602-32602[]")
		if !slices.Equal(got, want) {
			t.Errorf("the spans are\n%q, want\n%q", got, want)
		}
		if a, b := len(spans.Started()), len(spans.Ended()); a != b {
			t.Errorf("%d spans started, %d ended", a, b)
		}
	})
}

// serve serves a handler over HTTP with spans, and returns its URL.
func serve(t *testing.T, h mcp.Handler, o *telemetry.Options, name string) string {
	srv := &mcp.Server{Name: name, Version: "1", Handler: h}
	srv.Use(telemetry.Server(o))
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	return web.URL
}

// The spans of a call through two gateways form one tree, in which each is the only child of the
// one before, whichever revision each hop speaks.
func TestTwoGateways(t *testing.T) {
	for _, revision := range []mcp.Revision{mcp.V2025_06_18, mcp.V2026_07_28} {
		t.Run(string(revision), func(t *testing.T) {
			o, spans := recorder()
			tools := &mcp.Server{Name: "tools", Version: "1"}
			tools.Use(telemetry.Server(o))
			mcp.AddTool(tools, mcp.Tool{Name: "work"}, func(ctx context.Context, _ nothing) (string, error) {
				_, span := o.Provider.Tracer("work").Start(ctx, "inside")
				span.End()
				return "done", nil
			})
			web := httptest.NewServer(tools)
			t.Cleanup(web.Close)
			url := web.URL
			for _, name := range []string{"inner", "outer"} {
				s, err := (&mcp.Client{Name: name, Revisions: []mcp.Revision{revision}}).Dial(t.Context(), url)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				g := &gateway.Gateway{Name: name, Middleware: func(server string) mcp.Middleware {
					return telemetry.Client(&telemetry.Options{Provider: o.Provider, Server: server, Transport: "tcp", Address: "127.0.0.1", Port: 80, Revision: s.Revision})
				}}
				if err := g.Set(name, s); err != nil {
					t.Fatal(err)
				}
				url = serve(t, g, o, name)
			}
			client := &mcp.Client{Name: "c", Revisions: []mcp.Revision{revision}}
			client.Use(telemetry.Client(o))
			s, err := client.Dial(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			before := len(spans.Ended())
			ctx, root := o.Provider.Tracer("test").Start(t.Context(), "root")
			res, err := s.CallTool(ctx, "outer_inner_work", nil)
			if err != nil || res.Text() != "done" {
				t.Fatalf("work = %v, %v", res, err)
			}
			root.End()
			at := root.SpanContext()
			var names []string
			for {
				var children []sdktrace.ReadOnlySpan
				for _, span := range spans.Ended()[before:] {
					if span.Parent().SpanID() == at.SpanID() && span.SpanContext().TraceID() == root.SpanContext().TraceID() {
						children = append(children, span)
					}
				}
				// A gateway may list the tools of a server in a call.
				children = slices.DeleteFunc(children, func(s sdktrace.ReadOnlySpan) bool { return strings.HasSuffix(s.Name(), "/list") })
				if len(children) != 1 {
					if len(children) > 1 {
						t.Errorf("%d children of %v", len(children), names)
					}
					break
				}
				at = children[0].SpanContext()
				names = append(names, fmt.Sprint(children[0].SpanKind(), " ", children[0].Name()))
				if server := attr(children[0], "patchbay.server"); server != "" && attr(children[0], "mcp.protocol.version") != string(revision) {
					t.Errorf("the attributes in front of %s are %v", server, children[0].Attributes())
				}
			}
			want := []string{
				"client tools/call outer_inner_work", "server tools/call outer_inner_work", "client tools/call inner_work",
				"server tools/call inner_work", "client tools/call work", "server tools/call work", "internal inside",
			}
			if !slices.Equal(names, want) {
				t.Errorf("the spans below the root are\n%q, want\n%q", names, want)
				for _, span := range spans.Ended() {
					t.Log(span.Name(), span.SpanKind(), span.SpanContext().SpanID(), span.Parent().SpanID())
				}
			}
		})
	}
}

// handle serves one call of a tool with what a transport would have put into the context.
func handle(t *testing.T, o *telemetry.Options, header http.Header, params string) {
	t.Helper()
	srv := &mcp.Server{Name: "s", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "login"}, func(_ context.Context, in struct {
		User     string `json:"user,omitzero"`
		Password string `json:"password,omitzero"`
		Text     string `json:"text,omitzero"`
	}) (string, error) {
		return "token=abcdef123456 for " + in.User, nil
	})
	srv.Use(telemetry.Server(o))
	web := httptest.NewServer(srv)
	defer web.Close()
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":` + params + `}`
	req, err := http.NewRequest(http.MethodPost, web.URL, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header.Clone()
	for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "login"} {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 {
		t.Fatalf("status %d", res.StatusCode)
	}
	http.DefaultClient.CloseIdleConnections()
}

// paramsWith returns the params of a call with arguments and members of _meta.
func paramsWith(args, meta string) string {
	return `{"name":"login","arguments":` + args + `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}` + meta + `}}`
}

// The parent comes from _meta and then from HTTP, whose span is a link if it is not the parent. A
// parent that does not have the W3C form is ignored, and fails no call (META-26-018).
func TestParents(t *testing.T) {
	const inHTTP = "00-11111111111111111111111111111111-2222222222222222-01"
	for name, test := range map[string]struct{ meta, header, parent, link string }{
		"meta":          {meta: `"` + callersParent + `"`, parent: callersSpan},
		"HTTP":          {header: inHTTP, parent: "2222222222222222"},
		"both":          {meta: `"` + callersParent + `"`, header: inHTTP, parent: callersSpan, link: "2222222222222222"},
		"neither":       {parent: "0000000000000000"},
		"a number":      {meta: `5`, parent: "0000000000000000"},
		"no form":       {meta: `"hello"`, parent: "0000000000000000"},
		"zeros":         {meta: `"00-00000000000000000000000000000000-b7ad6b7169203331-01"`, parent: "0000000000000000"},
		"a bad header":  {header: "hello", parent: "0000000000000000"},
		"only HTTP fit": {meta: `"hello"`, header: inHTTP, parent: "2222222222222222"},
	} {
		t.Run(name, func(t *testing.T) {
			o, spans := recorder()
			meta, header := "", http.Header{}
			if test.meta != "" {
				meta = `,"traceparent":` + test.meta + `,"tracestate":"a=b"`
			}
			if test.header != "" {
				header.Set("Traceparent", test.header)
			}
			handle(t, o, header, paramsWith(`{}`, meta))
			ended := spans.Ended()
			if len(ended) != 1 {
				t.Fatalf("%d spans", len(ended))
			}
			span, link := ended[0], ""
			for _, l := range span.Links() {
				link += l.SpanContext.SpanID().String()
			}
			if got := span.Parent().SpanID().String(); got != test.parent || link != test.link {
				t.Errorf("parent %s, link %q; want %s, %q", got, link, test.parent, test.link)
			}
			if attr(span, "network.transport") != "tcp" || attr(span, "jsonrpc.request.id") != "7" {
				t.Errorf("attributes %v", span.Attributes())
			}
		})
	}
}

// Arguments and results are recorded only on request, without secrets, and not if they are long.
func TestContent(t *testing.T) {
	args := `{"user":"ada","password":"hunter22"}`
	o, spans := recorder()
	handle(t, o, http.Header{}, paramsWith(args, ""))
	o.Content = trace.NewRedactor(nil)
	handle(t, o, http.Header{}, paramsWith(args, ""))
	handle(t, o, http.Header{}, paramsWith(`{"text":"`+strings.Repeat("x", 20<<10)+`"}`, ""))
	ended := spans.Ended()
	if len(ended) != 3 {
		t.Fatalf("%d spans", len(ended))
	}
	if text := fmt.Sprint(ended[0].Attributes()); strings.Contains(text, "ada") || strings.Contains(text, "hunter") {
		t.Errorf("recorded without Content: %s", text)
	}
	if got, want := attr(ended[1], "gen_ai.tool.call.arguments"), `{"user":"ada","password":"[redacted]"}`; got != want {
		t.Errorf("arguments %s, want %s", got, want)
	}
	if got := attr(ended[1], "gen_ai.tool.call.result"); !strings.Contains(got, "for ada") {
		t.Errorf("result %s", got)
	}
	if got := attr(ended[2], "gen_ai.tool.call.arguments"); !strings.HasPrefix(got, "20491 bytes, more than") {
		t.Errorf("long arguments: %.100s", got)
	}
}

// A request that waits in a gateway has a span with that time below its own.
func TestWait(t *testing.T) { synctest.Test(t, testWait) }

func testWait(t *testing.T) {
	o, spans := recorder()
	h := telemetry.Client(o)(mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		wait.From(ctx).Since(time.Now().Add(-3 * time.Second))
		return mcp.RawResult(`{}`), nil
	}))
	ctx, _ := wait.With(t.Context())
	for range 2 {
		if _, err := h.Handle(ctx, &mcp.Request{Method: "ping"}); err != nil {
			t.Fatal(err)
		}
	}
	ended := spans.Ended()
	if len(ended) != 4 {
		t.Fatalf("%d spans, want 2 with a wait each", len(ended))
	}
	for i, s := range []int{0, 2} {
		waits, request := ended[s], ended[s+1]
		if took := waits.EndTime().Sub(waits.StartTime()); waits.Name() != "wait" || waits.Parent().SpanID() != request.SpanContext().SpanID() || took != 3*time.Second {
			t.Errorf("request %d: span %q below %s of %v; want a wait of 3s below %s", i, waits.Name(), waits.Parent().SpanID(), took, request.SpanContext().SpanID())
		}
	}
}

// A client without a provider sends the trace context of its caller on, and changes nothing else.
func TestClientWithoutProvider(t *testing.T) {
	var got []string
	next := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		got = append(got, string(req.Params))
		return mcp.RawResult(`{}`), nil
	})
	h := telemetry.Client(nil)(next)
	trace, _ := oteltrace.TraceIDFromHex(callersTrace)
	span, _ := oteltrace.SpanIDFromHex(callersSpan)
	config := oteltrace.SpanContextConfig{TraceID: trace, SpanID: span, TraceFlags: oteltrace.FlagsSampled}
	ctx := oteltrace.ContextWithSpanContext(t.Context(), oteltrace.NewSpanContext(config))
	config.TraceState, _ = oteltrace.ParseTraceState("k=v")
	stated := oteltrace.ContextWithSpanContext(t.Context(), oteltrace.NewSpanContext(config))
	for _, test := range []struct {
		ctx          context.Context
		params, want string
	}{
		{t.Context(), ` { } `, ` { } `},
		{ctx, ``, `{"_meta":{"traceparent":"` + callersParent + `"}}`},
		{ctx, `{"_meta":{"a":1,"traceparent":"old","tracestate":"x=y"},"name":"n"}`, `{"_meta":{"a":1,"traceparent":"` + callersParent + `"},"name":"n"}`},
		{ctx, `{"_meta":{"tracestate":"x=y"}}`, `{"_meta":{"traceparent":"` + callersParent + `"}}`},
		{stated, `{"_meta":{"a":1,"tracestate":"x=y"},"name":"n"}`, `{"_meta":{"a":1,"tracestate":"k=v","traceparent":"` + callersParent + `"},"name":"n"}`},
		{stated, `{}`, `{"_meta":{"tracestate":"k=v","traceparent":"` + callersParent + `"}}`},
		{ctx, `{"_meta":5}`, `{"_meta":5}`},
		{ctx, `[]`, `[]`},
	} {
		got = nil
		if _, err := h.Handle(test.ctx, &mcp.Request{Method: "tools/list", Params: json.RawMessage(test.params)}); err != nil || len(got) != 1 || got[0] != test.want {
			t.Errorf("%s: %q, %v; want %s", test.params, got, err, test.want)
		}
	}
}

// Names from callers are bounded, and a panic of a handler ends the span.
func TestBounds(t *testing.T) {
	o, spans := recorder()
	code := -32601
	h := telemetry.Server(o)(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		if code == 0 {
			panic("oops")
		}
		return nil, mcp.Errorf(code, "no")
	}))
	long := strings.Repeat("é", 5000)
	_, _ = h.Handle(t.Context(), &mcp.Request{Method: long})
	code = -32602
	_, _ = h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"` + long + `"}`)})
	code = 0
	func() {
		defer func() { recover() }()
		_, _ = h.Handle(t.Context(), &mcp.Request{Method: "ping"})
	}()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	code = -32603
	_, _ = h.Handle(canceled, &mcp.Request{Method: "ping"})
	_, _ = h.Handle(canceled, &mcp.Request{Method: "subscriptions/listen"})
	var names []string
	for _, span := range spans.Ended() {
		names = append(names, strings.TrimSpace(span.Name()+" "+attr(span, "error.type")))
		for _, a := range span.Attributes() {
			if a.Value.Type() == attribute.STRING && len(a.Value.AsString()) > 210 {
				t.Errorf("%s has %d bytes", a.Key, len(a.Value.AsString()))
			}
		}
	}
	want := []string{"unknown method -32601", "tools/call -32602", "ping panic", "ping cancelled", "subscriptions/listen"}
	if !slices.Equal(names, want) {
		t.Errorf("the spans are %q, want %q", names, want)
	}
}

// Records in a span have its ids, outside of all groups; others are as before.
func TestLogHandler(t *testing.T) {
	o, _ := recorder()
	ctx, span := o.Provider.Tracer("test").Start(t.Context(), "s")
	ids := fmt.Sprintf(`"trace_id":"%s","span_id":"%s"`, span.SpanContext().TraceID(), span.SpanContext().SpanID())
	var out bytes.Buffer
	plain := slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	l := slog.New(telemetry.LogHandler(plain)).With("a", 1)
	deep := l.WithGroup("g").With("b", 2)
	for _, test := range []struct {
		log  func()
		want string
	}{
		{func() { l.InfoContext(ctx, "m", "c", 3) }, `{"level":"INFO","msg":"m","a":1,"c":3,` + ids + `}`},
		{func() { deep.InfoContext(ctx, "m", "c", 3) }, `{"level":"INFO","msg":"m","a":1,` + ids + `,"g":{"b":2,"c":3}}`},
		{func() { deep.Info("m", "c", 3) }, `{"level":"INFO","msg":"m","a":1,"g":{"b":2,"c":3}}`},
		{func() { l.WithGroup("").Info("m") }, `{"level":"INFO","msg":"m","a":1}`},
		{func() { l.DebugContext(ctx, "m") }, ``},
	} {
		out.Reset()
		if test.log(); strings.TrimSpace(out.String()) != test.want {
			t.Errorf("got %swant %s", out.String(), test.want)
		}
	}
}
