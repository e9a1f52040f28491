package chain

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/patchbay-dev/patchbay/metrics"
	"github.com/patchbay-dev/patchbay/telemetry/otlp"
)

// attributeKeys are the attributes whose names differ from those of labels.
var attributeKeys = map[string]string{
	"mcp_method_name": "mcp.method.name", "mcp_protocol_version": "mcp.protocol.version", "gen_ai_tool_name": "gen_ai.tool.name", "error_type": "error.type",
}

// metrics returns the counters as metrics of OpenTelemetry. Prometheus gets the names of /metrics
// from a collector that translates them as usual.
func (s *sender) metrics() (out []otlp.Metric) {
	c := s.counters.Load()
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
				p.Start = s.began
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
