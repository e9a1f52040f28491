package top

import (
	"flag"
	"fmt"
	"html"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/metrics"
)

var update = flag.Bool("update", false, "write docs/images/top.svg")

const picturePath = "../../../../docs/images/top.svg"

// The picture in docs/gateway.md is what Lines returns.
func TestPicture(t *testing.T) {
	now := time.Now()
	got := picture(Lines(pictured(now), 112, 30, now, plain))
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

// picture draws lines as a terminal shows them.
func picture(lines []string) string {
	const column, row = 7.8, 19
	width := 0
	for _, l := range lines {
		width = max(width, len([]rune(l)))
	}
	var b strings.Builder
	w, h := int(float64(width)*column)+32, len(lines)*row+28
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="patchbay top">`+"\n", w, h, w, h)
	b.WriteString(`<rect width="100%" height="100%" rx="6" fill="#16181d"/>` + "\n")
	b.WriteString(`<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="13" fill="#d8dce3">` + "\n")
	for i, l := range lines {
		weight := ""
		if strings.HasPrefix(l, "SERVER ") {
			weight = ` font-weight="bold" fill="#ffffff"`
		}
		if l != "" {
			fmt.Fprintf(&b, `<text x="16" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>`+"\n",
				28+i*row, float64(len([]rune(l)))*column, weight, strings.ReplaceAll(html.EscapeString(l), " ", "\u00a0")) // spaces would be joined
		}
	}
	b.WriteString("</g>\n</svg>\n")
	return b.String()
}
