package chain

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/deploy"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/telemetry"
	"github.com/patchbay-dev/patchbay/trace"
)

// collector returns the URL of a collector, and a function that returns the requests that it has got.
func collector(t *testing.T) (url string, got func() string) {
	t.Helper()
	lastTime = time.Minute // the machine may be busy
	t.Cleanup(func() { lastTime = time.Second })
	var mu sync.Mutex
	var all strings.Builder
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := io.Copy(&all, r.Body); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"partialSuccess":{}}`)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() string {
		mu.Lock()
		defer mu.Unlock()
		return all.String()
	}
}

// span is what the tests read of a span.
type span struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	Attributes                          attributes
}

type attributes []struct {
	Key   string
	Value struct{ StringValue, IntValue string }
}

func (s attributes) get(key string) string {
	for _, a := range s {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// spansOf returns the spans of requests to a collector, and the attributes of their resource.
func spansOf(t *testing.T, text string) (spans []span, resource attributes) {
	t.Helper()
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var body struct {
			ResourceSpans []struct {
				Resource   struct{ Attributes attributes }
				ScopeSpans []struct{ Spans []span }
			}
		}
		if err := d.Decode(&body); err == io.EOF {
			return spans, resource
		} else if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		for _, r := range body.ResourceSpans {
			resource = r.Resource.Attributes
			for _, s := range r.ScopeSpans {
				spans = append(spans, s.Spans...)
			}
		}
	}
}

const (
	server, client = 2, 3 // kinds of spans
)

// A call through a chain has a span of the request and one of the request to the server, its child.
// The arguments are sent only on request, without their secrets.
func TestSpans(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	for content, want := range map[string]string{"none": "", "redacted": `{"token":"[redacted]"}`} {
		url, got := collector(t)
		p, _ := program()
		p.Version, p.Redactor = "1.2.3", trace.NewRedactor(nil)
		c, err := New(Config{HTTP: true, File: &deploy.File{Telemetry: &deploy.Telemetry{OTLP: url, Content: content}}}, p)
		if err != nil {
			t.Fatal(err)
		}
		front, err := c.Front()
		if err != nil || len(front) != 2 { // and limits that gateway.yaml may get
			t.Fatal(front, err)
		}
		around := c.Around(func(string) Server {
			return Server{Config: config.Server{URL: "https://user@idp.example/mcp?key=k"}, Revision: func() mcp.Revision { return mcp.V2025_06_18 }}
		})
		srv := &mcp.Server{Name: "s"}
		mcp.AddTool(srv, mcp.Tool{Name: "x"}, func(_ context.Context, in struct{ Token string }) (string, error) { return "done", nil })
		h := front[0](around("jira")(srv))
		if _, err := h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"x","arguments":{"token":"sesame-open-1234"}}`)}); err != nil {
			t.Fatal(err)
		}
		c.Close()
		spans, resource := spansOf(t, got())
		if len(spans) != 2 || spans[0].Kind != client || spans[1].Kind != server || spans[0].ParentSpanID != spans[1].SpanID || spans[0].TraceID != spans[1].TraceID {
			t.Fatalf("%s: the spans are %+v", content, spans)
		}
		for key, want := range map[string]string{
			"patchbay.server": "jira", "server.address": "idp.example", "server.port": "443", "network.transport": "tcp",
			"mcp.protocol.version": "2025-06-18", "gen_ai.tool.call.arguments": want,
		} {
			if got := spans[0].Attributes.get(key); got != want {
				t.Errorf("%s: %s is %q, want %q", content, key, got, want)
			}
		}
		for key, want := range map[string]string{"service.name": "patchbay", "service.version": "1.2.3", "deployment.environment.name": "test"} {
			if got := resource.get(key); got != want {
				t.Errorf("%s is %q, want %q", key, got, want)
			}
		}
		if resource.get("service.instance.id") == "" || resource.get("host.name") == "" {
			t.Errorf("the resource has %+v", resource)
		}
		if s := c.Telemetry(); s.Endpoint != url || s.Sent != 2 || s.Dropped+s.Lost > 0 || s.Fault != "" {
			t.Errorf("the state is %+v", s)
		}
	}
}

