package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/mcp"
)

// story is how many calls of tools have ended how: "ok", "tool error", "refused" and "failed".
type story map[string]int

// told returns the story without the difference between refused and failed, which callers do not see.
func (s story) told() story {
	return story{"ok": s["ok"], "tool error": s["tool error"], "error": s["refused"] + s["failed"] + s["error"]}
}

// On a bad day servers crash, the collector dies, the disk is full for a while, and callers are
// refused. Every call is answered, and callers, metrics, spans and the audit log tell the same story.
// Then somebody edits the log, and the edit is found.
func TestBadDay(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
	c := new(collector)
	addr, err := freeport.Addr()
	if err != nil {
		t.Fatal(err)
	}
	c.url = "http://" + addr
	var web *http.Server
	open := func() {
		t.Helper()
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		web = &http.Server{Handler: c}
		go web.Serve(l) // ends with Close
	}
	open()
	t.Cleanup(func() { web.Close() })
	r, log, header := audited(t, `
auth: [apikeys:keys.jsonl]
policy: rules.yaml
limits: ["tool:all_add=1/h"]
teams: {from: principal.id, members: {dev: ["apikey#*"]}}
audit: {file: audit.jsonl, key: audit.key, checkpoint: 1s}
telemetry: {otlp: '`+c.url+`'}
`, map[string]any{"stub": stubServer(t), "all": map[string]any{"builtin": "everything"}}, "--metrics", "127.0.0.1:0")
	limit := func(bytes uint64) {
		t.Helper()
		if err := unix.Prlimit(r.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: bytes, Max: unix.RLIM_INFINITY}, nil); err != nil {
			t.Fatal(err)
		}
	}

	calls := []struct {
		tool string
		args map[string]any
	}{
		{"stub_args", map[string]any{"count": 1}},
		{"all_echo", map[string]any{"message": "hi"}},
		{"all_test_error_handling", nil},
		{"stub_args", map[string]any{"count": 101}},
		{"stub_hang", nil},
		{"stub_none", nil},
		{"all_add", map[string]any{"a": 1, "b": 2}},
	}
	var mu sync.Mutex
	callers, said := story{}, map[string]int{}
	call := func(s *mcp.Session, tool string, args map[string]any) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		res, err := s.CallTool(ctx, tool, args)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			t.Errorf("%s has no answer within a minute", tool)
		case err != nil:
			callers["error"]++
			said[err.Error()]++
		case res.IsError:
			callers["tool error"]++
		default:
			callers["ok"]++
		}
	}
	dial := func(revision mcp.Revision) *mcp.Session {
		t.Helper()
		s, err := (&mcp.Client{Name: "desk", Version: "1", Header: header, Revisions: []mcp.Revision{revision}}).Dial(t.Context(), r.url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	heard := func(text string) bool {
		mu.Lock()
		defer mu.Unlock()
		for one := range said {
			if strings.Contains(one, text) {
				return true
			}
		}
		return false
	}
	over := make(chan struct{})
	var working sync.WaitGroup
	for _, revision := range []mcp.Revision{mcp.V2025_06_18, mcp.V2025_11_25, mcp.V2026_07_28} {
		s := dial(revision)
		working.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-over:
					return
				case <-time.After(20 * time.Millisecond): // the exporter has room for what the collector misses
				}
				call(s, calls[i%len(calls)].tool, calls[i%len(calls)].args)
			}
		})
	}
	end := sync.OnceFunc(func() { close(over); working.Wait() })
	t.Cleanup(end)

	until(t, "spans are sent", func() bool { return len(c.calls()) > 0 })
	breaker := dial(mcp.V2026_07_28)
	for range 3 { // a server crashes
		call(breaker, "stub_exit", nil)
		until(t, "the server is back", func() bool {
			_, err := breaker.CallTool(t.Context(), "stub_free", nil)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				callers["error"]++
				return false
			}
			callers["ok"]++
			return true
		})
	}
	web.Close() // the collector dies
	until(t, "status says that the collector is away", func() bool { return strings.Contains(patchbay(t, "status"), "connection refused") })
	info, err := os.Stat(log)
	if err != nil {
		t.Fatal(err)
	}
	limit(uint64(info.Size())) // the disk is full
	until(t, "calls are refused", func() bool { return heard("the audit log cannot be written (file too large)") })
	limit(unix.RLIM_INFINITY)
	open()
	until(t, "calls are made again", func() bool {
		res, err := http.Get(strings.TrimSuffix(r.url, "/mcp") + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	mu.Lock()
	answered := callers["ok"]
	mu.Unlock()
	until(t, "calls are answered again", func() bool { mu.Lock(); defer mu.Unlock(); return callers["ok"] > answered+10 })
	end()
	total := callers["ok"] + callers["tool error"] + callers["error"]
	until(t, "all spans are there", func() bool { return len(failures(c)) >= total })
	byMetrics := metricStory(t, readMetrics(t, r.stderr))
	r.stop(t)

	byAudit := story{}
	for e, err := range audit.Read(log) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Method != "":
		case e.Kind == audit.Denied:
			byAudit["refused"] += 1 + e.More
		case e.Kind == audit.CallEnd && e.Outcome == "error":
			byAudit["failed"] += 1 + e.More // of calls that did not leave, a line may stand for many
		case e.Kind == audit.CallEnd:
			byAudit[e.Outcome]++
		}
	}
	bySpans := story{}
	for _, failure := range failures(c) {
		switch failure {
		case "":
			bySpans["ok"]++
		case "tool_error":
			bySpans["tool error"]++
		default:
			bySpans["error"]++
		}
	}
	t.Logf("callers %v, metrics %v, spans %v, audit %v", callers, byMetrics, bySpans, byAudit)
	for _, word := range []string{"ok", "tool error", "refused", "failed"} {
		if byMetrics[word] == 0 {
			t.Errorf("no call is %q", word)
		}
	}
	if !maps.Equal(byMetrics, byAudit) {
		t.Errorf("the metrics tell %v, and the audit log %v", byMetrics, byAudit)
	}
	for who, s := range map[string]story{"metrics": byMetrics, "spans": bySpans} {
		if !maps.Equal(s.told(), callers.told()) {
			t.Errorf("the %s tell %v, and the callers %v", who, s.told(), callers.told())
		}
	}
	for _, want := range []string{"few", "hang", "none", "than 1/h", "the audit log cannot be written (file too large)"} {
		if !heard(want) {
			t.Errorf("no caller has read %q in %v", want, said)
		}
	}

	// Somebody changes how a call has ended.
	verify := []string{"audit", "verify", log, "--key", filepath.Join(filepath.Dir(log), "audit.key.pub")}
	typedRun(t, "", exitOK, verify...)
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	was := []byte(`"outcome":"tool error"`)
	before, _, _ := bytes.Cut(content, was)
	if err := os.WriteFile(log, bytes.Replace(content, was, []byte(`"outcome":"ok"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	line := bytes.Count(before, []byte("\n")) + 1
	if got := typedRun(t, "", exitRefused, verify...); !strings.Contains(got, fmt.Sprintf("audit.jsonl:%d: ", line)) || !strings.Contains(got, "edited") {
		t.Errorf("after an edit of line %d: %s", line, got)
	}
}

// failures returns error.type of the spans of tool calls that clients have made.
func failures(c *collector) (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if s.Kind == 2 && s.attribute("mcp.method.name") == "tools/call" {
			list = append(list, s.attribute("error.type"))
		}
	}
	return list
}

// metricStory reads the story from the metrics of clients' requests.
func metricStory(t *testing.T, text string) story {
	t.Helper()
	s := story{}
	read := func(pattern string, add func(kind string, n int)) {
		for _, found := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			n, err := strconv.Atoi(found[len(found)-1])
			if err != nil {
				t.Fatal(fmt.Errorf("%s: %w", found[0], err))
			}
			add(found[1], n)
		}
	}
	read(`mcp_server_operation_duration_seconds_count\{mcp_method_name="(tools/call)"\} (\d+)`, func(_ string, n int) { s["ok"] += n })
	read(`mcp_server_operation_errors_total\{mcp_method_name="tools/call",error_type="(\w+)"\} (\d+)`, func(kind string, n int) {
		s["ok"] -= n
		switch kind {
		case "tool_error":
			kind = "tool error"
		case "policy", "limit":
			kind = "refused"
		default:
			kind = "failed"
		}
		s[kind] += n
	})
	return s
}
