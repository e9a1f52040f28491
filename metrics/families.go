package metrics

import (
	"maps"
	"runtime"
	"slices"
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

// Family is a metric with its values.
type Family struct {
	Metric
	Bounds  []float64 // of a histogram: the upper bounds of its buckets
	Samples []Sample
}

// Sample is the value of a metric for one set of labels.
type Sample struct {
	Labels []string // the values of Metric.Labels, in their order; empty: the sample does not have the label
	Value  float64  // of a counter or a gauge
	Counts []uint64 // of a histogram: by bucket, and at the end those above all bounds
	Sum    float64  // of a histogram: of all values
}

// The labels of requests, calls of a server, and errors.
var (
	byMethod      = []string{"mcp_method_name"}
	byMethodError = []string{"mcp_method_name", "error_type"}
	byTool        = []string{"server", "mcp_method_name", "gen_ai_tool_name"}
	byToolError   = []string{"server", "mcp_method_name", "gen_ai_tool_name", "error_type"}
	byServer      = []string{"server"}
)

// metrics are the metrics with the functions that return their samples.
var metrics = []struct {
	Metric
	samples func(*state) []Sample
}{
	{Metric{"mcp_server_operation_duration_seconds", "histogram", "seconds", byMethod, "Requests of clients, until their answer."},
		func(s *state) []Sample { return durations(s.requests) }},
	{Metric{"mcp_server_operation_errors_total", "counter", "", byMethodError, "Failed requests of clients."},
		func(s *state) []Sample { return failures(s.requests) }},
	{Metric{"mcp_server_session_duration_seconds", "histogram", "seconds", []string{"mcp_protocol_version"}, "Sessions of clients before 2026-07-28 that have ended."},
		func(s *state) []Sample { return durations(s.sessions) }},
	{Metric{"mcp_client_operation_duration_seconds", "histogram", "seconds", byTool, "Requests to servers, until their answer."},
		func(s *state) []Sample { return durations(s.upstream) }},
	{Metric{"mcp_client_operation_errors_total", "counter", "", byToolError, "Failed requests to servers."},
		func(s *state) []Sample { return failures(s.upstream) }},
	{Metric{"mcp_client_session_duration_seconds", "histogram", "seconds", byServer, "Connections to servers that have ended."},
		func(s *state) []Sample { return durations(s.connections) }},
	{Metric{"patchbay_call_duration_seconds", "histogram", "seconds", byTool, "Calls of callers, by server, until their answer."},
		func(s *state) []Sample { return durations(s.calls) }},
	{Metric{"patchbay_call_errors_total", "counter", "", byToolError, "Failed calls of callers, by server; refused ones too."},
		func(s *state) []Sample { return failures(s.calls) }},
	{Metric{"patchbay_call_canceled_total", "counter", "", byTool, "Calls that their callers canceled."},
		func(s *state) []Sample {
			return each(s.calls, func(r *row) float64 { return float64(r.kinds[Canceled]) })
		}},
	{Metric{"patchbay_call_request_bytes_total", "counter", "bytes", byTool, "Params of calls."},
		func(s *state) []Sample { return each(s.calls, func(r *row) float64 { return float64(r.in) }) }},
	{Metric{"patchbay_call_response_bytes_total", "counter", "bytes", byTool, "Results of servers outside of this process."},
		func(s *state) []Sample { return each(s.calls, func(r *row) float64 { return float64(r.out) }) }},
	{Metric{"patchbay_calls_open", "gauge", "", byTool, "Calls that are running."},
		func(s *state) []Sample { return each(s.calls, func(r *row) float64 { return float64(r.open) }) }},
	{Metric{"patchbay_tasks_ended_total", "counter", "", []string{"server", "outcome"}, "Tasks whose end a caller has learned; the outcome is ok, canceled, tool_error or protocol."},
		func(s *state) []Sample { return s.ends }},
	{Metric{"patchbay_team_calls_total", "counter", "", []string{"outcome", "team"}, "Calls of tools by the team of the caller; the outcome is ok, canceled or an error_type."},
		func(s *state) []Sample { return s.teams }},
	{Metric{"patchbay_queue_duration_seconds", "histogram", "seconds", byServer, "Waits for the start of a server, a connection or a turn."},
		func(s *state) []Sample { return durations(s.waits) }},
	{Metric{"patchbay_list_bytes", "gauge", "bytes", byMethod, "The last list that a client got from a gateway."},
		func(s *state) []Sample { return s.lists }},
	{Metric{"patchbay_limit_refused_total", "counter", "", nil, "Requests of clients over a rate limit."},
		func(s *state) []Sample {
			n := uint64(0)
			for i := range s.requests {
				n += s.requests[i].kinds[Limited]
			}
			return []Sample{{Value: float64(n)}}
		}},
	{Metric{"patchbay_auth_refused_total", "counter", "", []string{"error_type"}, "Requests without a valid credential, by the error of their answer."},
		func(s *state) (out []Sample) {
			for _, r := range s.refused {
				out = append(out, Sample{Labels: r.Labels[:1], Value: r.Value})
			}
			return out
		}},
	{Metric{"patchbay_policy_decisions_total", "counter", "", []string{"effect", "rule"}, "Decisions of the policy about requests, by the rule that decided; no rule: the default."},
		func(s *state) []Sample { return s.decisions }},
	{Metric{"patchbay_cache_hits_total", "counter", "", byServer, "Calls, and reads of resources, that the cache of results has answered."},
		func(s *state) []Sample { return s.ofCache("hit") }},
	{Metric{"patchbay_cache_misses_total", "counter", "", byServer, "Calls of read-only tools, and reads that may be cached, that it has not answered."},
		func(s *state) []Sample { return s.ofCache("miss") }},
	{Metric{"patchbay_audit_lag_seconds", "gauge", "seconds", nil, "How long the last write of the audit log took."},
		func(s *state) []Sample { return s.ofAudit(func(a *AuditLog) float64 { return a.Lag.Seconds() }) }},
	{Metric{"patchbay_audit_lines_queued", "gauge", "", nil, "Lines that wait for the audit log."},
		func(s *state) []Sample { return s.ofAudit(func(a *AuditLog) float64 { return float64(a.Queued) }) }},
	{Metric{"patchbay_audit_lines_dropped_total", "counter", "", nil, "Lines that the audit log has lost."},
		func(s *state) []Sample { return s.ofAudit(func(a *AuditLog) float64 { return float64(a.Dropped) }) }},
	{Metric{"patchbay_config_faults", "gauge", "", nil, "Changed files of the configuration that are not, or not all, in use."},
		func(s *state) []Sample { return s.faults }},
	{Metric{"patchbay_upstream_state", "gauge", "", []string{"server", "state"}, "1 for the current state of a server."},
		func(s *state) (out []Sample) {
			for _, u := range s.servers {
				out = append(out, Sample{Labels: []string{u.Name, u.State}, Value: 1})
			}
			return out
		}},
	{Metric{"patchbay_upstream_connections", "gauge", "", byServer, "Open connections to a server."},
		func(s *state) []Sample {
			return s.ofServers(func(u *Upstream) float64 { return float64(u.Connections) })
		}},
	{Metric{"patchbay_upstream_children", "gauge", "", byServer, "Running processes of a server."},
		func(s *state) []Sample { return s.ofServers(func(u *Upstream) float64 { return float64(u.Processes) }) }},
	{Metric{"patchbay_upstream_memory_bytes", "gauge", "bytes", byServer, "Private memory of the processes of a server; 0: unknown."},
		func(s *state) []Sample {
			return s.ofServers(func(u *Upstream) float64 { return float64(u.MemoryBytes) })
		}},
	{Metric{"patchbay_upstream_restarts_total", "counter", "", byServer, "Starts of a server after its first."},
		func(s *state) []Sample { return s.ofServers(func(u *Upstream) float64 { return float64(u.Restarts) }) }},
	{Metric{"patchbay_breaker_state", "gauge", "", []string{"server", "replica"}, "1 while a server or replica gets no calls, because its breaker is open; else 0."},
		func(s *state) (out []Sample) {
			for _, u := range s.servers {
				for _, b := range u.Breakers {
					open := 0.0
					if b.Open {
						open = 1
					}
					out = append(out, Sample{Labels: []string{u.Name, b.Replica}, Value: open})
				}
			}
			return out
		}},
	{Metric{"patchbay_breaker_failures_total", "counter", "", []string{"server", "replica", "kind"}, "Requests that the breaker of a server or replica counts as failed: `lost`, `timeout`, `status`, `internal`, `unusable`, `refused`, `silent`."},
		func(s *state) (out []Sample) {
			for _, u := range s.servers {
				for _, b := range u.Breakers {
					for _, kind := range slices.Sorted(maps.Keys(b.Failures)) {
						out = append(out, Sample{Labels: []string{u.Name, b.Replica, kind}, Value: float64(b.Failures[kind])})
					}
				}
			}
			return out
		}},
	{Metric{"patchbay_build_info", "gauge", "", []string{"version", "go"}, "1, with the versions of the program and of Go."},
		func(s *state) []Sample {
			return []Sample{{Labels: []string{s.version, runtime.Version()}, Value: 1}}
		}},
	{Metric{"process_start_time_seconds", "gauge", "seconds", nil, "When the program started, in Unix time."},
		func(*state) []Sample { return []Sample{{Value: float64(started.UnixMilli()) / 1000}} }},
}

var started = time.Now()

// bounds are the upper bounds of the buckets of histograms, in seconds: those of the MCP conventions
// of OpenTelemetry, and finer ones below.
var bounds = []float64{0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300}

// Families returns all metrics with their values since the start, in the order of [Metrics]. Their
// labels are those of [Counters.ServeHTTP].
func (c *Counters) Families() []Family {
	s := c.state()
	out := make([]Family, len(metrics))
	for i := range metrics {
		out[i] = Family{Metric: metrics[i].Metric, Samples: metrics[i].samples(s)}
		if out[i].Type == "histogram" {
			out[i].Bounds = slices.Clone(bounds)
		}
	}
	return out
}

// state is what the samples of all metrics are made of.
type state struct {
	version                   string
	requests, calls, upstream []row
	sessions                  []row // of clients, by revision
	connections, waits        []row // by server
	lists, decisions, teams   []Sample
	ends                      []Sample // of tasks
	refused, cached, faults   []Sample
	servers                   []Upstream
	audit                     *AuditLog // nil: none
}

// row has the counts behind samples.
type row struct {
	labels []string
	*tally
}

// state reads the counters.
func (c *Counters) state() *state {
	now := now()
	out := &state{version: c.Version, decisions: c.policy.samples(), teams: c.teams.samples(), ends: c.ends.samples(), refused: c.refused.samples(), cached: c.cached.samples()}
	if c.Upstreams != nil {
		out.servers = c.upstreams()
	}
	if c.Audit != nil {
		out.audit = c.audit()
	}
	if c.Faults != nil {
		out.faults = []Sample{{Value: float64(c.faults())}}
	}
	add := func(to *[]row, s *series, labels ...string) {
		t := new(tally)
		if s.addTo(t, Total, now); t.calls() > 0 || t.open > 0 {
			*to = append(*to, row{labels, t})
		}
	}
	for i := range c.front.methods {
		if s := c.front.methods[i].Load(); s != nil {
			add(&out.requests, s, methods[i])
		}
		if n := c.lists[i].Load(); n > 0 {
			out.lists = append(out.lists, Sample{Labels: methods[i : i+1], Value: float64(n)})
		}
	}
	c.sessions.Range(func(revision, s any) bool {
		add(&out.sessions, s.(*series), revision.(string))
		return true
	})
	slices.SortFunc(out.sessions, func(a, b row) int { return slices.Compare(a.labels, b.labels) })
	for _, s := range c.all() {
		rows := func(t *table) (out []row) {
			t.each(Total, now, func(method, tool string, t *tally) {
				out = append(out, row{[]string{s.name, method, tool}, t})
			})
			return out
		}
		out.calls = append(out.calls, rows(&s.callers)...)
		out.upstream = append(out.upstream, rows(&s.upstream)...)
		add(&out.connections, &s.connections, s.name)
		add(&out.waits, &s.waits, s.name)
	}
	return out
}

// each returns a sample for each row.
func each(rows []row, value func(*row) float64) []Sample {
	out := make([]Sample, len(rows))
	for i := range rows {
		out[i] = Sample{Labels: rows[i].labels, Value: value(&rows[i])}
	}
	return out
}

// failures returns a sample for each kind of error that has occurred.
func failures(rows []row) (out []Sample) {
	for _, r := range rows {
		for k := ToolError; k < Canceled; k++ {
			if r.kinds[k] > 0 {
				out = append(out, Sample{Labels: append(slices.Clip(r.labels), k.String()), Value: float64(r.kinds[k])})
			}
		}
	}
	return out
}

// durations returns histograms. A bucket of the counts that a bound cuts counts as a whole, by its
// middle.
func durations(rows []row) []Sample {
	out := make([]Sample, len(rows))
	for i, r := range rows {
		counts, b := make([]uint64, len(bounds)+1), 0
		for n, bound := range bounds {
			for ; b < buckets && middleOf(b).Seconds() <= bound; b++ {
				counts[n] += r.histogram[b]
			}
		}
		for ; b < buckets; b++ {
			counts[len(bounds)] += r.histogram[b]
		}
		out[i] = Sample{Labels: r.labels, Counts: counts, Sum: time.Duration(r.time).Seconds()}
	}
	return out
}

// ofServers returns a sample for each server behind a gateway.
func (s *state) ofServers(value func(*Upstream) float64) []Sample {
	out := make([]Sample, len(s.servers))
	for i := range s.servers {
		out[i] = Sample{Labels: []string{s.servers[i].Name}, Value: value(&s.servers[i])}
	}
	return out
}

// ofAudit returns a sample about the audit log; none if there is none.
func (s *state) ofCache(result string) (out []Sample) {
	for _, one := range s.cached {
		if one.Labels[1] == result {
			out = append(out, Sample{Labels: one.Labels[:1], Value: one.Value})
		}
	}
	return out
}

func (s *state) ofAudit(value func(*AuditLog) float64) []Sample {
	if s.audit == nil {
		return nil
	}
	return []Sample{{Value: value(s.audit)}}
}
