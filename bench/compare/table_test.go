package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/patchbay-dev/patchbay/bench/load"
)

func filled() *results {
	r := newResults([]string{"patchbay", "bare", "mcp-go"}, 3)
	for round, v := range []float64{10, 12, 20} {
		// The second round was slow for all, which does not affect a ratio.
		r.add("stdio", "patchbay", round, []figure{{"CPU µs", v}, {"p50 µs", 3 * v}}, nil)
		r.add("stdio", "bare", round, []figure{{"CPU µs", v / 2}, {"p50 µs", v}}, nil)
	}
	r.add("stdio", "mcp-go", 0, []figure{{"CPU µs", 1000}}, nil)
	r.add("stdio", "mcp-go", 1, nil, errors.New("broke"))
	r.add("stdio", "mcp-go", 2, nil, fmt.Errorf("no: %w", load.ErrUnsupported))
	r.add("sessions", "patchbay", 0, []figure{{"KiB", 1.234}}, nil)
	return r
}

func TestTable(t *testing.T) {
	var b strings.Builder
	filled().print(&b)
	const want = `
                  patchbay        bare  mcp-go      / bare  / mcp-go
stdio     CPU µs  12.0 ±5.0  6.00 ±2.50    1000  2.00 ±0.00      0.01
          p50 µs  36.0 ±15.0  12.0 ±5.0       -  3.00 ±0.00         -
sessions  KiB           1.23           -       -           -         -
failed: stdio, mcp-go: broke
`
	squeeze := func(s string) []string {
		var lines []string
		for line := range strings.Lines(strings.TrimPrefix(s, "\n")) {
			lines = append(lines, strings.Join(strings.Fields(line), " "))
		}
		return lines
	}
	if diff := cmp.Diff(squeeze(want), squeeze(b.String())); diff != "" {
		t.Errorf("the table differs (-want +got):\n%s", diff)
	}
	width := -1
	for line := range strings.Lines(b.String()) {
		if i := strings.LastIndex(line, "±"); i >= 0 && strings.Count(line, "±") == 3 {
			at := len([]rune(line[:i]))
			if width >= 0 && at != width {
				t.Errorf("columns do not stand below each other:\n%s", &b)
			}
			width = at
		}
	}
}

func TestReport(t *testing.T) {
	out, err := json.Marshal(filled().report(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Lines) != 3 || r.Rounds != 3 || r.Duration != time.Second || len(r.Failures) != 1 {
		t.Fatalf("report %s", out)
	}
	two, zero := 2.0, 0.0
	want := map[string]reportPeer{
		"patchbay": {Values: []float64{10, 12, 20}, Median: 12, Spread: 5},
		"bare":     {Values: []float64{5, 6, 10}, Median: 6, Spread: 2.5, Ratio: &two, RatioSpread: &zero},
	}
	delete(r.Lines[0].Peers, "mcp-go")
	if diff := cmp.Diff(want, r.Lines[0].Peers); diff != "" {
		t.Errorf("the first line differs (-want +got):\n%s", diff)
	}
}
