package main

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

var metricsAt = regexp.MustCompile(`metrics: (http://127\.0\.0\.1:[0-9]+/metrics)`)

// readMetrics returns the metrics of a program with --metrics.
func readMetrics(t *testing.T, stderr *transcript) string {
	t.Helper()
	stderr.await(t, metricsAt.String())
	found := metricsAt.FindStringSubmatch(stderr.String())
	res, err := http.Get(found[1])
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res.Status, err)
	}
	req, err := http.NewRequest(http.MethodGet, found[1], nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "rebound.example"
	refused, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	refused.Body.Close()
	if refused.StatusCode != http.StatusForbidden {
		t.Errorf("a rebound host gets %s", refused.Status)
	}
	return string(body)
}

// callTwice calls a tool that works and one that does not exist.
func callTwice(t *testing.T, url, tool string) {
	t.Helper()
	s, err := (&mcp.Client{Name: "c"}).Dial(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), tool, map[string]any{"message": "hi"}); err != nil {
		t.Error(err)
	}
	if _, err := s.CallTool(t.Context(), "all_none", nil); err == nil {
		t.Error("there is a tool all_none")
	}
}

// --metrics of up, serve and bridge serves the counts of calls, and status shows the last minute.
func TestMetrics(t *testing.T) {
	runtimeFolder(t)
	everything := map[string]any{"all": map[string]any{"builtin": "everything"}}
	t.Run("up", func(t *testing.T) {
		r := startUp(t, everything, "--metrics", "127.0.0.1:0", "--limit", "tool:all_add=1/h")
		callTwice(t, r.url, "all_echo")
		older, err := (&mcp.Client{Name: "c", Revisions: []mcp.Revision{mcp.V2025_06_18}}).Dial(t.Context(), r.url)
		if err != nil {
			t.Fatal(err)
		}
		older.Close()
		text := ""
		until(t, "the session is counted", func() bool {
			text = readMetrics(t, r.stderr)
			return strings.Contains(text, `mcp_server_session_duration_seconds_count{mcp_protocol_version="2025-06-18"} 1`)
		})
		for _, want := range []string{
			`patchbay_call_duration_seconds_count{server="all",mcp_method_name="tools/call",gen_ai_tool_name="echo"} 1`,
			`mcp_client_operation_duration_seconds_count{server="all",mcp_method_name="tools/call",gen_ai_tool_name="echo"} 1`,
			`mcp_server_operation_duration_seconds_count{mcp_method_name="tools/call"} 2`,
			`patchbay_upstream_state{server="all",state="ready"} 1`,
			`patchbay_build_info{version="` + Version + `"`,
		} {
			if !strings.Contains(text, want) {
				t.Errorf("the metrics lack %s:\n%s", want, text)
			}
		}
		status := func(flags ...string) string {
			var out strings.Builder
			run(t.Context(), append([]string{"status", "-s", r.url}, flags...), strings.NewReader(""), &out, io.Discard)
			return out.String()
		}
		out := status()
		if !regexp.MustCompile(`\| in the last minute 2 calls, p95 .*, 1 error \(1 protocol\)`).MatchString(out) {
			t.Errorf("status:\n%s", out)
		}
		out = status("--json")
		var reports []struct {
			Servers []struct {
				LastMinute struct {
					Calls int
					P95Ms float64
					Tools []struct{ Name string }
				}
			}
		}
		if err := json.Unmarshal([]byte(out), &reports); err != nil || len(reports) != 1 || reports[0].Servers[0].LastMinute.Calls != 2 {
			t.Errorf("status --json: %s, %v", out, err)
		} else if took := reports[0].Servers[0].LastMinute.P95Ms; took <= 0 && runtime.GOOS != "windows" { // a tick there may be 15 ms
			t.Errorf("status --json: the calls took %v ms", took)
		}
	})
	for name, words := range map[string][]string{
		"serve":  {"serve", "everything", "--http", "127.0.0.1:0"},
		"bridge": {"bridge", "--http", "127.0.0.1:0", "-s", "everything"},
	} {
		t.Run(name, func(t *testing.T) {
			url, stderr := startListening(t, append(words, "--metrics", "127.0.0.1:0")...)
			text := ""
			want := `patchbay_call_duration_seconds_count{server="everything",mcp_method_name="tools/call",gen_ai_tool_name="echo"} `
			until(t, "the metrics have "+want, func() bool { // a bridge may not have the list of tools yet
				callTwice(t, url, "echo")
				text = readMetrics(t, stderr)
				return strings.Contains(text, want)
			})
			if strings.Contains(text, "none") {
				t.Errorf("the metrics have the name of a caller:\n%s", text)
			}
		})
	}
}

// A wrong address is an error with the next step, and one that other machines reach a warning.
func TestMetricsAddress(t *testing.T) {
	serve := func(address string) (code int, said string) { // its input ends at once
		var stderr strings.Builder
		code = run(t.Context(), []string{"serve", "everything", "--metrics", address}, strings.NewReader(""), io.Discard, &stderr)
		return code, stderr.String()
	}
	for address, want := range map[string]string{
		"127.0.0.1":      "--metrics 127.0.0.1: the port is missing; use 127.0.0.1:7420",
		"127.0.0.1:x":    `--metrics 127.0.0.1:x: "x" is not a port`,
		"http://x:1/":    "--metrics http://x:1/: a URL is not an address; use x:1",
		"192.0.2.1:7777": "cannot listen on 192.0.2.1:7777",
	} {
		code, stderr := serve(address)
		if code == exitOK || !strings.Contains(stderr, want) || !strings.Contains(stderr, "--metrics 127.0.0.1:") {
			t.Errorf("--metrics %s: exit code %d, %s; want %s", address, code, stderr, want)
		}
	}
	if _, stderr := serve("0.0.0.0:0"); !strings.Contains(stderr, "can read the metrics, with the names of servers and tools") {
		t.Errorf("no warning in %s", stderr)
	}
}
