package otlp

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"
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

// wantSpans is the request of TestWriteSpans, with ATTRS for its attributes.
const wantSpans = `{"resourceSpans":[
{"resource":{},"scopeSpans":[{"scope":{"name":""},"spans":[
 {"traceId":"00000000000000000000000000000000","spanId":"0000000000000000","flags":256,"name":"","kind":0,"startTimeUnixNano":"0","endTimeUnixNano":"0","status":{}},
 {"traceId":"00000000000000000000000000000000","spanId":"0000000000000000","flags":256,"name":"ok","kind":0,"startTimeUnixNano":"0","endTimeUnixNano":"0","status":{"code":1}}]}]},
{"resource":{"attributes":ATTRS},"scopeSpans":[{"scope":{"name":"scope","version":"1","attributes":ATTRS},"spans":[
 {"traceId":"01000000000000000000000000000000","spanId":"0200000000000000","traceState":"a=b","parentSpanId":"0200000000000000","flags":769,"name":"<a>","kind":2,
  "startTimeUnixNano":"1000000002","endTimeUnixNano":"3000000004","attributes":ATTRS,"droppedAttributesCount":1,
  "events":[{"timeUnixNano":"2000000000","name":"e","attributes":ATTRS,"droppedAttributesCount":1}],"droppedEventsCount":2,
  "links":[{"traceId":"01000000000000000000000000000000","spanId":"0200000000000000","traceState":"a=b","attributes":ATTRS,"flags":769}],"droppedLinksCount":3,
  "status":{"message":"bad \"end\"","code":2}}],"schemaUrl":"https://example.com/scope"}],"schemaUrl":"https://example.com/schema"}]}`

const wantAttributes = `[{"key":"b","value":{"boolValue":true}},{"key":"bs","value":{"arrayValue":{"values":[{"boolValue":true},{"boolValue":false}]}}},
 {"key":"by","value":{"bytesValue":"AQI="}},{"key":"empty","value":{}},{"key":"f","value":{"doubleValue":"-Infinity"}},
 {"key":"fs","value":{"arrayValue":{"values":[{"doubleValue":1.5},{"doubleValue":"NaN"},{"doubleValue":1e+30}]}}},{"key":"m","value":{"kvlistValue":{"values":[{"key":"k","value":{"intValue":"1"}}]}}},
 {"key":"mixed","value":{"arrayValue":{"values":[{"boolValue":false},{"stringValue":"t"}]}}},{"key":"n","value":{"intValue":"-1"}},
 {"key":"none","value":{"arrayValue":{"values":[]}}},{"key":"s","value":{"stringValue":"a \"<\u2028\ufffd\u0001é"}},{"key":"ss","value":{"arrayValue":{"values":[{"stringValue":"x"},{"stringValue":"<"}]}}}]`

// A request has all that spans have, in the JSON form of OTLP.
func TestWriteSpans(t *testing.T) {
	state, err := trace.ParseTraceState("a=b")
	if err != nil {
		t.Fatal(err)
	}
	own := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: true})
	set := attribute.NewSet(
		attribute.String("s", "a \"<\u2028\xff\x01é"), attribute.Int("n", -1), attribute.Bool("b", true), attribute.Float64("f", math.Inf(-1)),
		attribute.StringSlice("ss", []string{"x", "<"}), attribute.Int64Slice("none", nil), attribute.BoolSlice("bs", []bool{true, false}),
		attribute.Float64Slice("fs", []float64{1.5, math.NaN(), 1e30}), attribute.ByteSlice("by", []byte{1, 2}),
		attribute.Slice("mixed", attribute.BoolValue(false), attribute.StringValue("t")), attribute.Map("m", attribute.Int("k", 1)), attribute.KeyValue{Key: "empty"},
	)
	attrs := set.ToSlice()
	all := tracetest.SpanStubs{
		{},
		{Name: "<a>", SpanContext: own, Parent: own, SpanKind: trace.SpanKindServer, StartTime: time.Unix(1, 2), EndTime: time.Unix(3, 4), Attributes: attrs,
			Events: []sdktrace.Event{{Name: "e", Attributes: attrs, Time: time.Unix(2, 0), DroppedAttributeCount: 1}}, Links: []sdktrace.Link{{SpanContext: own, Attributes: attrs}},
			Status: sdktrace.Status{Code: codes.Error, Description: "bad \"end\""}, DroppedAttributes: 1, DroppedEvents: 2, DroppedLinks: 3,
			Resource:             resource.NewWithAttributes("https://example.com/schema", attrs...),
			InstrumentationScope: instrumentation.Scope{Name: "scope", Version: "1", SchemaURL: "https://example.com/scope", Attributes: set}},
		{Name: "ok", Status: sdktrace.Status{Code: codes.Ok}},
	}.Snapshots()
	var raw bytes.Buffer
	if err := writeSpans(&raw, all); err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := json.Unmarshal(raw.Bytes(), &got); err != nil {
		t.Fatalf("%v in %s", err, &raw)
	}
	if err := json.Unmarshal([]byte(strings.ReplaceAll(wantSpans, "ATTRS", wantAttributes)), &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n%s\nwant\n%s", &raw, wantSpans)
	}
}

// A request of many pieces has every span once.
func TestWriteManySpans(t *testing.T) {
	const n = 1000
	var stubs tracetest.SpanStubs
	for i := range n {
		stubs = append(stubs, tracetest.SpanStub{Name: strconv.Itoa(i), Attributes: []attribute.KeyValue{attribute.String("long", strings.Repeat("x", 300))}})
	}
	var raw bytes.Buffer
	if err := writeSpans(&raw, stubs.Snapshots()); err != nil {
		t.Fatal(err)
	}
	if raw.Len() < 4*pieceBytes {
		t.Fatalf("%d bytes are too few for several pieces", raw.Len())
	}
	var req struct {
		ResourceSpans []struct {
			ScopeSpans []struct{ Spans []struct{ Name string } }
		}
	}
	if err := json.Unmarshal(raw.Bytes(), &req); err != nil {
		t.Fatal(err)
	}
	spans := req.ResourceSpans[0].ScopeSpans[0].Spans
	for i, s := range spans {
		if s.Name != strconv.Itoa(i) {
			t.Fatalf("span %d is %q", i, s.Name)
		}
	}
	if len(spans) != n {
		t.Errorf("%d spans, want %d", len(spans), n)
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
		if err := writeSpans(io.Discard, spans); err != nil {
			b.Fatal(err)
		}
	}
}
