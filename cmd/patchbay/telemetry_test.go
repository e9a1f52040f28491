package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/patchbay-dev/patchbay/mcp"
)

// collector is a collector of OpenTelemetry.
type collector struct {
	url  string
	busy atomic.Bool // it answers 503

	keep atomic.Pointer[chan struct{}] // it answers no request before this is closed; nil: it answers
	kept atomic.Int64                  // requests that it has kept

	mu    sync.Mutex
	spans []collected // guarded by mu
	asked int         // number of requests; guarded by mu
}

// collected is a span that a collector got.
type collected struct {
	TraceID, SpanID, ParentSpanID, Name string
	Kind                                int
	Attributes                          []collectedAttribute
	process                             string // id of the process that made it
}

type collectedAttribute struct {
	Key   string
	Value struct{ StringValue string }
}

// attribute returns the value of a text, empty if there is none.
func (s collected) attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue
		}
	}
	return ""
}

func newCollector(t *testing.T) *collector {
	c := new(collector)
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	c.url = srv.URL
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ResourceSpans []struct {
			Resource   struct{ Attributes []collectedAttribute }
			ScopeSpans []struct{ Spans []collected }
		}
	}
	if until := c.keep.Load(); until != nil {
		c.kept.Add(1)
		select {
		case <-*until:
		case <-r.Context().Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.busy.Load() {
		http.Error(w, "too much to do", http.StatusServiceUnavailable)
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, r := range body.ResourceSpans {
		id := ""
		for _, a := range r.Resource.Attributes {
			if a.Key == "service.instance.id" {
				id = a.Value.StringValue
			}
		}
		for _, s := range r.ScopeSpans {
			for _, span := range s.Spans {
				span.process = id
				c.spans = append(c.spans, span)
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, "{}")
}

// calls returns the spans of calls of tools.
func (c *collector) calls() (out []collected) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if strings.HasPrefix(s.Name, "tools/call ") {
			out = append(out, s)
		}
	}
	return out
}

// deployment writes a gateway.yaml that sends telemetry to the collector, and returns its path.
func (c *collector) deployment(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte("telemetry: {otlp: '"+c.url+"'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A call through two gateways is one tree of spans, whether its trace begins in _meta or in the HTTP
// header of the first request.
func TestOneTree(t *testing.T) {
	runtimeFolder(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
	c := newCollector(t)
	behind := startUp(t, map[string]any{"all": map[string]any{"builtin": "everything"}}, "--gateway", c.deployment(t))
	front := startUp(t, map[string]any{"far": map[string]any{"url": behind.url}}, "--gateway", c.deployment(t))
	const traces, parent = "0af7651916cd43dd8448eb211c80319%d", "b7ad6b7169203331"
	for i, revisions := range [][]mcp.Revision{{mcp.V2025_06_18}, {mcp.V2026_07_28}, {mcp.V2026_07_28}} {
		traceparent := "00-" + fmt.Sprintf(traces, i) + "-" + parent + "-01"
		option := mcp.WithMeta(mcp.Meta{"traceparent": json.RawMessage(`"` + traceparent + `"`)})
		if i == 2 {
			option = mcp.WithHeader(http.Header{"Traceparent": {traceparent}})
		}
		s, err := (&mcp.Client{Name: "c", Revisions: revisions}).Dial(t.Context(), front.url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.CallTool(t.Context(), "far_all_echo", map[string]any{"message": "hi"}, option); err != nil {
			t.Error(err)
		}
		s.Close()
	}
	until(t, "the spans of three calls are there", func() bool { return len(c.calls()) >= 12 })
	for i := range 3 {
		var tree []string
		first := ""
		for id := parent; ; {
			all := c.calls()
			next := slices.IndexFunc(all, func(s collected) bool { return s.TraceID == fmt.Sprintf(traces, i) && s.ParentSpanID == id })
			if next < 0 {
				break
			}
			s := all[next]
			if first == "" {
				first = s.process
			}
			tree = append(tree, fmt.Sprint(s.Kind, " ", s.Name, " ", s.process == first))
			id = s.SpanID
		}
		want := []string{"2 tools/call far_all_echo true", "3 tools/call all_echo true", "2 tools/call all_echo false", "3 tools/call echo false"}
		if !slices.Equal(tree, want) {
			t.Errorf("call %d is the tree %q, want %q", i, tree, want)
		}
	}
}

// A collector that is busy, or does not answer, delays no call, and shows in status and once on standard error. At the end
// the spans that are left are sent.
func TestBusyCollector(t *testing.T) {
	runtimeFolder(t)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
	c := newCollector(t)
	c.busy.Store(true)
	r := startUp(t, map[string]any{"all": map[string]any{"builtin": "everything"}}, "--gateway", c.deployment(t))
	s, err := (&mcp.Client{Name: "c"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	echo := func() {
		t.Helper()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, errors.New("the call waits for the collector"))
		defer cancel()
		if _, err := s.CallTool(ctx, "all_echo", map[string]any{"message": "hi"}); err != nil {
			t.Error(err)
		}
	}
	status := func() string {
		var out strings.Builder
		run(t.Context(), []string{"status", "-s", r.url}, strings.NewReader(""), &out, io.Discard)
		return out.String()
	}
	for range 20 {
		echo()
	}
	until(t, "status says that the collector is busy", func() bool {
		return strings.Contains(status(), "telemetry to "+c.url+": 0 spans sent: the collector answered 503 Service Unavailable: too much to do")
	})
	until(t, "there were three attempts", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.asked >= 3
	})
	if n := strings.Count(r.stderr.String(), "telemetry is not delivered"); n != 1 {
		t.Errorf("%d warnings in %s", n, r.stderr)
	}
	answers := make(chan struct{})
	c.keep.Store(&answers)
	until(t, "the collector keeps a request", func() bool {
		echo()
		return c.kept.Load() > 0
	})
	for range 20 { // which the collector answers after the calls
		echo()
	}
	c.keep.Store(nil)
	close(answers)
	c.busy.Store(false)
	until(t, "the spans are sent", func() bool { return len(c.calls()) >= 40 })
	echo()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Skip(err) // Windows
	}
	until(t, "the last spans are there", func() bool { return len(c.calls()) >= 42 })
}

// Lines of the log that are about a call have the ids of its span.
func TestLogNamesSpan(t *testing.T) {
	var stderr strings.Builder
	a := newApp(t.Context(), strings.NewReader(""), io.Discard, &stderr)
	span := oteltrace.NewSpanContext(oteltrace.SpanContextConfig{TraceID: oteltrace.TraceID{1}, SpanID: oteltrace.SpanID{2}})
	a.logger().WarnContext(oteltrace.ContextWithSpanContext(t.Context(), span), "late")
	if want := "trace_id=" + span.TraceID().String() + " span_id=" + span.SpanID().String(); !strings.Contains(stderr.String(), want) {
		t.Errorf("the log is %q, want %s", &stderr, want)
	}
}

// The last metrics of a program that cannot begin do not need what it has not made yet.
func TestTelemetryOfNoStart(t *testing.T) {
	runtimeFolder(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {}))
	defer collector.Close()
	file := filepath.Join(t.TempDir(), "mcp.json")
	writeConfig(t, file, map[string]any{"all": map[string]any{"builtin": "everything"}})
	for _, args := range [][]string{
		{"up", "--http", taken.Addr().String(), "--config", file},
		{"bridge", "--http", taken.Addr().String(), "-s", "everything"},
		{"serve", "everything", "--http", taken.Addr().String()},
	} {
		cmd, stderr := program(t, args...)
		cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL)
		cmd.Run()
		if cmd.ProcessState.ExitCode() != exitLocal || !strings.Contains(stderr.String(), taken.Addr().String()) || strings.Contains(stderr.String(), "goroutine") {
			t.Errorf("%s: exit code %d, %s", args[0], cmd.ProcessState.ExitCode(), stderr)
		}
	}
}