// The counters are sent with names that a collector translates to those of /metrics.
func TestSentMetrics(t *testing.T) {
	url, got := collector(t)
	p, _ := program()
	rules := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, rules, "default: allow\nrules: [{name: no x, when: name == \"x\", effect: deny}]\n")
	teams := deploy.Teams{From: "principal.id", Members: []deploy.Team{{Name: "dev", Patterns: []string{"*"}}}}
	c, err := New(Config{Policy: rules, File: &deploy.File{Teams: teams, Telemetry: &deploy.Telemetry{OTLP: url}}}, p)
	if err != nil {
		t.Fatal(err)
	}
	counters := new(metrics.Counters)
	counters.Upstreams = func() []metrics.Upstream { return []metrics.Upstream{{Name: "s", State: "ready", MemoryBytes: 4}} }
	c.Count(counters)
	counters.Waited("s", time.Millisecond)
	counters.Closed("s", time.Millisecond)
	list, err := c.Front()
	if err != nil {
		t.Fatal(err)
	}
	calls(append(list, c.Around(func(string) Server { return Server{} })("s"))...)
	c.Close()
	type point struct {
		Attributes        attributes
		AsDouble          float64
		Count             string
		StartTimeUnixNano string
	}
	sent := map[string]point{}
	for d := json.NewDecoder(strings.NewReader(got())); ; {
		var body struct {
			ResourceMetrics []struct {
				ScopeMetrics []struct {
					Metrics []struct {
						Name, Unit            string
						Sum, Gauge, Histogram struct{ DataPoints []point }
					}
				}
			}
		}
		if err := d.Decode(&body); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, r := range body.ResourceMetrics {
			for _, m := range r.ScopeMetrics[0].Metrics {
				sent[m.Name+"|"+m.Unit] = append(append(m.Sum.DataPoints, m.Gauge.DataPoints...), m.Histogram.DataPoints...)[0]
			}
		}
	}
	for name, want := range map[string]string{ // the value or the count, and attributes
		"mcp.server.operation.duration|s":   "02 mcp.method.name=tools/call",
		"mcp.server.operation.errors|":      "2 mcp.method.name=tools/call error.type=policy",
		"mcp.client.session.duration|s":     "01 server=s",
		"patchbay.call.duration|s":          "02 server=s mcp.method.name=tools/call gen_ai.tool.name=other",
		"patchbay.team.calls|":              "2 outcome=policy team=dev",
		"patchbay.queue.duration|s":         "01 server=s",
		"patchbay.policy.decisions|":        "2 effect=deny rule=no x",
		"patchbay.upstream.state|":          "1 server=s state=ready",
		"patchbay.upstream.memory.bytes|By": "4 server=s",
		"patchbay.limit.refused|":           "0",
	} {
		p, ok := sent[name]
		text := fmt.Sprint(p.AsDouble, p.Count)
		for _, a := range p.Attributes {
			text += " " + a.Key + "=" + a.Value.StringValue
		}
		if !ok || strings.ReplaceAll(text, " 0", "0") != want {
			t.Errorf("%s is %q, want %q", name, text, want)
		}
	}
	if len(sent) < 12 {
		t.Errorf("only %v", sent)
	}
}

// The lines of the audit log name the trace of a call whose caller began none, and its state has
// metrics.
func TestAuditOfSpans(t *testing.T) {
	url, got := collector(t)
	p, _ := program()
	log := filepath.Join(t.TempDir(), "audit.jsonl")
	c, err := New(Config{Audit: log, File: &deploy.File{Telemetry: &deploy.Telemetry{OTLP: url}}}, p)
	if err != nil {
		t.Fatal(err)
	}
	counters := new(metrics.Counters)
	c.Count(counters)
	list, err := c.Front()
	if err != nil {
		t.Fatal(err)
	}
	calls(append(list, c.Around(func(string) Server { return Server{} })("s"))...)
	text := httptest.NewRecorder()
	counters.ServeHTTP(text, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(text.Body.String(), "\npatchbay_audit_lines_dropped_total 0\n") {
		t.Errorf("the metrics are %s", text.Body)
	}
	c.Close()
	spans, _ := spansOf(t, got())
	traces, lines := map[string]bool{}, 0
	for _, s := range spans {
		traces[s.TraceID] = true
	}
	for e, err := range audit.Read(log) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != audit.CallBegin && e.Kind != audit.CallEnd {
			continue
		}
		if lines++; !traces[e.Trace] {
			t.Errorf("a line has the trace %q, the spans have %v", e.Trace, traces)
		}
	}
	if len(traces) != 2 || lines != 4 {
		t.Errorf("%d traces, %d lines", len(traces), lines)
	}
}

