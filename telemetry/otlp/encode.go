package otlp

import (
	"encoding/base64"
	"encoding/hex"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// The JSON form of OTLP has ids in hex, 64-bit numbers as strings, enumerations as numbers, and names in
// lowerCamelCase.

// pieceBytes is how much of a request is encoded before other goroutines get the processor: a whole one takes
// milliseconds, for which the calls of a busy gateway would wait.
const pieceBytes = 64 << 10

// spanBytes is the number of bytes that a span of a call usually needs.
const spanBytes = 900

// writeSpans writes a request with spans, by resource and scope.
func writeSpans(w io.Writer, spans []sdktrace.ReadOnlySpan) (err error) {
	b := make([]byte, 0, min(pieceBytes, spanBytes*len(spans))+2*spanBytes)
	b = append(b, `{"resourceSpans":[`...)
	for i, g := range groups(spans) {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendResource(append(b, `{"resource":`...), g.resource)
		b = appendScope(append(b, `,"scopeSpans":[{"scope":`...), g.scope)
		b = append(b, `,"spans":[`...)
		for i, s := range g.spans {
			if i > 0 {
				b = append(b, ',')
			}
			if len(b) >= pieceBytes {
				if _, err = w.Write(b); err != nil {
					return err
				}
				b = b[:0]
				runtime.Gosched()
			}
			b = appendSpan(b, s)
		}
		b = append(appendText(append(b, ']'), `,"schemaUrl":`, g.scope.SchemaURL), '}', ']')
		b = append(appendText(b, `,"schemaUrl":`, g.resource.SchemaURL()), '}')
	}
	_, err = w.Write(append(b, ']', '}'))
	return err
}

// group is spans of one resource and scope.
type group struct {
	resource *resource.Resource
	scope    instrumentation.Scope
	spans    []sdktrace.ReadOnlySpan
}

func groups(spans []sdktrace.ReadOnlySpan) (list []*group) {
	for _, s := range spans {
		resource, scope := s.Resource(), s.InstrumentationScope()
		i := slices.IndexFunc(list, func(g *group) bool { return g.resource == resource && g.scope == scope })
		if i < 0 {
			i, list = len(list), append(list, &group{resource: resource, scope: scope})
		}
		list[i].spans = append(list[i].spans, s)
	}
	return list
}

func appendResource(b []byte, r *resource.Resource) []byte {
	return append(appendAttributes(append(b, '{'), r.Attributes()), '}')
}

func appendScope(b []byte, s instrumentation.Scope) []byte {
	b = jsonx.AppendString(append(b, `{"name":`...), s.Name)
	b = appendText(b, `,"version":`, s.Version)
	return append(appendAttributes(b, s.Attributes.ToSlice()), '}')
}

func appendSpan(b []byte, s sdktrace.ReadOnlySpan) []byte {
	own, parent, status := s.SpanContext(), s.Parent(), s.Status()
	b = appendContext(append(b, '{'), own)
	if id := parent.SpanID(); id.IsValid() {
		b = append(hex.AppendEncode(append(b, `,"parentSpanId":"`...), id[:]), '"')
	}
	b = appendCount(b, `,"flags":`, flags(own.TraceFlags(), parent.IsRemote()))
	b = jsonx.AppendString(append(b, `,"name":`...), s.Name())
	b = strconv.AppendInt(append(b, `,"kind":`...), int64(s.SpanKind()), 10)
	b = appendTime(b, `,"startTimeUnixNano":"`, s.StartTime())
	b = appendTime(b, `,"endTimeUnixNano":"`, s.EndTime())
	b = appendAttributes(b, s.Attributes())
	b = appendCount(b, `,"droppedAttributesCount":`, s.DroppedAttributes())
	b = appendMembers(b, `,"events":[`, s.Events(), func(b []byte, e sdktrace.Event) []byte {
		b = jsonx.AppendString(append(b, `{"name":`...), e.Name)
		b = appendTime(b, `,"timeUnixNano":"`, e.Time)
		return append(appendCount(appendAttributes(b, e.Attributes), `,"droppedAttributesCount":`, e.DroppedAttributeCount), '}')
	})
	b = appendCount(b, `,"droppedEventsCount":`, s.DroppedEvents())
	b = appendMembers(b, `,"links":[`, s.Links(), func(b []byte, l sdktrace.Link) []byte {
		b = appendContext(append(b, '{'), l.SpanContext)
		b = appendCount(b, `,"flags":`, flags(l.SpanContext.TraceFlags(), l.SpanContext.IsRemote()))
		return append(appendCount(appendAttributes(b, l.Attributes), `,"droppedAttributesCount":`, l.DroppedAttributeCount), '}')
	})
	b = appendCount(b, `,"droppedLinksCount":`, s.DroppedLinks())
	switch status.Code {
	case codes.Ok:
		b = append(b, `,"status":{"code":1`...)
	case codes.Error:
		b = append(b, `,"status":{"code":2`...)
	default:
		return append(b, `,"status":{}}`...)
	}
	return append(appendText(b, `,"message":`, status.Description), '}', '}')
}

// appendContext appends the ids and the state of a span.
func appendContext(b []byte, c trace.SpanContext) []byte {
	id, span := c.TraceID(), c.SpanID()
	b = hex.AppendEncode(append(b, `"traceId":"`...), id[:])
	b = append(hex.AppendEncode(append(b, `","spanId":"`...), span[:]), '"')
	return appendText(b, `,"traceState":`, c.TraceState().String())
}

// flags returns the flags of W3C, and whether a context came from another process.
func flags(f trace.TraceFlags, remote bool) int {
	const known, isRemote = 0x100, 0x200
	out := int(f) | known
	if remote {
		out |= isRemote
	}
	return out
}

func appendTime(b []byte, member string, t time.Time) []byte {
	return append(strconv.AppendUint(append(b, member...), nanos(t), 10), '"')
}

func nanos(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(t.UnixNano(), 0))
}

