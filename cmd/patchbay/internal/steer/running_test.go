package steer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/launch"
)

// Endpoint returns the URL of the gateway, or that of its first view if its views leave nothing there.
func TestEndpoint(t *testing.T) {
	const at = "http://127.0.0.1:7420/mcp"
	for _, c := range []struct {
		url   string
		views []health.View
		want  string // or a part of the error
	}{
		{at, nil, at},
		{at, []health.View{{Path: "/mcp/v/a"}, {Path: "/mcp"}}, at},
		{at, []health.View{{Path: "/mcp/v/a"}, {Path: "/mcp/v/b"}}, at + "/v/a"},
		{"", nil, "serves stdio"},
	} {
		got, err := Endpoint(&health.Found{Report: &health.Report{PID: 7, URL: c.url, Views: c.views}})
		if err != nil {
			got = err.Error()
		}
		if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
			t.Errorf("%q with %v: %q, want %q", c.url, c.views, got, c.want)
		}
	}
}

// Only refuses to choose between gateways.
func TestOnly(t *testing.T) {
	none := errors.New("none")
	up := func(pid int) health.Found { return health.Found{Report: &health.Report{PID: pid}} }
	for _, c := range []struct {
		ups  []health.Found
		pid  int
		want int    // process id
		err  string // part of the error
	}{
		{nil, 0, 0, "none"},
		{[]health.Found{up(7)}, 0, 7, ""},
		{[]health.Found{up(7), up(8)}, 8, 8, ""},
		{[]health.Found{up(7), up(8)}, 0, 0, "2 gateways of yours run"},
		{[]health.Found{up(7)}, 9, 0, "no gateway of yours has the process id 9"},
	} {
		got, err := Only(c.ups, c.pid, func() error { return none })
		switch {
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%d gateways, --pid %d: error %v, want %q", len(c.ups), c.pid, err, c.err)
		case c.err == "" && (err != nil || got.PID != c.want):
			t.Errorf("%d gateways, --pid %d: %v, %v, want %d", len(c.ups), c.pid, got, err, c.want)
		}
	}
}

// A gateway that runs and does not answer is not "not running".
func TestSilent(t *testing.T) {
	slow := health.Found{Path: "/run/patchbay/up-7.sock", Err: fmt.Errorf("x: %w", context.DeadlineExceeded)}
	answers := health.Found{Report: &health.Report{PID: 8}, Path: "/run/patchbay/up-8.sock"}
	refuses := health.Found{Path: "/run/patchbay/up-9.sock", Err: errors.New("that is not a patchbay up")}
	for _, c := range []struct {
		ups  []health.Found
		pid  int
		want bool
	}{
		{nil, 0, false},
		{[]health.Found{answers, refuses}, 0, false},
		{[]health.Found{answers, slow}, 0, true},
		{[]health.Found{slow}, 7, true},
		{[]health.Found{slow}, 8, false},
	} {
		err := Silent(c.ups, c.pid)
		if (err != nil) != c.want || err != nil && err.Error() != "the patchbay up with pid 7 is running, but has not answered within 3 seconds" {
			t.Errorf("%+v, --pid %d: %v", c.ups, c.pid, err)
		}
	}
}

// An outcome says what has become of calls and replicas, and what to do next.
func TestWords(t *testing.T) {
	at := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	ready := launch.Steered{Status: gateway.Status{State: gateway.Ready}}
	joined := ready
	joined.Joined = true
	for _, c := range []struct {
		o    Outcome
		did  launch.Steered
		want string
	}{
		{Outcome{Action: Restart, Calls: 2, Until: at.Add(30 * time.Second)}, ready, "jira: restarted; it is ready; 2 calls in progress may finish until 12:00:30"},
		{Outcome{Action: Restart, Calls: 2, Until: at}, ready, "jira: restarted; it is ready; 2 calls in progress had no time to finish (--drain)"},
		{Outcome{Action: Restart, Restarted: []string{"a", "b"}}, ready, "jira: restarted, one replica after another: a, b; it is ready"},
		{Outcome{Action: Restart, Replica: "b", Restarted: []string{"b"}}, ready, "jira: replica b: restarted; the server is ready"},
		{Outcome{Action: Restart, Restarted: []string{"a"}, Left: []string{"b"}, Fault: "refused"}, ready, "jira: restarted, but replica a does not start: refused; not restarted: b; it is ready"},
		{Outcome{Action: Restart, Left: []string{"a", "b"}}, ready, "jira: is still being restarted: a, b"},
		{Outcome{Action: Restart}, joined, "jira: was being restarted already; it is ready"},
		{Outcome{Action: Disable, Replica: "b"}, ready, "jira: replica b: disabled, until patchbay enable jira --replica b or the end of this gateway"},
		{Outcome{Action: Enable, Replica: "b", Fault: "refused"}, ready, "jira: replica b: enabled, but it cannot be connected to: refused; the server is ready"},
	} {
		c.o.Server, c.o.State, c.o.at = "jira", "ready", at
		if got := c.o.words(&c.did); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}
