package otlp

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// A request has the same JSON as that of package encoding/json, whatever the spans have.
func TestEncodeAsJSON(t *testing.T) {
	state, err := trace.ParseTraceState("a=b")
	if err != nil {
		t.Fatal(err)
	}
	own := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true})
	attrs := []attribute.KeyValue{
		attribute.String("s", "a \"<\u2028\xff\x01é"), attribute.Int("n", -1), attribute.Bool("b", true), attribute.Float64("f", math.Inf(-1)),
		attribute.StringSlice("ss", []string{"x", "<"}), attribute.Int64Slice("ns", nil), {Key: "empty"},
	}
	all := tracetest.SpanStubs{
		{},
		{Name: "<a>", SpanContext: own, Parent: own, SpanKind: trace.SpanKindServer, StartTime: time.Unix(1, 2), EndTime: time.Unix(3, 4), Attributes: attrs,
			Events: []sdktrace.Event{{Name: "e", Attributes: attrs, Time: time.Unix(2, 0), DroppedAttributeCount: 1}}, Links: []sdktrace.Link{{SpanContext: own, Attributes: attrs}},
			Status: sdktrace.Status{Code: codes.Error, Description: "bad \"end\""}, DroppedAttributes: 1, DroppedEvents: 2, DroppedLinks: 3,
			Resource:             resource.NewWithAttributes("https://example.com/schema", attrs...),
			InstrumentationScope: instrumentation.Scope{Name: "scope", Version: "1", SchemaURL: "https://example.com/scope", Attributes: attribute.NewSet(attrs...)}},
		{Name: "ok", Status: sdktrace.Status{Code: codes.Ok}},
	}.Snapshots()
	for n := range len(all) + 1 {
		raw, err := encodeSpans(all[:n])
		if err != nil {
			t.Fatal(err)
		}
		plain, err := json.Marshal(requestOf(all[:n]))
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		if err := json.Unmarshal(plain, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d spans:\n%s\nwant\n%s", n, raw, plain)
		}
	}
}

// BenchmarkSpans encodes a batch of 512 spans of a gateway.
func BenchmarkSpans(b *testing.B) {
	spans := make([]sdktrace.ReadOnlySpan, 512)
	for i := range spans {
		own := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1, byte(i)}, SpanID: trace.SpanID{1, byte(i)}, TraceFlags: trace.FlagsSampled})
		spans[i] = tracetest.SpanStub{Name: "tools/call files__read", SpanContext: own, Parent: own, SpanKind: trace.SpanKindClient,
			StartTime: time.Unix(1_800_000_000, 0), EndTime: time.Unix(1_800_000_001, 0),
			Attributes: []attribute.KeyValue{attribute.String("gen_ai.tool.name", "files__read"), attribute.String("gen_ai.operation.name", "execute_tool"),
				attribute.String("mcp.method.name", "tools/call"), attribute.String("mcp.protocol.version", "2026-07-28"),
				attribute.String("jsonrpc.request.id", "1234"), attribute.String("network.transport", "pipe"), attribute.Int("server.port", 8080)}}.Snapshot()
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := encodeSpans(spans); err != nil {
			b.Fatal(err)
		}
	}
}