// appendAttributes appends the member "attributes" unless there are none.
func appendAttributes(b []byte, list []attribute.KeyValue) []byte {
	if len(list) == 0 {
		return b
	}
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return appendKeyValues(append(b, `"attributes":`...), list)
}

func appendKeyValues(b []byte, list []attribute.KeyValue) []byte {
	return appendList(append(b, '['), list, func(b []byte, a attribute.KeyValue) []byte {
		b = jsonx.AppendString(append(b, `{"key":`...), string(a.Key))
		return append(appendValue(append(b, `,"value":`...), a.Value), '}')
	})
}

func appendValue(b []byte, v attribute.Value) []byte {
	switch v.Type() {
	case attribute.STRING:
		b = jsonx.AppendString(append(b, `{"stringValue":`...), v.AsString())
	case attribute.INT64:
		b = append(strconv.AppendInt(append(b, `{"intValue":"`...), v.AsInt64(), 10), '"')
	case attribute.BOOL:
		b = strconv.AppendBool(append(b, `{"boolValue":`...), v.AsBool())
	case attribute.FLOAT64:
		b = appendDouble(append(b, `{"doubleValue":`...), v.AsFloat64())
	case attribute.BYTESLICE:
		b = append(base64.StdEncoding.AppendEncode(append(b, `{"bytesValue":"`...), v.AsByteSlice()), '"')
	case attribute.BOOLSLICE:
		return appendArray(b, v.AsBoolSlice(), attribute.BoolValue)
	case attribute.INT64SLICE:
		return appendArray(b, v.AsInt64Slice(), attribute.Int64Value)
	case attribute.FLOAT64SLICE:
		return appendArray(b, v.AsFloat64Slice(), attribute.Float64Value)
	case attribute.STRINGSLICE:
		return appendArray(b, v.AsStringSlice(), attribute.StringValue)
	case attribute.SLICE:
		return appendArray(b, v.AsSlice(), func(v attribute.Value) attribute.Value { return v })
	case attribute.MAP:
		b = append(appendKeyValues(append(b, `{"kvlistValue":{"values":`...), v.AsMap()), '}')
	default: // EMPTY
		b = append(b, '{')
	}
	return append(b, '}')
}

func appendArray[T any](b []byte, list []T, value func(T) attribute.Value) []byte {
	b = appendList(append(b, `{"arrayValue":{"values":[`...), list, func(b []byte, v T) []byte { return appendValue(b, value(v)) })
	return append(b, '}', '}')
}

// appendDouble appends a number that may be infinite or none.
func appendDouble(b []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(b, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(b, `"-Infinity"`...)
	}
	return strconv.AppendFloat(b, f, 'g', -1, 64)
}

// appendMembers appends a list behind its name, unless it is empty.
func appendMembers[T any](b []byte, name string, list []T, one func([]byte, T) []byte) []byte {
	if len(list) == 0 {
		return b
	}
	return appendList(append(b, name...), list, one)
}

// appendList appends the rest of a list behind its bracket.
func appendList[T any](b []byte, list []T, one func([]byte, T) []byte) []byte {
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, v)
	}
	return append(b, ']')
}

// appendText appends a member unless it is empty.
func appendText(b []byte, member, value string) []byte {
	if value == "" {
		return b
	}
	return jsonx.AppendString(append(b, member...), value)
}

// appendCount appends a member unless it is zero.
func appendCount(b []byte, member string, n int) []byte {
	if n == 0 {
		return b
	}
	return strconv.AppendInt(append(b, member...), int64(n), 10)
}
