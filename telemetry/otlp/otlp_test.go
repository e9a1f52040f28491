package otlp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/patchbay-dev/patchbay/mcptest"
	"github.com/patchbay-dev/patchbay/telemetry/otlp"
)

func TestMain(m *testing.M) { mcptest.Main(m) }

// collector is a collector without a network: the transport of an HTTP client.
type collector struct {
	answer func(n int, r *http.Request) (*http.Response, error) // of the n-th request; nil: 200

	mu       sync.Mutex
	requests []received
}

type received struct {
	path string
	at   time.Time
	body []byte
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		if body, err = io.ReadAll(z); err != nil {
			return nil, err
		}
	}
	if t := r.Header.Get("Content-Type"); t != "application/json" || r.Method != http.MethodPost {
		return nil, fmt.Errorf("%s with %s", r.Method, t)
	}
	c.mu.Lock()
	c.requests = append(c.requests, received{r.URL.Path, time.Now(), body})
	n := len(c.requests)
	c.mu.Unlock()
	if c.answer != nil {
		return c.answer(n, r)
	}
	return status(200, `{"partialSuccess":{}}`), nil
}

func (c *collector) got() []received {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]received(nil), c.requests...)
}

func status(code int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: code, Status: fmt.Sprint(code, " ", http.StatusText(code)), Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// start starts an exporter toward a collector, and a provider for it.
func start(t *testing.T, c *collector, o otlp.Options) (*otlp.Exporter, *sdktrace.TracerProvider) {
	t.Helper()
	o.Endpoint, o.Client = "http://collector.test:4318/", &http.Client{Transport: c}
	e, err := otlp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e), sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "test"))))
}

func end(p *sdktrace.TracerProvider, n int) {
	for range n {
		_, span := p.Tracer("t").Start(context.Background(), "s")
		span.End()
	}
}

// fields are the members of the messages of OTLP, as the schema of the protocol names them. The
// receiver refuses all others, and values of another form.
type (
	value struct {
		StringValue *string                   `json:"stringValue"`
		BoolValue   *bool                     `json:"boolValue"`
		IntValue    *int64                    `json:"intValue,string"`
		DoubleValue any                       `json:"doubleValue"`
		BytesValue  *[]byte                   `json:"bytesValue"`
		ArrayValue  *struct{ Values []value } `json:"arrayValue"`
		KvlistValue *struct{ Values []pair }  `json:"kvlistValue"`
	}
	pair struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	res struct {
		Attributes []pair `json:"attributes"`
	}
	scope struct {
		Name       string `json:"name"`
		Version    string `json:"version"`
		Attributes []pair `json:"attributes"`
	}
	span struct {
		TraceID                string `json:"traceId"`
		SpanID                 string `json:"spanId"`
		TraceState             string `json:"traceState"`
		ParentSpanID           string `json:"parentSpanId"`
		Flags                  uint32 `json:"flags"`
		Name                   string `json:"name"`
		Kind                   int    `json:"kind"`
		StartTimeUnixNano      uint64 `json:"startTimeUnixNano,string"`
		EndTimeUnixNano        uint64 `json:"endTimeUnixNano,string"`
		Attributes             []pair `json:"attributes"`
		DroppedAttributesCount uint32 `json:"droppedAttributesCount"`
		Events                 []struct {
			TimeUnixNano           uint64 `json:"timeUnixNano,string"`
			Name                   string `json:"name"`
			Attributes             []pair `json:"attributes"`
			DroppedAttributesCount uint32 `json:"droppedAttributesCount"`
		} `json:"events"`
		DroppedEventsCount uint32 `json:"droppedEventsCount"`
		Links              []struct {
			TraceID                string `json:"traceId"`
			SpanID                 string `json:"spanId"`
			TraceState             string `json:"traceState"`
			Attributes             []pair `json:"attributes"`
			DroppedAttributesCount uint32 `json:"droppedAttributesCount"`
			Flags                  uint32 `json:"flags"`
		} `json:"links"`
		DroppedLinksCount uint32 `json:"droppedLinksCount"`
		Status            struct {
			Message string `json:"message"`
			Code    int    `json:"code"`
		} `json:"status"`
	}
	traces struct {
		ResourceSpans []struct {
			Resource   res `json:"resource"`
			ScopeSpans []struct {
				Scope     scope  `json:"scope"`
				Spans     []span `json:"spans"`
				SchemaURL string `json:"schemaUrl"`
			} `json:"scopeSpans"`
			SchemaURL string `json:"schemaUrl"`
		} `json:"resourceSpans"`
	}
)

