package collector

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/telemetry"
	"github.com/patchbay-dev/patchbay/telemetry/otlp"
)

// collector is a collector whose pipelines end in memory.
type collector struct {
	addr    string
	traces  consumertest.TracesSink
	metrics consumertest.MetricsSink
	logs    consumertest.LogsSink
	stop    func()
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	addr, err := freeport.Addr()
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{addr: addr}
	c.start(t)
	t.Cleanup(func() { c.stop() })
	return c
}

func (c *collector) url() string { return "http://" + c.addr }

// start starts the receiver as a configuration file of the collector does.
func (c *collector) start(t *testing.T) {
	t.Helper()
	factory := otlpreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	err := confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": c.addr}}}).Unmarshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	settings := receivertest.NewNopSettings(factory.Type())
	traces, err1 := factory.CreateTraces(t.Context(), settings, cfg, &c.traces)
	metrics, err2 := factory.CreateMetrics(t.Context(), settings, cfg, &c.metrics)
	logs, err3 := factory.CreateLogs(t.Context(), settings, cfg, &c.logs)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	host := componenttest.NewNopHost()
	if err := errors.Join(traces.Start(t.Context(), host), metrics.Start(t.Context(), host), logs.Start(t.Context(), host)); err != nil {
		t.Fatal(err)
	}
	c.stop = func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(traces.Shutdown(ctx), metrics.Shutdown(ctx), logs.Shutdown(ctx)); err != nil {
			t.Error(err)
		}
	}
}

// span is a span with its service.
type span struct {
	ptrace.Span
	service string
}

// text returns an attribute, empty if there is none.
func (s span) text(key string) string { return text(s.Attributes(), key) }

func text(m pcommon.Map, key string) string {
	v, ok := m.Get(key)
	if !ok {
		return ""
	}
	return v.AsString()
}

func (c *collector) spans() (all []span) {
	for _, t := range c.traces.AllTraces() {
		for _, r := range t.ResourceSpans().All() {
			for _, s := range r.ScopeSpans().All() {
				for _, one := range s.Spans().All() {
					all = append(all, span{one, text(r.Resource().Attributes(), "service.name")})
				}
			}
		}
	}
	return all
}

// metric returns the last state of a metric of a service, and whether there is one.
func (c *collector) metric(service, name string) (m pmetric.Metric, found bool) {
	for _, all := range c.metrics.AllMetrics() {
		for _, r := range all.ResourceMetrics().All() {
			if text(r.Resource().Attributes(), "service.name") != service {
				continue
			}
			for _, s := range r.ScopeMetrics().All() {
				for _, one := range s.Metrics().All() {
					if one.Name() == name {
						m, found = one, true
					}
				}
			}
		}
	}
	return m, found
}

func named(name string) *resource.Resource {
	return resource.NewSchemaless(attribute.String("service.name", name))
}

