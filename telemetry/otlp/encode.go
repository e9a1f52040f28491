package otlp

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// The JSON form of OTLP: ids in hex, 64-bit numbers as strings, enumerations as numbers, names in
// lowerCamelCase.
type (
	traceRequest struct {
		ResourceSpans []*resourceSpans `json:"resourceSpans"`
	}
	resourceSpans struct {
		Resource   resourceJSON  `json:"resource"`
		ScopeSpans []*scopeSpans `json:"scopeSpans"`
		SchemaURL  string        `json:"schemaUrl,omitempty"`
	}
	scopeSpans struct {
		Scope     scopeJSON  `json:"scope"`
		Spans     []spanJSON `json:"spans"`
		SchemaURL string     `json:"schemaUrl,omitempty"`
	}
	resourceJSON struct {
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	scopeJSON struct {
		Name       string     `json:"name,omitempty"`
		Version    string     `json:"version,omitempty"`
		Attributes []keyValue `json:"attributes,omitempty"`
	}
	spanJSON struct {
		TraceID           string      `json:"traceId"`
		SpanID            string      `json:"spanId"`
		TraceState        string      `json:"traceState,omitempty"`
		ParentSpanID      string      `json:"parentSpanId,omitempty"`
		Flags             uint32      `json:"flags,omitempty"`
		Name              string      `json:"name"`
		Kind              int         `json:"kind"`
		Start             uint64      `json:"startTimeUnixNano,string"`
		End               uint64      `json:"endTimeUnixNano,string"`
		Attributes        []keyValue  `json:"attributes,omitempty"`
		DroppedAttributes int         `json:"droppedAttributesCount,omitempty"`
		Events            []eventJSON `json:"events,omitempty"`
		DroppedEvents     int         `json:"droppedEventsCount,omitempty"`
		Links             []linkJSON  `json:"links,omitempty"`
		DroppedLinks      int         `json:"droppedLinksCount,omitempty"`
		Status            statusJSON  `json:"status"`
	}
	eventJSON struct {
		Time              uint64     `json:"timeUnixNano,string"`
		Name              string     `json:"name"`
		Attributes        []keyValue `json:"attributes,omitempty"`
		DroppedAttributes int        `json:"droppedAttributesCount,omitempty"`
	}
	linkJSON struct {
		TraceID           string     `json:"traceId"`
		SpanID            string     `json:"spanId"`
		TraceState        string     `json:"traceState,omitempty"`
		Attributes        []keyValue `json:"attributes,omitempty"`
		DroppedAttributes int        `json:"droppedAttributesCount,omitempty"`
		Flags             uint32     `json:"flags,omitempty"`
	}
	statusJSON struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value any    `json:"value"` // one of the types below
	}
	stringValue struct {
		V string `json:"stringValue"`
	}
	boolValue struct {
		V bool `json:"boolValue"`
	}
	intValue struct {
		V int64 `json:"intValue,string"`
	}
	doubleValue struct {
		V double `json:"doubleValue"`
	}
	bytesValue struct {
		V string `json:"bytesValue"`
	}
	arrayValue struct {
		V struct {
			Values []any `json:"values"`
		} `json:"arrayValue"`
	}
	mapValue struct {
		V struct {
			Values []keyValue `json:"values"`
		} `json:"kvlistValue"`
	}
)

// double is a number that may be infinite or none.
type double float64

// MarshalJSON implements [json.Marshaler].
func (d double) MarshalJSON() ([]byte, error) {
	switch f := float64(d); {
	case math.IsNaN(f):
		return []byte(`"NaN"`), nil
	case math.IsInf(f, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return json.Marshal(f)
	}
}

// unsigned is a 64-bit number in a list.
type unsigned uint64

// MarshalJSON implements [json.Marshaler].
func (u unsigned) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendUint([]byte(`"`), uint64(u), 10), '"'), nil
}

// encodeSpans returns the body of a request with spans.
func encodeSpans(spans []sdktrace.ReadOnlySpan) ([]byte, error) {
	return requestOf(spans).encode()
}

