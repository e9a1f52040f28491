package steer

import (
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/health"
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
