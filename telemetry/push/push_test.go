package push_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/telemetry/otlp"
	"github.com/patchbay-dev/patchbay/telemetry/push"
)

// Names, units, kinds and attributes are those of OpenTelemetry; sums have a start and gauges none.
func TestMetrics(t *testing.T) {
	c := &metrics.Counters{Version: "v1"}
	h := c.Front()(c.Server("s")(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return mcp.RawResult(`{"isError":true}`), nil
	})))
	h.Handle(t.Context(), &mcp.Request{Method: "tools/call", Params: []byte(`{"name":"t"}`)})
	got := map[string]otlp.Metric{}
	for _, m := range push.Metrics(c) {
		got[m.Name] = m
		for _, p := range m.Points {
			if p.Start.IsZero() != (m.Kind == otlp.Gauge) || p.Start.After(time.Now()) {
				t.Errorf("%s begins at %v", m.Name, p.Start)
			}
		}
	}
	for name, want := range map[string]string{
		"patchbay.call.duration":      "s 3 [{server s} {mcp.method.name tools/call} {gen_ai.tool.name t}]",
		"patchbay.call.errors":        " 0 [{server s} {mcp.method.name tools/call} {gen_ai.tool.name t} {error.type tool_error}]",
		"patchbay.call.request.bytes": "By 0 [{server s} {mcp.method.name tools/call} {gen_ai.tool.name t}]",
		"patchbay.calls.open":         " 2 [{server s} {mcp.method.name tools/call} {gen_ai.tool.name t}]",
	} {
		m := got[name]
		if len(m.Points) != 1 {
			t.Errorf("%s has %d points", name, len(m.Points))
			continue
		}
		var attrs []string
		for _, a := range m.Points[0].Attributes {
			attrs = append(attrs, fmt.Sprintf("{%s %s}", a.Key, a.Value.AsString()))
		}
		if s := fmt.Sprintf("%s %d [%s]", m.Unit, m.Kind, strings.Join(attrs, " ")); s != want {
			t.Errorf("%s: %s, want %s", name, s, want)
		}
	}
	if _, ok := got["process.start.time"]; ok || len(push.Metrics(nil)) != 0 {
		t.Error("the start of the process is a metric, or nil counters have some")
	}
}
