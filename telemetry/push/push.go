// Package push turns the counters of package metrics into what [otlp.Options.Metrics] sends to a
// collector:
//
//	o := otlp.Options{Endpoint: "http://localhost:4318"}
//	o.Metrics = func() []otlp.Metric { return push.Metrics(counters) }
//
// # Guarantees
//
//   - A metric has the name of /metrics with dots, without the ending of its unit or of a counter:
//     mcp.server.operation.duration. A collector that passes it on to Prometheus as usual gives it the
//     name of /metrics again.
//   - Attributes that OpenTelemetry knows have its names, such as gen_ai.tool.name. Others are the labels.
//   - Metrics without a value are left out, and process_start_time_seconds, since each sum has its start.
package push

import (
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/telemetry/otlp"
)

// attributeKeys are the attributes whose names differ from those of labels.
var attributeKeys = map[string]string{
	"mcp_method_name": "mcp.method.name", "mcp_protocol_version": "mcp.protocol.version", "gen_ai_tool_name": "gen_ai.tool.name", "error_type": "error.type",
}

// began is when counting began, at the latest.
var began = time.Now()

// Metrics returns the state of the counters as metrics of OpenTelemetry, with sums since the start of
// the process. Nil counters have none.
func Metrics(c *metrics.Counters) (out []otlp.Metric) {
	if c == nil {
		return nil
	}
	for _, f := range c.Families() {
		if len(f.Samples) == 0 || f.Name == "process_start_time_seconds" {
			continue
		}
		m := otlp.Metric{Name: openName(f.Metric), Description: f.Help, Unit: map[string]string{"seconds": "s", "bytes": "By"}[f.Unit]}
		m.Kind = map[string]otlp.Kind{"counter": otlp.Sum, "gauge": otlp.Gauge, "histogram": otlp.Histogram}[f.Type]
		for _, sample := range f.Samples {
			p := otlp.Point{Value: sample.Value, Bounds: f.Bounds, Counts: sample.Counts, Sum: sample.Sum}
			if m.Kind != otlp.Gauge {
				p.Start = began
			}
			for i, v := range sample.Labels {
				if v == "" {
					continue
				}
				key := f.Labels[i]
				if other := attributeKeys[key]; other != "" {
					key = other
				}
				p.Attributes = append(p.Attributes, attribute.String(key, v))
			}
			m.Points = append(m.Points, p)
		}
		out = append(out, m)
	}
	return out
}

// openName returns the name of a metric in OpenTelemetry: with dots, and without the unit of time.
func openName(m metrics.Metric) string {
	name := strings.TrimSuffix(strings.TrimSuffix(m.Name, "_total"), "_seconds")
	return strings.ReplaceAll(name, "_", ".")
}