func decode(t *testing.T, body []byte, into any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
}

// A span arrives with everything it has.
func TestSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		e, p := start(t, c, otlp.Options{})
		tracer := p.Tracer("scope", trace.WithInstrumentationVersion("v1"))
		state, _ := trace.ParseTraceState("a=b")
		link := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: 1, TraceState: state, Remote: true})
		ctx, parent := tracer.Start(trace.ContextWithRemoteSpanContext(t.Context(), link), "parent", trace.WithSpanKind(trace.SpanKindServer))
		_, child := tracer.Start(ctx, "child \"<é\xff>", trace.WithSpanKind(trace.SpanKindClient), trace.WithLinks(trace.Link{SpanContext: link, Attributes: []attribute.KeyValue{attribute.Bool("l", true)}}))
		child.SetAttributes(attribute.String("s", "x"), attribute.Int64("i", math.MaxInt64), attribute.Bool("b", false), attribute.Float64("f", 1.5), attribute.Float64("nan", math.NaN()),
			attribute.Float64("inf", math.Inf(-1)), attribute.StringSlice("ss", []string{"a", ""}), attribute.Int64Slice("is", []int64{-1}), attribute.BoolSlice("bs", []bool{true}), attribute.Float64Slice("fs", nil))
		child.AddEvent("happened", trace.WithAttributes(attribute.Int("n", 1)))
		child.SetStatus(codes.Error, "why")
		time.Sleep(time.Millisecond)
		child.End()
		parent.SetStatus(codes.Ok, "")
		parent.End()
		if err := p.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := c.got()
		if len(got) != 1 || got[0].path != "/v1/traces" {
			t.Fatalf("%d requests", len(got))
		}
		var all traces
		decode(t, got[0].body, &all)
		if len(all.ResourceSpans) != 1 || len(all.ResourceSpans[0].ScopeSpans) != 1 || all.ResourceSpans[0].ScopeSpans[0].Scope.Version != "v1" || *all.ResourceSpans[0].Resource.Attributes[0].Value.StringValue != "test" {
			t.Fatalf("%s", got[0].body)
		}
		spans := all.ResourceSpans[0].ScopeSpans[0].Spans
		a, b := spans[0], spans[1]
		if a.TraceID != "01000000000000000000000000000000" || a.TraceState != "a=b" || a.ParentSpanID != b.SpanID || a.Kind != 3 || a.Status.Code != 2 || a.Status.Message != "why" || a.EndTimeUnixNano-a.StartTimeUnixNano != 1e6 || a.Flags != 0x101 || a.Name != "child \"<é\ufffd>" {
			t.Errorf("child: %+v", a)
		}
		if b.ParentSpanID != "0200000000000000" || b.Kind != 2 || b.Status.Code != 1 || b.Flags != 0x301 {
			t.Errorf("parent: %+v", b)
		}
		if len(a.Attributes) != 10 || *a.Attributes[1].Value.IntValue != math.MaxInt64 || *a.Attributes[2].Value.BoolValue || a.Attributes[4].Value.DoubleValue != "NaN" || a.Attributes[5].Value.DoubleValue != "-Infinity" || len(a.Attributes[6].Value.ArrayValue.Values) != 2 {
			t.Errorf("attributes: %s", got[0].body)
		}
		if len(a.Events) != 1 || a.Events[0].Name != "happened" || len(a.Links) != 1 || a.Links[0].SpanID != "0200000000000000" || a.Links[0].Flags != 0x301 {
			t.Errorf("events and links: %+v, %+v", a.Events, a.Links)
		}
		if s := e.Stats(); s != (otlp.Stats{Sent: 2}) {
			t.Errorf("stats %+v", s)
		}
	})
}