// requestOf returns a request with spans, by resource and scope.
func requestOf(spans []sdktrace.ReadOnlySpan) *traceRequest {
	type group struct {
		resource attribute.Distinct
		scope    instrumentation.Scope
	}
	var req traceRequest
	resources := map[attribute.Distinct]*resourceSpans{}
	scopes := map[group]*scopeSpans{}
	for _, s := range spans {
		id := s.Resource().Equivalent()
		rs := resources[id]
		if rs == nil {
			rs = &resourceSpans{Resource: encodeResource(s.Resource()), SchemaURL: s.Resource().SchemaURL()}
			resources[id] = rs
			req.ResourceSpans = append(req.ResourceSpans, rs)
		}
		scope := s.InstrumentationScope()
		ss := scopes[group{id, scope}]
		if ss == nil {
			ss = &scopeSpans{Scope: scopeJSON{scope.Name, scope.Version, encodeAttributes(scope.Attributes.ToSlice())}, SchemaURL: scope.SchemaURL}
			scopes[group{id, scope}] = ss
			rs.ScopeSpans = append(rs.ScopeSpans, ss)
		}
		ss.Spans = append(ss.Spans, encodeSpan(s))
	}
	return &req
}

func encodeSpan(s sdktrace.ReadOnlySpan) spanJSON {
	own, parent := s.SpanContext(), s.Parent()
	out := spanJSON{
		TraceID: own.TraceID().String(), SpanID: own.SpanID().String(), TraceState: own.TraceState().String(),
		Name: s.Name(), Kind: int(s.SpanKind()), Start: nanos(s.StartTime()), End: nanos(s.EndTime()), Flags: flags(own.TraceFlags(), parent.IsRemote()),
		Attributes: encodeAttributes(s.Attributes()), DroppedAttributes: s.DroppedAttributes(), DroppedEvents: s.DroppedEvents(), DroppedLinks: s.DroppedLinks(),
		Status: statusJSON{Message: s.Status().Description},
	}
	if parent.SpanID().IsValid() {
		out.ParentSpanID = parent.SpanID().String()
	}
	switch s.Status().Code {
	case codes.Ok:
		out.Status.Code = 1
	case codes.Error:
		out.Status.Code = 2
	}
	for _, e := range s.Events() {
		out.Events = append(out.Events, eventJSON{nanos(e.Time), e.Name, encodeAttributes(e.Attributes), e.DroppedAttributeCount})
	}
	for _, l := range s.Links() {
		c := l.SpanContext
		out.Links = append(out.Links, linkJSON{c.TraceID().String(), c.SpanID().String(), c.TraceState().String(), encodeAttributes(l.Attributes), l.DroppedAttributeCount, flags(c.TraceFlags(), c.IsRemote())})
	}
	return out
}

// flags returns the flags of W3C, and whether a context came from another process.
func flags(f trace.TraceFlags, remote bool) uint32 {
	const known, isRemote = 0x100, 0x200
	out := uint32(f) | known
	if remote {
		out |= isRemote
	}
	return out
}

func nanos(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(max(t.UnixNano(), 0))
}

func encodeResource(r *resource.Resource) resourceJSON {
	return resourceJSON{encodeAttributes(r.Attributes())}
}

func encodeAttributes(attrs []attribute.KeyValue) []keyValue {
	if len(attrs) == 0 {
		return nil
	}
	out := make([]keyValue, len(attrs))
	for i, a := range attrs {
		out[i] = keyValue{string(a.Key), encodeValue(a.Value)}
	}
	return out
}

func encodeValue(v attribute.Value) any {
	switch v.Type() {
	case attribute.BOOL:
		return boolValue{v.AsBool()}
	case attribute.INT64:
		return intValue{v.AsInt64()}
	case attribute.FLOAT64:
		return doubleValue{double(v.AsFloat64())}
	case attribute.STRING:
		return stringValue{v.AsString()}
	case attribute.BYTESLICE:
		return bytesValue{base64.StdEncoding.EncodeToString(v.AsByteSlice())}
	case attribute.BOOLSLICE:
		return encodeList(v.AsBoolSlice(), func(b bool) any { return boolValue{b} })
	case attribute.INT64SLICE:
		return encodeList(v.AsInt64Slice(), func(n int64) any { return intValue{n} })
	case attribute.FLOAT64SLICE:
		return encodeList(v.AsFloat64Slice(), func(f float64) any { return doubleValue{double(f)} })
	case attribute.STRINGSLICE:
		return encodeList(v.AsStringSlice(), func(s string) any { return stringValue{s} })
	case attribute.SLICE:
		return encodeList(v.AsSlice(), encodeValue)
	case attribute.MAP:
		var out mapValue
		out.V.Values = encodeAttributes(v.AsMap())
		return out
	}
	return struct{}{} // EMPTY
}

func encodeList[T any](list []T, one func(T) any) any {
	var out arrayValue
	out.V.Values = make([]any, len(list))
	for i, v := range list {
		out.V.Values[i] = one(v)
	}
	return out
}
