package metrics

import (
	"bytes"
	"mime"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Metric describes a metric of Prometheus.
type Metric struct {
	Name   string // as in the text; a counter ends in _total
	Type   string // counter, gauge or histogram
	Unit   string // seconds, bytes or empty
	Labels []string
	Help   string
}

// Metrics returns the metrics of [Counters.ServeHTTP], in their order.
func Metrics() []Metric {
	out := make([]Metric, len(metrics))
	for i := range metrics {
		out[i] = metrics[i].Metric
	}
	return out
}

// The labels of requests, calls of a server, and errors.
var (
	byMethod      = []string{"mcp_method_name"}
	byMethodError = []string{"mcp_method_name", "error_type"}
	byTool        = []string{"server", "mcp_method_name", "gen_ai_tool_name"}
	byToolError   = []string{"server", "mcp_method_name", "gen_ai_tool_name", "error_type"}
	byServer      = []string{"server"}
)

// metrics are the metrics with the functions that write their samples.
var metrics = []struct {
	Metric
	write func(*page)
}{
	{Metric{"mcp_server_operation_duration_seconds", "histogram", "seconds", byMethod, "Requests of clients, until their answer."},
		func(p *page) { p.of(p.requests, (*page).durations) }},
	{Metric{"mcp_server_operation_errors_total", "counter", "", byMethodError, "Failed requests of clients."},
		func(p *page) { p.of(p.requests, (*page).errors) }},
	{Metric{"mcp_client_operation_duration_seconds", "histogram", "seconds", byTool, "Requests to servers, until their answer."},
		func(p *page) { p.of(p.upstream, (*page).durations) }},
	{Metric{"mcp_client_operation_errors_total", "counter", "", byToolError, "Failed requests to servers."},
		func(p *page) { p.of(p.upstream, (*page).errors) }},
	{Metric{"patchbay_call_duration_seconds", "histogram", "seconds", byTool, "Calls of callers, by server, until their answer."},
		func(p *page) { p.of(p.calls, (*page).durations) }},
	{Metric{"patchbay_call_errors_total", "counter", "", byToolError, "Failed calls of callers, by server; refused ones too."},
		func(p *page) { p.of(p.calls, (*page).errors) }},
	{Metric{"patchbay_call_canceled_total", "counter", "", byTool, "Calls that their callers canceled."},
		func(p *page) { p.of(p.calls, func(p *page, r *row) { p.count(r.labels, r.kinds[Canceled]) }) }},
	{Metric{"patchbay_call_request_bytes_total", "counter", "bytes", byTool, "Params of calls."},
		func(p *page) { p.of(p.calls, func(p *page, r *row) { p.count(r.labels, r.in) }) }},
	{Metric{"patchbay_call_response_bytes_total", "counter", "bytes", byTool, "Results of servers outside of this process."},
		func(p *page) { p.of(p.calls, func(p *page, r *row) { p.count(r.labels, r.out) }) }},
	{Metric{"patchbay_calls_open", "gauge", "", byTool, "Calls that are running."},
		func(p *page) { p.of(p.calls, func(p *page, r *row) { p.sample("", r.labels, float64(r.open)) }) }},
	{Metric{"patchbay_limit_refused_total", "counter", "", nil, "Requests of clients over a rate limit."},
		func(p *page) {
			n := uint64(0)
			for i := range p.requests {
				n += p.requests[i].kinds[Limited]
			}
			p.count("", n)
		}},
	{Metric{"patchbay_upstream_state", "gauge", "", []string{"server", "state"}, "1 for the current state of a server."},
		func(p *page) {
			for _, u := range p.servers {
				p.sample("", labels("server", u.Name, "state", u.State), 1)
			}
		}},
	{Metric{"patchbay_upstream_connections", "gauge", "", byServer, "Open connections to a server."},
		func(p *page) { p.states(func(u *Upstream) float64 { return float64(u.Connections) }) }},
	{Metric{"patchbay_upstream_children", "gauge", "", byServer, "Running processes of a server."},
		func(p *page) { p.states(func(u *Upstream) float64 { return float64(u.Processes) }) }},
	{Metric{"patchbay_upstream_memory_bytes", "gauge", "bytes", byServer, "Private memory of the processes of a server; 0: unknown."},
		func(p *page) { p.states(func(u *Upstream) float64 { return float64(u.MemoryBytes) }) }},
	{Metric{"patchbay_upstream_restarts_total", "counter", "", byServer, "Starts of a server after its first."},
		func(p *page) { p.states(func(u *Upstream) float64 { return float64(u.Restarts) }) }},
	{Metric{"patchbay_build_info", "gauge", "", []string{"version", "go"}, "1, with the versions of the program and of Go."},
		func(p *page) { p.sample("", labels("version", p.version, "go", runtime.Version()), 1) }},
	{Metric{"process_start_time_seconds", "gauge", "seconds", nil, "When the program started, in Unix time."},
		func(p *page) { p.sample("", "", float64(started.UnixMilli())/1000) }},
}

var started = time.Now()

// bounds are the upper bounds of the buckets of histograms, in seconds: those of the MCP conventions
// of OpenTelemetry, and finer ones below.
var bounds = []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}

