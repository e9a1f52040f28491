package top

import (
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/tmux"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/metrics"
)

var update = flag.Bool("update", false, "write docs/images/top.svg")

const picturePath = "../../../../docs/images/top.svg"

// The picture in docs/observe.md is what Lines returns.
func TestPicture(t *testing.T) {
	now := time.Now()
	bold := func(s string) string { return "\x1b[1m" + s + "\x1b[0m" }
	got, err := tmux.Picture(strings.Join(Lines(pictured(now), 112, 30, now, bold), "\n"), "patchbay top: calls, errors and latencies of three servers")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(picturePath, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(picturePath)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(string(want), "\r\n", "\n") != got {
		t.Errorf("%s is not what top shows now: run go test -update here", picturePath)
	}
}

// pictured returns a gateway with a good server, a slow one whose tool fails sometimes, and one that
// needs a login.
func pictured(now time.Time) []health.Found {
	took := func(p50, p95, p99 float64, s metrics.Stats) metrics.Stats {
		ms := func(f float64) metrics.Latency {
			return metrics.Latency{Duration: time.Duration(f * float64(time.Millisecond))}
		}
		s.P50, s.P95, s.P99 = ms(p50), ms(p95), ms(p99)
		return s
	}
	tool := func(name string, s, itself metrics.Stats) metrics.Tool {
		return metrics.Tool{Name: name, Stats: s, Upstream: itself}
	}
	server := func(name string, s, itself metrics.Stats, tools ...metrics.Tool) *metrics.Server {
		return &metrics.Server{Name: name, Stats: s, Upstream: itself, Tools: tools}
	}
	search := took(410, 2200, 4100, metrics.Stats{Calls: 96, Errors: metrics.Errors{Tool: 5, Deadline: 1}, Open: 3})
	create := took(95, 180, 240, metrics.Stats{Calls: 12, Errors: metrics.Errors{Policy: 2}})
	jira := took(380, 2100, 4100, metrics.Stats{Calls: 108, Errors: metrics.Errors{Tool: 5, Deadline: 1, Policy: 2}, Open: 3})
	query := took(0.8, 3.1, 7.6, metrics.Stats{Calls: 641, Errors: metrics.Errors{Tool: 4}, Open: 1})
	return []health.Found{{Report: &health.Report{
		State: "degraded", Version: "0.1.0", PID: 4711, URL: "http://127.0.0.1:7420/mcp", Since: now.Add(-3 * time.Hour),
		Servers: []health.Server{
			{Name: "db", State: "ready", Minute: server("db", query, query, tool("read_query", query, query))},
			{Name: "jira", State: "ready", Minute: server("jira", jira, took(0, 2000, 0, jira),
				tool("search", search, took(0, 2100, 0, search)), tool("create", create, took(0, 180, 0, create)))},
			{Name: "mail", State: "needs login", Reason: "patchbay login mail"},
		},
	}}}
}
