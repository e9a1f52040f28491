package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/wine"
	"github.com/patchbay-dev/patchbay/mcp"
)

// faulty serves a server with the tool "which", which returns a name. While broken is set, each request gets the web page
// of a proxy.
func faulty(t *testing.T, name string) (address string, broken *atomic.Bool) {
	t.Helper()
	s := &mcp.Server{Name: "work", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "which"}, func(context.Context, struct{}) (string, error) { return name, nil })
	broken = new(atomic.Bool)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>\x1b[2Jdown for maintenance</html>")
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	return strings.TrimPrefix(web.URL, "http://"), broken
}

// Of two replicas of a server one answers wrongly. Its breaker opens, and the person sees so in a line of up, in status as
// text and as JSON, and in the metrics; calls go on at the other one. When the replica works again, all say that too.
func TestUpBreaker(t *testing.T) {
	wine.Skip(t, "it has no Unix sockets, by which status finds up")
	runtimeFolder(t)
	good, _ := faulty(t, "good")
	bad, broken := faulty(t, "bad")
	r := startUp(t, map[string]any{"work": map[string]any{"url": "http://" + good + "/", "patchbay": map[string]any{
		"replicas": []string{"http://" + bad + "/"}, "breaker": map[string]any{"open": "50% of 4 in 30s", "for": "1s"},
	}}}, "--metrics", "127.0.0.1:0")
	s, err := (&mcp.Client{Name: "desk", Version: "1"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	call := func() string {
		res, err := s.CallTool(t.Context(), "work_which", nil)
		if rpc := (*mcp.Error)(nil); errors.As(err, &rpc) {
			return rpc.Message
		} else if err != nil {
			return err.Error()
		}
		return res.Text()
	}
	replica := func() (out health.Replica) {
		t.Helper()
		var reports []health.Report
		if err := json.Unmarshal([]byte(patchbay(t, "status", "--json")), &reports); err != nil || len(reports) != 1 || len(reports[0].Servers) != 1 || len(reports[0].Servers[0].Replicas) != 2 {
			t.Fatalf("status has %+v, %v", reports, err)
		}
		return reports[0].Servers[0].Replicas[1]
	}
	both := map[string]bool{}
	until(t, "both replicas answer", func() bool { both[call()] = true; return both["good"] && both["bad"] })
	if got := replica(); got.Name != bad || got.Breaker != "closed" || got.Opened != 0 {
		t.Errorf("before the fault status has the replica %+v", got)
	}
	if got := patchbay(t, "status"); strings.Contains(got, "gets no calls") {
		t.Errorf("before the fault status prints\n%s", got)
	}

	broken.Store(true)
	lost := regexp.MustCompile(`^(good|replica \S+ of server "work" gave no usable answer; the tool may or may not have run: tools/call: it answers, but is not an MCP server: a web page)$`)
	until(t, "the breaker opens", func() bool {
		if got := call(); !lost.MatchString(got) {
			t.Errorf("a call gets %q", got)
		}
		return replica().Breaker == "open"
	})
	for range 20 {
		if got := call(); got != "good" {
			t.Errorf("while the breaker is open, a call gets %q", got)
		}
	}
	got := replica()
	if got.Name != bad || got.Breaker != "open" || got.Opened == 0 || got.Kind == "" || got.Failures["unusable"] == 0 || got.Since.IsZero() || got.Until.Before(got.Since) || !strings.Contains(got.Reason, "not an MCP server") {
		t.Errorf("status --json has the replica %+v", got)
	}
	text := patchbay(t, "status")
	for _, want := range []string{
		`replica ` + regexp.QuoteMeta(bad) + `: gets no calls, as its breaker has been open for \S+; last failure: \S+: it answers, but is not an MCP server: a web page; it is tried again (now|in \S+); failures since the start: (1 unusable answer|\d+ unusable answers)(, 1 failed ping|, \d+ failed pings)?\n`,
		`replica ` + regexp.QuoteMeta(good) + `: 0 calls running`,
	} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("status does not have %s:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b[2J") {
		t.Errorf("status prints a control sequence of the server: %q", text)
	}
	metrics := readMetrics(t, r.stderr)
	for _, want := range []string{
		fmt.Sprintf("patchbay_breaker_state{server=\"work\",replica=%q} 1\n", bad), fmt.Sprintf("patchbay_breaker_state{server=\"work\",replica=%q} 0\n", good),
		fmt.Sprintf("patchbay_breaker_failures_total{server=\"work\",replica=%q,kind=\"unusable\"} %d\n", bad, got.Failures["unusable"]),
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics do not have %s but %q", want, regexp.MustCompile(`(?m)^patchbay_breaker.*`).FindAllString(metrics, -1))
		}
	}
	r.stderr.await(t, `work: replica `+regexp.QuoteMeta(bad)+`: gets no calls for now: .*not an MCP server.*; it is tried again `)

	broken.Store(false)
	until(t, "the breaker closes", func() bool { return replica().Breaker == "closed" })
	r.stderr.await(t, `work: replica `+regexp.QuoteMeta(bad)+`: gets calls again`)
	until(t, "the replica gets calls", func() bool { return call() == "bad" })
	if text := patchbay(t, "status"); strings.Contains(text, "gets no calls") {
		t.Errorf("after the fault status prints\n%s", text)
	}
	if metrics := readMetrics(t, r.stderr); !strings.Contains(metrics, fmt.Sprintf("patchbay_breaker_state{server=\"work\",replica=%q} 0\n", bad)) {
		t.Error("after the fault the metrics have an open breaker")
	}
}