// ServeHTTP answers GET with the counts since the start as text for Prometheus: OpenMetrics 1.0.0 if
// the request accepts it, otherwise the text format 0.0.4. [Metrics] lists the names.
//
// It has no access control: serve it on a listener of its own, or behind your own.
func (c *Counters) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, r.URL.Path+" is read with GET", http.StatusMethodNotAllowed)
		return
	}
	open := acceptsOpenMetrics(r.Header.Values("Accept"))
	kind := "text/plain; version=0.0.4; charset=utf-8"
	if open {
		kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(c.text(open)) // the client may have disconnected
}

// acceptsOpenMetrics reports whether a header Accept prefers OpenMetrics to plain text.
func acceptsOpenMetrics(accept []string) bool {
	open, plain := 0.0, 0.0
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		switch version := params["version"]; {
		case name == "application/openmetrics-text" && (version == "" || version == "1.0.0"):
			open = max(open, q)
		case name == "text/plain":
			plain = max(plain, q)
		}
	}
	return open > 0 && open >= plain
}

// page is a text while it is written.
type page struct {
	bytes.Buffer
	version                   string
	requests, calls, upstream []row
	servers                   []Upstream
	name                      string   // of the metric that is written
	bounds                    []string // the bounds of histograms
}

// row has the counts behind samples.
type row struct {
	labels string
	*tally
}

// text returns the text of all metrics.
func (c *Counters) text(open bool) []byte {
	now := time.Now()
	p := &page{version: c.Version}
	for _, bound := range bounds {
		text := strconv.FormatFloat(bound, 'f', -1, 64)
		if open && !strings.Contains(text, ".") {
			text += ".0"
		}
		p.bounds = append(p.bounds, text)
	}
	if c.Upstreams != nil {
		p.servers = c.Upstreams()
	}
	for i := range c.front.methods {
		if s := c.front.methods[i].Load(); s != nil {
			t := new(tally)
			s.addTo(t, Total, now)
			p.requests = append(p.requests, row{labels(byMethod[0], methods[i]), t})
		}
	}
	for _, s := range c.all() {
		rows := func(t *table) (out []row) {
			t.each(Total, now, func(method, tool string, t *tally) {
				out = append(out, row{labels(byTool[0], s.name, byTool[1], method, byTool[2], tool), t})
			})
			return out
		}
		p.calls = append(p.calls, rows(&s.callers)...)
		p.upstream = append(p.upstream, rows(&s.upstream)...)
	}
	for i := range metrics {
		m := &metrics[i]
		family := m.Name
		if open {
			family = strings.TrimSuffix(family, "_total")
		}
		p.name = m.Name
		p.WriteString("# HELP " + family + " " + m.Help + "\n# TYPE " + family + " " + m.Type + "\n")
		if open && m.Unit != "" {
			p.WriteString("# UNIT " + family + " " + m.Unit + "\n")
		}
		m.write(p)
	}
	if open {
		p.WriteString("# EOF\n")
	}
	return p.Bytes()
}

// of calls write for each row.
func (p *page) of(rows []row, write func(*page, *row)) {
	for i := range rows {
		write(p, &rows[i])
	}
}

// errors writes a sample for each kind of error that has occurred.
func (p *page) errors(r *row) {
	for k := ToolError; k < Canceled; k++ {
		if r.kinds[k] > 0 {
			p.write("", r.labels, "error_type", k.String(), float64(r.kinds[k]))
		}
	}
}

// durations writes a histogram. A bucket of the counts that a bound cuts counts as a whole, by its
// middle.
func (p *page) durations(r *row) {
	sum, b := uint64(0), 0
	for i, bound := range bounds {
		for ; b < buckets && middleOf(b).Seconds() <= bound; b++ {
			sum += r.histogram[b]
		}
		p.write("_bucket", r.labels, "le", p.bounds[i], float64(sum))
	}
	for ; b < buckets; b++ {
		sum += r.histogram[b]
	}
	p.write("_bucket", r.labels, "le", "+Inf", float64(sum))
	p.sample("_sum", r.labels, time.Duration(r.time).Seconds())
	p.sample("_count", r.labels, float64(sum))
}

// states writes a sample for each server behind a gateway.
func (p *page) states(value func(*Upstream) float64) {
	for i := range p.servers {
		p.sample("", labels("server", p.servers[i].Name), value(&p.servers[i]))
	}
}

func (p *page) count(labels string, n uint64) { p.sample("", labels, float64(n)) }

// sample writes a line.
func (p *page) sample(suffix, labels string, value float64) { p.write(suffix, labels, "", "", value) }

// write writes a line with a further label, whose value needs no escapes.
func (p *page) write(suffix, labels, label, text string, value float64) {
	b := append(append(p.AvailableBuffer(), p.name...), suffix...)
	if labels != "" || label != "" {
		b = append(append(b, '{'), labels...)
		if label != "" {
			if labels != "" {
				b = append(b, ',')
			}
			b = append(append(append(append(b, label...), `="`...), text...), '"')
		}
		b = append(b, '}')
	}
	b = strconv.AppendFloat(append(b, ' '), value, 'f', -1, 64)
	p.Write(append(b, '\n'))
}

var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// labels returns names and values as they stand in a sample. Empty values are left out, which is the
// same for Prometheus.
func labels(pairs ...string) string {
	var out []string
	for i := 0; i < len(pairs); i += 2 {
		if v := strings.ToValidUTF8(pairs[i+1], "\uFFFD"); v != "" {
			out = append(out, pairs[i]+`="`+escapes.Replace(v)+`"`)
		}
	}
	return strings.Join(out, ",")
}