// A collector with a fault delays no span; spans that it does not take are counted, and the log has a line
// when faults begin and one when they end.
func TestFaults(t *testing.T) {
	away := errors.New("connection refused")
	for name, test := range map[string]struct {
		answer   func(n int, r *http.Request) (*http.Response, error)
		requests int
		after    time.Duration // from the first request to the last
		stats    otlp.Stats
		log      []string
	}{
		"away": {
			answer:   func(int, *http.Request) (*http.Response, error) { return nil, away },
			requests: -1, stats: otlp.Stats{Failed: 10}, log: []string{"not delivered"},
		},
		"slow": {
			answer: func(_ int, r *http.Request) (*http.Response, error) {
				select {
				case <-time.After(30 * time.Second):
					return status(200, ""), nil
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
			},
			requests: -1, stats: otlp.Stats{Failed: 10}, log: []string{"not delivered"},
		},
		"500": {
			answer:   func(int, *http.Request) (*http.Response, error) { return status(500, "out of memory"), nil },
			requests: 1, stats: otlp.Stats{Failed: 10}, log: []string{"500 Internal Server Error: out of memory"},
		},
		"moved": {
			answer: func(int, *http.Request) (*http.Response, error) {
				return status(307, "", "Location", "http://elsewhere.test/"), nil
			},
			requests: 1, stats: otlp.Stats{Failed: 10}, log: []string{"307"},
		},
		"429": {
			answer: func(n int, _ *http.Request) (*http.Response, error) {
				if n == 1 {
					return status(429, "", "Retry-After", "17"), nil
				}
				return status(200, ""), nil
			},
			requests: 2, after: 17 * time.Second, stats: otlp.Stats{Sent: 10}, log: []string{"429", "delivered again"},
		},
		"429 for a day": {
			answer: func(int, *http.Request) (*http.Response, error) {
				return status(429, "", "Retry-After", "86400"), nil
			},
			requests: 1, stats: otlp.Stats{Failed: 10}, log: []string{"429"},
		},
		"cut": {
			answer: func(n int, _ *http.Request) (*http.Response, error) {
				if n < 3 {
					return nil, io.ErrUnexpectedEOF
				}
				return status(200, "{}"), nil
			},
			requests: 3, stats: otlp.Stats{Sent: 10}, log: []string{"unexpected EOF", "delivered again"},
		},
		"partial": {
			answer: func(int, *http.Request) (*http.Response, error) {
				return status(200, `{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}`), nil
			},
			requests: 1, stats: otlp.Stats{Sent: 7, Rejected: 3}, log: []string{"too old"},
		},
		"nonsense": {
			answer: func(int, *http.Request) (*http.Response, error) {
				return status(200, `{"partialSuccess":{"rejectedSpans":{},"errorMessage":5}}`), nil
			},
			requests: 1, stats: otlp.Stats{Sent: 10},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				c := &collector{answer: test.answer}
				e, p := start(t, c, otlp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Headers: map[string]string{"Api-Key": "hunter22"}})
				before := time.Now()
				end(p, 10)
				if d := time.Since(before); d != 0 {
					t.Errorf("the spans took %v", d)
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if s := e.Stats(); s != test.stats {
					t.Errorf("stats %+v, want %+v", s, test.stats)
				}
				got := c.got()
				if test.requests >= 0 && len(got) != test.requests || test.requests < 0 && (len(got) < 3 || len(got) > 20) {
					t.Errorf("%d requests, want %d", len(got), test.requests)
				}
				if between := got[len(got)-1].at.Sub(got[0].at); between < test.after || between > 65*time.Second {
					t.Errorf("the last request came after %v", between)
				}
				lines := strings.Split(strings.TrimSpace(log.String()), "\n")
				for i, want := range test.log {
					if len(lines) != len(test.log) || !strings.Contains(lines[i], want) {
						t.Errorf("the log is %q, want %q", lines, test.log)
					}
				}
				if strings.Contains(log.String(), "hunter22") {
					t.Errorf("a header is in the log: %s", log.String())
				}
				if err := p.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// While the collector hangs, the queue takes what it can, and the rest is counted.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(_ int, r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		c := &collector{answer: hang}
		e, p := start(t, c, otlp.Options{Queue: 100, Batch: 10})
		end(p, 10)
		synctest.Wait() // the first batch is on its way
		before := time.Now()
		end(p, 250)
		if d := time.Since(before); d != 0 {
			t.Errorf("the spans took %v", d)
		}
		if s := e.Stats(); s.Queued != 100 || s.Dropped != 150 {
			t.Errorf("stats %+v", s)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := e.ForceFlush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flush: %v", err)
		}
		// Shutdown gives up with its context.
		before = time.Now()
		short, cancelShort := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancelShort()
		if err := p.Shutdown(short); !errors.Is(err, context.DeadlineExceeded) || time.Since(before) != 3*time.Second {
			t.Errorf("shutdown: %v after %v", err, time.Since(before))
		}
		if s := e.Stats(); s.Queued != 0 || s.Failed != 110 || s.Dropped != 150 {
			t.Errorf("stats %+v", s)
		}
		if err := e.ForceFlush(t.Context()); err != nil {
			t.Errorf("flush after shutdown: %v", err)
		}
	})
}

// Shutdown makes one attempt, and sends all that is queued if the collector works.
func TestShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		e, p := start(t, c, otlp.Options{Batch: 10})
		end(p, 35)
		if err := p.ForceFlush(t.Context()); err != nil {
			t.Error(err)
		}
		end(p, 5)
		if err := p.Shutdown(t.Context()); err != nil || e.Stats() != (otlp.Stats{Sent: 40}) {
			t.Errorf("shutdown: %v, %+v", err, e.Stats())
		}
		bad := &collector{answer: func(int, *http.Request) (*http.Response, error) { return status(503, ""), nil }}
		e, p = start(t, bad, otlp.Options{Batch: 10})
		end(p, 5)
		before := time.Now()
		if err := p.Shutdown(t.Context()); err != nil || time.Since(before) != 0 || len(bad.got()) != 1 || e.Stats() != (otlp.Stats{Failed: 5}) {
			t.Errorf("shutdown: %v after %v with %d requests, %+v", err, time.Since(before), len(bad.got()), e.Stats())
		}
	})
}