// The records of a call have one trace: its line in the access log, its lines in the audit log and what
// its tool logs. Without a span it is that of the caller, in _meta or in the HTTP header.
func TestTraceOfRecords(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	const parent = "00-" + id + "-00f067aa0ba902b7-01"
	url, got := collector(t)
	for _, tt := range []struct {
		name         string
		to           *deploy.Telemetry
		meta, header string
		want         string // empty: that of the span
		none         bool
	}{
		{"spans", &deploy.Telemetry{OTLP: url}, "", "", "", false},
		{"spans in a trace", &deploy.Telemetry{OTLP: url}, parent, "", id, false},
		{"_meta", nil, parent, "", id, false},
		{"a header", nil, "", parent, id, false},
		{"a trace that is not valid", nil, "", "00-" + strings.Repeat("0", 32) + "-00f067aa0ba902b7-01", "", true},
		{"nothing", nil, "", "", "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, lines := program()
			var said strings.Builder
			p.Logger = slog.New(telemetry.LogHandler(slog.NewTextHandler(&said, nil)))
			file := filepath.Join(t.TempDir(), "audit.jsonl")
			c, err := New(Config{Log: "-", Audit: file, HTTP: true, File: &deploy.File{Telemetry: tt.to}}, p)
			if err != nil {
				t.Fatal(err)
			}
			list, err := c.Own("s", Server{})
			if err != nil {
				t.Fatal(err)
			}
			srv := &mcp.Server{Name: "s"}
			mcp.AddTool(srv, mcp.Tool{Name: "x"}, func(ctx context.Context, _ struct{}) (string, error) {
				p.Logger.InfoContext(ctx, "in the tool")
				return "done", nil
			})
			srv.Use(list...)
			var o listen.Options
			c.Listen(&o)
			hs := httptest.NewServer(o.Around("http", srv))
			defer hs.Close()
			header, meta := http.Header{}, mcp.Meta{}
			if tt.header != "" {
				header.Set("Traceparent", tt.header)
			}
			if tt.meta != "" {
				meta["traceparent"] = json.RawMessage(strconv.Quote(tt.meta))
			}
			s, err := (&mcp.Client{Header: header}).Dial(t.Context(), hs.URL)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.CallTool(t.Context(), "x", nil, mcp.WithMeta(meta)); err != nil {
				t.Fatal(err)
			}
			s.Close()
			hs.Close()
			c.Close()
			want := tt.want
			if want == "" && !tt.none {
				spans, _ := spansOf(t, got())
				for _, s := range spans {
					if s.Name == "tools/call x" {
						want = s.TraceID
					}
				}
			}
			var access struct{ Trace string }
			for line := range strings.Lines(lines.String()) {
				if strings.Contains(line, `"tool":"x"`) && json.Unmarshal([]byte(line), &access) != nil {
					t.Errorf("a line is %s", line)
				}
			}
			if access.Trace != want || !tt.none && want == "" {
				t.Errorf("the access log has the trace %q, want %q:\n%s", access.Trace, want, lines)
			}
			for e, err := range audit.Read(file) {
				if err != nil {
					t.Fatal(err)
				}
				if (e.Kind == audit.CallBegin || e.Kind == audit.CallEnd) && e.Trace != want {
					t.Errorf("the audit log has the trace %q, want %q", e.Trace, want)
				}
			}
			if strings.Contains(said.String(), "trace_id=") == tt.none || !tt.none && !strings.Contains(said.String(), "trace_id="+want) {
				t.Errorf("the tool logs %q, want the trace %q", said.String(), want)
			}
		})
	}
}

