package top

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/metrics"
)

func plain(s string) string { return s }

func latency(ms int) metrics.Latency {
	return metrics.Latency{Duration: time.Duration(ms) * time.Millisecond}
}

// gateways returns a gateway with a busy server, a quiet one and one that fails, and one that does
// not answer.
func gateways(now time.Time) []health.Found {
	busy := &metrics.Server{
		Name:     "shop",
		Stats:    metrics.Stats{Calls: 120, Errors: metrics.Errors{Tool: 3, Deadline: 1}, Canceled: 2, Open: 2, P50: latency(12), P95: latency(80), P99: latency(11_500)},
		Upstream: metrics.Stats{Calls: 119, P95: latency(75)},
	}
	for i := range 7 {
		busy.Tools = append(busy.Tools, metrics.Tool{Name: fmt.Sprint("tool", i), Stats: metrics.Stats{Calls: uint64(i), P50: latency(1)}})
	}
	return []health.Found{
		{Report: &health.Report{State: "degraded", Version: "1", PID: 7, URL: "http://127.0.0.1:7420/mcp", Since: now.Add(-time.Minute), Unapplied: []string{"gateway.yaml has faults;\nthe gateway is unchanged"}, Servers: []health.Server{
			{Name: "quiet", State: "ready"},
			{Name: "shop", State: "ready", Minute: busy},
			{Name: "tickets", State: "failing", Reason: "HTTP 401\x1b[2J\nUnauthorized"},
		}}},
		{Path: "/run/up-9.sock", Err: errors.New("no answer in 3s")},
	}
}

// The busiest server comes first, with its busiest tools; text of servers cannot move the cursor.
func TestLines(t *testing.T) {
	now := time.Now()
	got := strings.Join(Lines(gateways(now), 0, 0, now, plain), "\n")
	want := `patchbay 1, http://127.0.0.1:7420/mcp: degraded, pid 7 for 1m
gateway.yaml has faults; the gateway is unchanged
SERVER   STATE    CALLS/MIN  ERRORS    P50    P95     P99  ITSELF  OPEN  ABOUT
shop     ready          120       4  12 ms  80 ms    12 s   75 ms     2  3 tool, 1 deadline, 2 canceled
· tool6                   6       0   1 ms   0 ms    0 ms       -     0
· tool5                   5       0   1 ms   0 ms    0 ms       -     0
· tool4                   4       0   1 ms   0 ms    0 ms       -     0
· tool3                   3       0   1 ms   0 ms    0 ms       -     0
· tool2                   2       0   1 ms   0 ms    0 ms       -     0
quiet    ready            0       0      -      -       -       -     0
tickets  failing          0       0      -      -       -       -     0  HTTP 401␛[2J Unauthorized

the gateway at /run/up-9.sock does not report its state: no answer in 3s`
	got = strings.ReplaceAll(strings.ReplaceAll(got, "1.0 ms", "1 ms"), "0.0 ms", "0 ms")
	if squeezed(got) != squeezed(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// squeezed returns a text with single blanks.
func squeezed(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

// A table fits a small terminal.
func TestLinesFit(t *testing.T) {
	now := time.Now()
	for height := 1; height < 16; height++ {
		for _, width := range []int{1, 20, 80} {
			lines := Lines(gateways(now), width, height, now, plain)
			if len(lines) > height || width == 80 && height == 6 && !strings.Contains(lines[height-1], "more lines") {
				t.Errorf("%d lines for %d:\n%s", len(lines), height, strings.Join(lines, "\n"))
			}
		}
	}
	if got := Lines(nil, 80, 24, now, plain); len(got) != 1 || !strings.Contains(got[0], "no patchbay up is running") {
		t.Errorf("without a gateway: %q", got)
	}
}

// Keys other than q and ctrl-C do nothing.
func TestWaitForEnd(t *testing.T) {
	for _, end := range []string{"q", "Q", "\x03", "\x04", ""} {
		in := strings.NewReader("abc\x1b[A" + end + "left")
		if waitForEnd(in); in.Len() > 4 && end != "" {
			t.Errorf("%q did not end it", end)
		}
	}
}
