package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// inspectors opens "patchbay serve inspector", as a host does, and returns what calls its tools.
func inspectors(t *testing.T) func(tool string, arguments map[string]any) (string, bool) {
	t.Helper()
	cmd, _ := program(t, "serve", "inspector")
	s, err := (&mcp.Client{Name: "agent", Version: "1"}).Start(t.Context(), cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return func(tool string, arguments map[string]any) (string, bool) {
		t.Helper()
		res, err := s.CallTool(t.Context(), tool, arguments)
		if err != nil {
			t.Fatalf("%s: %v", tool, err)
		}
		return res.Text(), res.IsError
	}
}

// An agent sees a call through a running up: its frames on both hops, redacted, its latency, and the state of the server.
// Without a gateway, with one that has no page, and with several, the tools say so.
func TestServeInspector(t *testing.T) {
	runtimeFolder(t)
	ask := inspectors(t)
	if text, failed := ask("patchbay_frames", nil); !failed || !strings.Contains(text, "no patchbay up of this user is running") {
		t.Errorf("without a gateway: %s", text)
	}
	bare := startUp(t, map[string]any{"a": stubServer(t)}, "--no-page")
	if text, failed := ask("patchbay_state", nil); !failed || !strings.Contains(text, "none of these has one (--no-page") || !strings.Contains(text, fmt.Sprint("pid ", bare.cmd.Process.Pid)) {
		t.Errorf("with a gateway without a page: %s", text)
	}
	bare.cmd.Process.Kill()
	bare.cmd.Wait()

	r := startUp(t, map[string]any{"db": stubServer(t)})
	ask = inspectors(t) // from here on frames are kept
	if text, failed := ask("patchbay_frames", nil); failed || strings.Contains(text, "Nobody looked") {
		t.Errorf("the first look at the tools does not keep frames: %s", text)
	}
	caller, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	if res, err := caller.CallTool(t.Context(), "db_colour", map[string]any{"text": "hello", "password": "planted-secret"}); err != nil || res.IsError {
		t.Fatalf("the call: %+v, %v", res, err)
	}
	text, failed := ask("patchbay_frames", map[string]any{"filter": "method:tools/call"})
	var got struct {
		Rows []struct {
			N, Cause               int
			Server, Target, Status string
			Ms                     *float64
		}
	}
	if err := json.Unmarshal([]byte(text), &got); failed || err != nil || len(got.Rows) != 2 {
		t.Fatalf("the rows: %v, %s", err, text)
	}
	front, back := got.Rows[0], got.Rows[1]
	if front.Server != "" || front.Target != "db_colour" || back.Server != "db" || back.Target != "colour" || back.Cause != front.N || front.Ms == nil || back.Ms == nil || front.Status != "ok" {
		t.Errorf("the rows of the call: %s", text)
	}
	text, failed = ask("patchbay_frame", map[string]any{"row": back.N})
	if failed || !strings.Contains(text, `\"name\":\"colour\"`) || !strings.Contains(text, `"otherHop":{"n":`+fmt.Sprint(front.N)) || strings.Contains(text, "planted") {
		t.Errorf("the frames of the call: %s", text)
	}
	if text, failed = ask("patchbay_latency", map[string]any{"server": "db", "tool": "colour", "range": "minute"}); failed || !strings.Contains(text, `"tool":"colour","calls":1`) || !strings.Contains(text, `"p99Ms":`) {
		t.Errorf("the latency of the call: %s", text)
	}
	if text, failed = ask("patchbay_state", nil); failed || !strings.Contains(text, `"name":"db","state":"ready"`) {
		t.Errorf("the state: %s", text)
	}
	if text, failed = ask("patchbay_frames", map[string]any{"filter": "color:red"}); !failed || !strings.Contains(text, "is not a word of filters") {
		t.Errorf("a wrong filter: %s", text)
	}

	other := startUp(t, map[string]any{"web": stubServer(t)})
	pids := []int{r.cmd.Process.Pid, other.cmd.Process.Pid}
	if text, failed = ask("patchbay_state", nil); !failed || !strings.Contains(text, fmt.Sprint("pid ", pids[0])) || !strings.Contains(text, fmt.Sprint("pid ", pids[1])) {
		t.Errorf("with two gateways: %s", text)
	}
	if text, failed = ask("patchbay_state", map[string]any{"pid": pids[1]}); failed || !strings.Contains(text, `"name":"web"`) || strings.Contains(text, `"name":"db"`) {
		t.Errorf("one of two gateways: %s", text)
	}
}

// The server is not for other users, who could ask it over HTTP, and no file can put it behind a gateway.
func TestInspectorIsForItsUser(t *testing.T) {
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"serve", "inspector", "--http", "127.0.0.1:0"}, "it serves stdio only"},
		{[]string{"serve", "inspector", "x"}, "it takes none"},
		{[]string{"up", "-s", "inspector", "--http", "127.0.0.1:0"}, "inspector"},
	} {
		var out, said strings.Builder
		if code := run(t.Context(), tt.args, strings.NewReader(""), &out, &said); code != exitUsage || !strings.Contains(said.String(), tt.says) {
			t.Errorf("%q: exit code %d, %s%s", tt.args, code, out.String(), said.String())
		}
	}
	var out, said strings.Builder
	if code := run(t.Context(), []string{"help", "serve", "inspector"}, strings.NewReader(""), &out, &said); code != 0 || !strings.Contains(out.String(), "patchbay_latency") {
		t.Errorf("the help: exit code %d, %s%s", code, out.String(), said.String())
	}
}