// The variables of OpenTelemetry count if gateway.yaml does not name a collector. Wrong ones are a
// warning.
func TestTelemetryOfEnvironment(t *testing.T) {
	url, got := collector(t)
	for _, tt := range []struct {
		name    string
		file    *deploy.File
		set     map[string]string
		to      string
		warning string
	}{
		{"nothing", nil, nil, "", ""},
		{"the endpoint", nil, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url}, url, ""},
		{"a file without telemetry", &deploy.File{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url}, url, ""},
		{"the file before the endpoint", &deploy.File{Telemetry: &deploy.Telemetry{OTLP: url}}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"}, url, ""},
		{"disabled", nil, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_SDK_DISABLED": "true"}, "", ""},
		{"not a URL", nil, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "localhost"}, "", "no telemetry is sent: OTEL_EXPORTER_OTLP_ENDPOINT: the endpoint is not a URL"},
		{"gRPC", nil, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", `no telemetry is sent: OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not supported`},
		{"a header", nil, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_EXPORTER_OTLP_HEADERS": "a=%0a"}, "", `no telemetry is sent: the header "a" is not valid`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
			for name, value := range tt.set {
				t.Setenv(name, value)
			}
			p, _ := program()
			said := new(lines)
			p.Talk = &terminal.Talk{W: said}
			c, err := New(Config{File: tt.file}, p)
			if err != nil {
				t.Fatal(err)
			}
			if s := c.Telemetry(); tt.to == "" && s != nil || tt.to != "" && (s == nil || s.Endpoint != tt.to) {
				t.Errorf("telemetry goes to %+v, want %q", s, tt.to)
			}
			if text := said.text.String(); tt.warning == "" && text != "" || !strings.Contains(text, tt.warning) {
				t.Errorf("it says %q, want %q", text, tt.warning)
			}
			c.Close()
		})
	}
	if got() != "" {
		t.Errorf("without calls there are spans: %s", got())
	}
}

// A collector that does not answer delays neither a call nor, for more than a second, the end.
func TestSilentCollector(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer srv.Close()
	defer close(release)
	p, _ := program()
	c, err := New(Config{File: &deploy.File{Telemetry: &deploy.Telemetry{OTLP: srv.URL}}}, p)
	if err != nil {
		t.Fatal(err)
	}
	front, err := c.Front()
	if err != nil {
		t.Fatal(err)
	}
	if first, second := calls(front...); first != nil || second != nil {
		t.Error(first, second)
	}
	start := time.Now()
	c.Close()
	if took := time.Since(start); took < lastTime/2 || took > 20*lastTime {
		t.Errorf("the end takes %v, want about %v", took, lastTime)
	}
	if s := c.Telemetry(); s.Sent != 0 || s.Lost != 2 {
		t.Errorf("the state is %+v", s)
	}
}

// The headers of gateway.yaml go to the collector with each request. A wrong one is a fault at its place.
func TestHeadersForCollector(t *testing.T) {
	keys := make(chan string, 10)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { keys <- r.Header.Get("X-Key") }))
	t.Cleanup(far.Close)
	t.Setenv("CHAIN_TEST_KEY", "sesame")
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	write(t, path, "telemetry:\n  otlp: "+far.URL+"\n  headers: {X-Key: '${CHAIN_TEST_KEY}'}\n")
	p, _ := program()
	f, err := p.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{HTTP: true, File: f}, p)
	if err != nil {
		t.Fatal(err)
	}
	front, err := c.Front()
	if err != nil {
		t.Fatal(err)
	}
	srv := &mcp.Server{Name: "s"}
	mcp.AddTool(srv, mcp.Tool{Name: "x"}, func(context.Context, struct{}) (string, error) { return "", nil })
	if _, err := front[0](srv).Handle(t.Context(), &mcp.Request{Method: "tools/list"}); err != nil {
		t.Fatal(err)
	}
	c.Close()
	if len(keys) == 0 {
		t.Fatal("the collector got nothing")
	}
	for len(keys) > 0 {
		if key := <-keys; key != "sesame" {
			t.Errorf("the collector got the key %q", key)
		}
	}
	write(t, path, "telemetry:\n  otlp: "+far.URL+"\n  headers: {'X Key': '${CHAIN_TEST_KEY}'}\n")
	if _, err := p.Load(path); err == nil || !strings.Contains(err.Error(), `gateway.yaml:3:12: telemetry.headers: the header "X Key" is not valid in HTTP`) || strings.Contains(err.Error(), "sesame") {
		t.Errorf("a wrong header: %v", err)
	}
}