// The exporter behind a processor of the SDK works as well.
func TestExportSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		e, _ := start(t, c, otlp.Options{Uncompressed: true})
		p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(e))
		end(p, 20)
		if err := p.Shutdown(t.Context()); err != nil || e.Stats().Sent != 20 {
			t.Errorf("shutdown: %v, %+v", err, e.Stats())
		}
	})
}

// Metrics are pushed each interval and at the end; faulty ones are left out and named once.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var log bytes.Buffer
		c := &collector{}
		e, p := start(t, c, otlp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil)), Resource: resource.NewSchemaless(attribute.String("service.name", "m")), Metrics: func() []otlp.Metric {
			at := []attribute.KeyValue{attribute.String("server", "jira")}
			return []otlp.Metric{
				{Name: "calls", Unit: "{call}", Points: []otlp.Point{{Attributes: at, Start: began, Value: 3}}},
				{Name: "open", Kind: otlp.UpDown, Points: []otlp.Point{{Start: began, Value: -1}}},
				{Name: "now", Kind: otlp.Gauge, Points: []otlp.Point{{Value: math.NaN()}}},
				{Name: "took", Unit: "s", Kind: otlp.Histogram, Points: []otlp.Point{{Start: began, Bounds: []float64{1, math.Inf(1)}, Counts: []uint64{1, 2, math.MaxUint64 - 3}, Sum: 4.5}}},
				{Name: "short", Kind: otlp.Histogram, Points: []otlp.Point{{Bounds: []float64{1}, Counts: []uint64{1}}}},
				{Name: "falls", Kind: otlp.Histogram, Points: []otlp.Point{{Bounds: []float64{1, 1}, Counts: []uint64{1, 1, 1}}}},
				{Name: "odd", Kind: 7},
				{},
			}
		}})
		time.Sleep(2*time.Minute + time.Second)
		if err := p.Shutdown(t.Context()); err != nil || e.Stats().Pushes != 3 {
			t.Fatalf("shutdown: %v, %+v", err, e.Stats())
		}
		type data struct {
			DataPoints []struct {
				Attributes        []pair   `json:"attributes"`
				StartTimeUnixNano uint64   `json:"startTimeUnixNano,string"`
				TimeUnixNano      uint64   `json:"timeUnixNano,string"`
				AsDouble          any      `json:"asDouble"`
				Count             uint64   `json:"count,string"`
				Sum               float64  `json:"sum"`
				BucketCounts      []string `json:"bucketCounts"`
				ExplicitBounds    []any    `json:"explicitBounds"`
			} `json:"dataPoints"`
			AggregationTemporality int  `json:"aggregationTemporality"`
			IsMonotonic            bool `json:"isMonotonic"`
		}
		var all struct {
			ResourceMetrics []struct {
				Resource     res `json:"resource"`
				ScopeMetrics []struct {
					Scope   scope `json:"scope"`
					Metrics []struct {
						Name                  string `json:"name"`
						Unit                  string `json:"unit"`
						Description           string `json:"description"`
						Sum, Gauge, Histogram *data
					} `json:"metrics"`
				} `json:"scopeMetrics"`
			} `json:"resourceMetrics"`
		}
		got := c.got()
		if got[0].path != "/v1/metrics" || got[1].at.Sub(got[0].at) != time.Minute {
			t.Errorf("pushes: %v", got)
		}
		decode(t, got[0].body, &all)
		m := all.ResourceMetrics[0].ScopeMetrics[0].Metrics
		if len(m) != 4 || !m[0].Sum.IsMonotonic || m[0].Sum.AggregationTemporality != 2 || m[1].Sum.IsMonotonic || m[1].Sum.DataPoints[0].AsDouble != -1.0 || m[2].Gauge.DataPoints[0].AsDouble != "NaN" {
			t.Errorf("metrics: %s", got[0].body)
		}
		if h := m[3].Histogram.DataPoints[0]; h.Count != math.MaxUint64 || h.Sum != 4.5 || fmt.Sprint(h.BucketCounts, h.ExplicitBounds) != "[1 2 18446744073709551612] [1 Infinity]" || h.StartTimeUnixNano != uint64(began.UnixNano()) {
			t.Errorf("histogram: %+v", h)
		}
		if n := strings.Count(log.String(), "a metric is not sent"); n != 4 {
			t.Errorf("the log has %d lines: %s", n, log.String())
		}
	})
}

