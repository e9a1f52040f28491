package otlp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
)

// Kind is the kind of a [Metric].
type Kind int

const (
	Sum       Kind = iota // a total that only grows
	UpDown                // a total that grows and shrinks
	Gauge                 // a value of now
	Histogram             // counts by range of value
)

// Metric is the state of one metric.
type Metric struct {
	Name        string // such as mcp.server.operation.duration
	Unit        string // of UCUM, such as s, By or {call}; empty: none
	Description string // empty: none
	Kind        Kind
	Points      []Point // one for each set of attributes
}

// Point is the value of a metric for one set of attributes.
type Point struct {
	Attributes []attribute.KeyValue
	Start      time.Time // when counting began; zero for a Gauge
	Value      float64   // of all kinds but Histogram

	// The members of a Histogram. Counts has one more member than Bounds: Counts[i] is the number
	// of values above Bounds[i-1] up to Bounds[i]. Bounds must increase.
	Bounds []float64
	Counts []uint64
	Sum    float64 // of all values
}

// check returns what is wrong with a metric.
func (m *Metric) check() error {
	if m.Name == "" {
		return errors.New("it has no name")
	}
	if m.Kind < Sum || m.Kind > Histogram {
		return fmt.Errorf("there is no kind %d", m.Kind)
	}
	for _, p := range m.Points {
		if m.Kind != Histogram {
			continue
		}
		if len(p.Counts) != len(p.Bounds)+1 {
			return fmt.Errorf("a point has %d counts for %d bounds; it needs one more than bounds", len(p.Counts), len(p.Bounds))
		}
		for i, b := range p.Bounds {
			if math.IsNaN(b) || i > 0 && b <= p.Bounds[i-1] {
				return fmt.Errorf("the bounds of a point do not increase at %v", b)
			}
		}
	}
	return nil
}

type (
	metricsRequest struct {
		ResourceMetrics []resourceMetrics `json:"resourceMetrics"`
	}
	resourceMetrics struct {
		Resource     json.RawMessage `json:"resource"`
		ScopeMetrics []scopeMetrics  `json:"scopeMetrics"`
		SchemaURL    string          `json:"schemaUrl,omitempty"`
	}
	scopeMetrics struct {
		Scope   json.RawMessage `json:"scope"`
		Metrics []metricJSON    `json:"metrics"`
	}
	metricJSON struct {
		Name        string    `json:"name"`
		Description string    `json:"description,omitempty"`
		Unit        string    `json:"unit,omitempty"`
		Sum         *dataJSON `json:"sum,omitempty"`
		Gauge       *dataJSON `json:"gauge,omitempty"`
		Histogram   *dataJSON `json:"histogram,omitempty"`
	}
	dataJSON struct {
		Points      []pointJSON `json:"dataPoints"`
		Temporality int         `json:"aggregationTemporality,omitempty"`
		Monotonic   bool        `json:"isMonotonic,omitempty"`
	}
	pointJSON struct {
		Attributes json.RawMessage `json:"attributes,omitempty"`
		Start      uint64          `json:"startTimeUnixNano,string,omitempty"`
		Time       uint64          `json:"timeUnixNano,string"`
		Double     *double         `json:"asDouble,omitempty"`
		Count      *unsigned       `json:"count,omitempty"`
		Sum        *double         `json:"sum,omitempty"`
		Counts     []unsigned      `json:"bucketCounts,omitempty"`
		Bounds     []double        `json:"explicitBounds,omitempty"`
	}
)

// double is a number that may be infinite or none.
type double float64

// MarshalJSON implements [json.Marshaler].
func (d double) MarshalJSON() ([]byte, error) { return appendDouble(nil, float64(d)), nil }

// unsigned is a 64-bit number in a list.
type unsigned uint64

// MarshalJSON implements [json.Marshaler].
func (u unsigned) MarshalJSON() ([]byte, error) {
	return append(strconv.AppendUint([]byte(`"`), uint64(u), 10), '"'), nil
}

// metricsScope is the instrumentation scope of the metrics.
const metricsScope = "github.com/patchbay-dev/patchbay/telemetry/otlp"

// cumulative is the aggregation temporality of sums that count from the start.
const cumulative = 2

// writeMetrics writes a request with metrics that check has passed.
func writeMetrics(w io.Writer, r *resource.Resource, metrics []Metric, now time.Time) error {
	scope := scopeMetrics{Scope: appendScope(nil, instrumentation.Scope{Name: metricsScope}), Metrics: make([]metricJSON, 0, len(metrics))}
	for i := range metrics {
		m := &metrics[i]
		out := metricJSON{Name: m.Name, Description: m.Description, Unit: m.Unit}
		data := &dataJSON{Points: make([]pointJSON, 0, len(m.Points))}
		switch m.Kind {
		case Gauge:
			out.Gauge = data
		case Histogram:
			out.Histogram, data.Temporality = data, cumulative
		default:
			out.Sum, data.Temporality, data.Monotonic = data, cumulative, m.Kind == Sum
		}
		for _, p := range m.Points {
			data.Points = append(data.Points, encodePoint(m.Kind, &p, now))
		}
		scope.Metrics = append(scope.Metrics, out)
	}
	return json.NewEncoder(w).Encode(metricsRequest{[]resourceMetrics{{appendResource(nil, r), []scopeMetrics{scope}, r.SchemaURL()}}})
}

func encodePoint(kind Kind, p *Point, now time.Time) pointJSON {
	out := pointJSON{Start: nanos(p.Start), Time: nanos(now)}
	if len(p.Attributes) > 0 {
		out.Attributes = appendKeyValues(nil, p.Attributes)
	}
	if kind != Histogram {
		v := double(p.Value)
		out.Double = &v
		return out
	}
	var n unsigned
	for _, c := range p.Counts {
		n += unsigned(c)
		out.Counts = append(out.Counts, unsigned(c))
	}
	for _, b := range p.Bounds {
		out.Bounds = append(out.Bounds, double(b))
	}
	sum := double(p.Sum)
	out.Count, out.Sum = &n, &sum
	return out
}