// observed connects a client to a server, both with spans.
func observed(t *testing.T, o *telemetry.Options, trail *audit.Trail) *mcp.Session {
	t.Helper()
	srv := &mcp.Server{Name: "shop", Version: "1"}
	srv.Use(telemetry.Server(o))
	if trail != nil {
		srv.Use(trail.Outer(), trail.Around("shop"))
	}
	add := func(name string, err error) {
		mcp.AddTool(srv, mcp.Tool{Name: name}, func(context.Context, struct{}) (string, error) { return "ok", err })
	}
	add("works", nil)
	add("fails", errors.New("no paper"))
	add("breaks", mcp.Errorf(7001, "broken"))
	client := &mcp.Client{Name: "c", Version: "1"}
	client.Use(telemetry.Client(o))
	s, err := client.Open(t.Context(), srv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// Spans arrive with their parents, kinds and types of error, metrics with their values, and the audit
// log with the ids of the spans.
func TestTaken(t *testing.T) {
	c := newCollector(t)
	start := time.Now().Add(-time.Minute)
	method := []attribute.KeyValue{attribute.String("mcp.method.name", "tools/call")}
	e, err := otlp.New(otlp.Options{Endpoint: c.url(), Resource: named("shop"), Metrics: func() []otlp.Metric {
		return []otlp.Metric{
			{Name: "calls", Kind: otlp.Sum, Unit: "{call}", Points: []otlp.Point{{Attributes: method, Start: start, Value: 1 << 53}}},
			{Name: "open", Kind: otlp.UpDown, Points: []otlp.Point{{Start: start, Value: -2}}},
			{Name: "lag", Kind: otlp.Gauge, Unit: "s", Points: []otlp.Point{{Value: 0.25}}},
			{Name: "durations", Kind: otlp.Histogram, Unit: "s", Points: []otlp.Point{{Attributes: method, Start: start, Bounds: []float64{0.1, 1, 10}, Counts: []uint64{4, 3, 2, 1}, Sum: 42.5}}},
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e), sdktrace.WithResource(named("shop")))
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	s := observed(t, &telemetry.Options{Provider: provider}, &audit.Trail{Log: log})
	if _, err := s.CallTool(t.Context(), "works", nil); err != nil {
		t.Error(err)
	}
	if res, err := s.CallTool(t.Context(), "fails", nil); err != nil || !res.IsError {
		t.Errorf("fails: %v, %v", res, err)
	}
	if _, err := s.CallTool(t.Context(), "breaks", nil); err == nil {
		t.Error("breaks works")
	}
	s.Close()
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := e.Stats(); got.Sent != uint64(c.traces.SpanCount()) || got.Sent == 0 || got.Dropped+got.Failed+got.Rejected+got.FailedPushes > 0 || got.Pushes == 0 {
		t.Errorf("the exporter has counted %+v, and the collector has %d spans", got, c.traces.SpanCount())
	}

	server := map[string]span{}
	clients := map[pcommon.SpanID]span{}
	for _, s := range c.spans() {
		switch s.Kind() {
		case ptrace.SpanKindServer:
			server[s.text("gen_ai.tool.name")] = s
		case ptrace.SpanKindClient:
			clients[s.SpanID()] = s
		}
	}
	for tool, failure := range map[string]string{"works": "", "fails": "tool_error", "breaks": "7001"} {
		s, parent := server[tool], clients[server[tool].ParentSpanID()]
		if s.Name() != "tools/call "+tool || s.text("error.type") != failure || (s.Status().Code() == ptrace.StatusCodeError) != (failure != "") || s.service != "shop" {
			t.Errorf("the span of %s is %q with error.type %q and status %s, of %q", tool, s.Name(), s.text("error.type"), s.Status().Code(), s.service)
		}
		if parent.text("gen_ai.tool.name") != tool || parent.TraceID() != s.TraceID() || s.EndTimestamp() < s.StartTimestamp() || parent.StartTimestamp() > s.StartTimestamp() {
			t.Errorf("the parent of the span of %s is %q", tool, parent.Name())
		}
	}

	if m, ok := c.metric("shop", "calls"); !ok || m.Sum().DataPoints().At(0).DoubleValue() != 1<<53 || !m.Sum().IsMonotonic() || m.Unit() != "{call}" ||
		m.Sum().AggregationTemporality() != pmetric.AggregationTemporalityCumulative || text(m.Sum().DataPoints().At(0).Attributes(), "mcp.method.name") != "tools/call" {
		t.Errorf("calls: %v", m)
	}
	if m, ok := c.metric("shop", "open"); !ok || m.Sum().DataPoints().At(0).DoubleValue() != -2 || m.Sum().IsMonotonic() {
		t.Errorf("open: %v", m)
	}
	if m, ok := c.metric("shop", "lag"); !ok || m.Gauge().DataPoints().At(0).DoubleValue() != 0.25 {
		t.Errorf("lag: %v", m)
	}
	m, ok := c.metric("shop", "durations")
	if !ok {
		t.Fatal("the histogram has not arrived")
	}
	if p := m.Histogram().DataPoints().At(0); p.Sum() != 42.5 || p.Count() != 10 || !slices.Equal(p.BucketCounts().AsRaw(), []uint64{4, 3, 2, 1}) ||
		!slices.Equal(p.ExplicitBounds().AsRaw(), []float64{0.1, 1, 10}) || p.StartTimestamp().AsTime().Sub(start).Abs() > time.Millisecond {
		t.Errorf("the histogram has sum %v, count %d, counts %v, bounds %v", p.Sum(), p.Count(), p.BucketCounts().AsRaw(), p.ExplicitBounds().AsRaw())
	}

	if err := log.Close(); err != nil {
		t.Error(err)
	}
	sent, err := (&audit.OTLP{URL: c.url()}).Export(t.Context(), audit.Read(path))
	if err != nil || sent == 0 || sent != c.logs.LogRecordCount() {
		t.Errorf("%d lines are sent, %v; the collector has %d", sent, err, c.logs.LogRecordCount())
	}
	ends := map[string]plog.LogRecord{}
	for _, l := range c.logs.AllLogs() {
		for _, r := range l.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
			if r.EventName() == "audit.call.end" {
				ends[text(r.Attributes(), "gen_ai.tool.name")] = r
			}
		}
	}
	for tool, severity := range map[string]plog.SeverityNumber{"works": plog.SeverityNumberInfo, "fails": plog.SeverityNumberWarn, "breaks": plog.SeverityNumberWarn} {
		r, ok := ends[tool]
		if !ok || r.SeverityNumber() != severity || r.TraceID() != server[tool].TraceID() || text(r.Attributes(), "mcp.server") != "shop" || !strings.Contains(r.Body().Str(), `"hash":"sha256:`) {
			t.Errorf("the end of %s is recorded with %s, trace %s, %v", tool, r.SeverityNumber(), r.TraceID(), r.Attributes().AsRaw())
		}
	}
}

// A collector that dies and comes back loses spans, which are counted, and delays no call.
func TestCollectorDies(t *testing.T) {
	c := newCollector(t)
	e, err := otlp.New(otlp.Options{Endpoint: c.url(), Queue: 200, Batch: 20, Delay: 10 * time.Millisecond, Retry: 50 * time.Millisecond, Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(e))
	s := observed(t, &telemetry.Options{Provider: provider}, nil)
	calls := func(n int) {
		t.Helper()
		for range n {
			if _, err := s.CallTool(t.Context(), "works", nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !ok(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: after a minute %+v", what, e.Stats())
			}
		}
	}
	calls(50)
	until("spans are sent", func() bool { return e.Stats().Sent > 0 })
	c.stop()
	calls(1000)
	until("spans are lost", func() bool { return e.Stats().Failed > 0 && e.Stats().Dropped > 0 })
	until("the queue is empty", func() bool { return e.Stats().Queued == 0 })
	before := e.Stats().Sent
	c.start(t)
	calls(50)
	until("spans are sent again", func() bool { return e.Stats().Sent > before })
	s.Close()
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	got := e.Stats()
	if got.Sent != uint64(c.traces.SpanCount()) || got.Sent+got.Failed+got.Dropped < 2*1100 || got.Queued > 0 {
		t.Errorf("the exporter has counted %+v, and the collector has %d spans of at least 2,200", got, c.traces.SpanCount())
	}
	seen := map[string]bool{}
	for _, s := range c.spans() {
		id := fmt.Sprint(s.TraceID(), s.SpanID())
		if seen[id] || !strings.HasPrefix(s.Name(), "tools/call") && s.Name() != "initialize" && s.Name() != "server/discover" && !strings.HasPrefix(s.Name(), "notifications/") && s.Name() != "tools/list" {
			t.Errorf("the span %q of %s is there twice or foreign", s.Name(), id)
		}
		seen[id] = true
	}
}