// Bad options get an error that names the fault and the next step, and never a password.
func TestOptions(t *testing.T) {
	for endpoint, want := range map[string]string{
		"": "the endpoint is empty", "collector:4318": "write one such as http://localhost:4318", "ftp://c": "not a URL of HTTP", "http://": "not a URL of HTTP",
		"http://me:hunter22@c:4318": "a user name", "http://c:4318?key=hunter22": "a query", "http://c:hunter22": "not a URL of HTTP",
	} {
		if _, err := otlp.New(otlp.Options{Endpoint: endpoint}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
	if _, err := otlp.New(otlp.Options{Endpoint: "http://c", Queue: -1}); err == nil {
		t.Error("a negative queue is accepted")
	}
	if _, err := otlp.New(otlp.Options{Endpoint: "http://c", Headers: map[string]string{"a b": "hunter22"}}); err == nil || strings.Contains(err.Error(), "hunter22") {
		t.Errorf("a bad header: %v", err)
	}
}

func TestFromEnvironment(t *testing.T) {
	set := func(pairs ...string) {
		for _, name := range []string{"ENDPOINT", "HEADERS", "TIMEOUT", "COMPRESSION", "PROTOCOL"} {
			t.Setenv("OTEL_EXPORTER_OTLP_"+name, "")
		}
		t.Setenv("OTEL_SDK_DISABLED", "")
		for i := 0; i < len(pairs); i += 2 {
			t.Setenv(pairs[i], pairs[i+1])
		}
	}
	const endpoint, p = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_"
	set()
	if _, ok, err := otlp.FromEnvironment(); ok || err != nil {
		t.Errorf("empty: %v, %v", ok, err)
	}
	set(endpoint, "http://c", "OTEL_SDK_DISABLED", "TRUE")
	if _, ok, err := otlp.FromEnvironment(); ok || err != nil {
		t.Errorf("disabled: %v, %v", ok, err)
	}
	set(endpoint, "http://c", p+"HEADERS", "api-key=a%20b, x = y=z ,", p+"TIMEOUT", "1500", p+"COMPRESSION", "none", p+"PROTOCOL", "http/protobuf")
	o, ok, err := otlp.FromEnvironment()
	if !ok || err != nil || o.Endpoint != "http://c" || fmt.Sprint(o.Headers) != "map[api-key:a b x:y=z]" || o.Timeout != 1500*time.Millisecond || !o.Uncompressed {
		t.Errorf("all: %+v, %v, %v", o, ok, err)
	}
	for _, bad := range [][]string{{p + "PROTOCOL", "grpc"}, {p + "COMPRESSION", "zstd"}, {p + "TIMEOUT", "10s"}, {p + "TIMEOUT", "-1"}, {p + "HEADERS", "hunter22"}, {p + "HEADERS", "k=%zzhunter22"}, {endpoint, "c:4317"}} {
		set(append([]string{endpoint, "http://c"}, bad...)...)
		if _, ok, err := otlp.FromEnvironment(); ok || err == nil || !strings.HasPrefix(err.Error(), bad[0]) || strings.Contains(err.Error(), "hunter22") {
			t.Errorf("%v: %v, %v", bad, ok, err)
		}
	}
}

// The variables of OpenTelemetry say how long spans and metrics wait, unless the options do. Wrong ones
// are logged.
func TestPeriods(t *testing.T) {
	for _, tt := range []struct {
		name, delay, interval  string
		options                otlp.Options
		spans, metrics, logged string
	}{
		{"nothing", "", "", otlp.Options{}, "5s", "1m0s", ""},
		{"variables", "200", "300", otlp.Options{}, "200ms", "300ms", ""},
		{"options", "200", "300", otlp.Options{Delay: time.Second, Interval: 2 * time.Second}, "1s", "2s", ""},
		{"wrong variables", "1s", "-3", otlp.Options{}, "5s", "1m0s", "OTEL_BSP_SCHEDULE_DELAY is not a number of milliseconds, such as 5000"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", tt.delay)
			t.Setenv("OTEL_METRIC_EXPORT_INTERVAL", tt.interval)
			synctest.Test(t, func(t *testing.T) {
				var said strings.Builder
				o, c, began := tt.options, new(collector), time.Now()
				o.Logger = slog.New(slog.NewTextHandler(&said, nil))
				o.Metrics = func() []otlp.Metric {
					return []otlp.Metric{{Name: "m", Kind: otlp.Gauge, Points: []otlp.Point{{Value: 1}}}}
				}
				_, p := start(t, c, o)
				end(p, 1)
				time.Sleep(70 * time.Second)
				first := map[string]string{}
				for _, r := range c.got() {
					if first[r.path] == "" {
						first[r.path] = r.at.Sub(began).String()
					}
				}
				if first["/v1/traces"] != tt.spans || first["/v1/metrics"] != tt.metrics {
					t.Errorf("the first requests come after %v, want %s and %s", first, tt.spans, tt.metrics)
				}
				if !strings.Contains(said.String(), tt.logged) || tt.logged == "" && said.Len() > 0 {
					t.Errorf("logged %q, want %q", said.String(), tt.logged)
				}
				if err := p.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Requests are compressed, except for those to a collector on the same machine.
func TestCompression(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://collector.test": "gzip", "http://10.0.0.1:4318": "gzip",
		"http://localhost:4318": "", "http://127.0.0.2:4318": "", "http://[::1]:4318": "",
	} {
		encodings := make(chan string, 2)
		collector := &collector{answer: func(_ int, r *http.Request) (*http.Response, error) {
			encodings <- r.Header.Get("Content-Encoding")
			return status(200, ""), nil
		}}
		e, err := otlp.New(otlp.Options{Endpoint: endpoint, Client: &http.Client{Transport: collector}, Metrics: func() []otlp.Metric {
			return []otlp.Metric{{Name: "now", Kind: otlp.Gauge, Points: []otlp.Point{{Value: 1}}}}
		}})
		if err != nil {
			t.Fatal(err)
		}
		end(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e)), 1)
		if err := e.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if got := []string{<-encodings, <-encodings}; got[0] != want || got[1] != want {
			t.Errorf("spans and metrics to %s are encoded as %q, want %q", endpoint, got, want)
		}
	}
}

// roundTrip is a function that is a transport.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A transport may read a body after its answer, until it closes it. The next request leaves that alone.
func TestTransportReadsLater(t *testing.T) {
	var bodies []io.ReadCloser
	e, err := otlp.New(otlp.Options{Endpoint: "http://localhost:4318", Client: &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		bodies = append(bodies, r.Body)
		return status(200, ""), nil
	})}})
	if err != nil {
		t.Fatal(err)
	}
	p := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e))
	names := []string{"first", "other", "third"}
	for _, name := range names {
		_, span := p.Tracer("t").Start(t.Context(), name)
		span.End()
		if err := p.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, body := range bodies {
		got, err := io.ReadAll(body)
		if err := errors.Join(err, body.Close(), body.Close()); err != nil || !bytes.Contains(got, []byte(names[i])) {
			t.Errorf("body %d has no span %q, %v:\n%s", i, names[i], err, got)
		}
	}
	if len(bodies) != len(names) {
		t.Errorf("%d requests, want %d", len(bodies), len(names))
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