// A person sends the call of a host again: it is asked for first, passes the policy of now as the person, and has a line in
// the audit log with the page. The host spoke another revision, and another name of the tool.
func TestReplayOnPage(t *testing.T) {
	runtimeFolder(t)
	dir := t.TempDir()
	log, rules := filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(rules, []byte(`rules: [{name: hosts and free, effect: allow, when: 'name == "free" || principal.scheme != "local"'}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startUp(t, map[string]any{"db": stubServer(t)}, "--policy", rules, "--audit", log)
	ask := inspectors(t)
	ask("patchbay_frames", nil)
	caller, err := (&mcp.Client{Name: "host", Version: "1", Revisions: []mcp.Revision{"2025-11-25"}}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	for _, tool := range []string{"db_free", "db_colour"} {
		if res, err := caller.CallTool(t.Context(), tool, map[string]any{"a": 1}); err != nil || res.IsError {
			t.Fatalf("%s: %+v, %v", tool, res, err)
		}
	}
	text, _ := ask("patchbay_frames", map[string]any{"filter": "method:tools/call hop:clients"})
	var got struct{ Rows []struct{ N int } }
	if err := json.Unmarshal([]byte(text), &got); err != nil || len(got.Rows) != 2 {
		t.Fatalf("the rows: %v, %s", err, text)
	}
	free, colour := got.Rows[0].N, got.Rows[1].N
	v := enter(t)
	if status, text := v.ask(t, "/ui/replay", map[string]any{"rows": []int{free, colour}}); status != http.StatusOK || !strings.Contains(text, fmt.Sprintf(`{"row":%d,"call":"db/free","arguments":"{\"a\":1}"}`, free)) || !strings.Contains(text, `"call":"db/colour"`) || strings.Contains(text, "same") {
		t.Errorf("before it is confirmed: HTTP %d %s", status, text)
	}
	status, text := v.ask(t, "/ui/replay", map[string]any{"rows": []int{free, colour}, "confirmed": []int{free, colour}})
	if status != http.StatusOK || !strings.Contains(text, fmt.Sprintf(`["%d tools/call db_free","same","",""]`, free)) || !strings.Contains(text, fmt.Sprintf(`["%d tools/call db_colour","! differs in`, colour)) || !strings.Contains(text, "1 same, 1 differ, 0 skipped") {
		t.Errorf("the replay: HTTP %d %s", status, text)
	}
	until(t, "the audit log has the calls of the page", func() bool {
		raw, err := os.ReadFile(log)
		return err == nil && strings.Count(string(raw), `"via":"page"`) >= 2
	})
}
