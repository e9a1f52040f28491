package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/openapi"
)

// Callers without MCP call tools of a gateway through all that a call by MCP passes: authentication, the policy, limits,
// views, counters, the access log and the audit log.
func TestUpAPI(t *testing.T) {
	logFile := t.TempDir() + "/access.jsonl"
	r, log, header := audited(t, `listen: {api: true}
auth: [apikeys:keys.jsonl]
audit: {file: audit.jsonl}
policy: rules.yaml
limits: ["tool:a_args=3/h"]
views:
  all: {}
  ours: {tools: [a_args], rename: {a_args: count}}
  theirs: {for: '"lead" in principal.roles', tools: ["*"]}
`, map[string]any{"a": stubServer(t), "b": map[string]any{"builtin": "everything"}}, "--log", logFile, "--metrics", "127.0.0.1:0")
	base := strings.TrimSuffix(r.url, listen.Path) + listen.APIPath
	if !strings.Contains(r.banner, "(callers without MCP, over HTTP: "+base+")\n") {
		t.Errorf("up does not print %s:\n%s", base, r.banner)
	}
	send := func(method, path, body string, own http.Header) (status int, answer string, got http.Header) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(req.Header, own)
		if method == "POST" {
			req.Header.Set("Content-Type", "application/json")
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(data), res.Header
	}
	for _, path := range []string{"", "/a", "/none", "/v/ours", "/v/none"} {
		if status, body, _ := send("GET", path, "", nil); status != http.StatusUnauthorized {
			t.Errorf("GET %s without a credential: %d %s", path, status, body)
		}
	}
	if status, body, _ := send("POST", "/a/args", `{"count":1}`, nil); status != http.StatusUnauthorized {
		t.Errorf("a call without a credential: %d %s", status, body)
	}

	var index map[string][]struct {
		Name, Path string
		Tools      int
	}
	_, body, _ := send("GET", "", "", header)
	if err := json.Unmarshal([]byte(body), &index); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, kind := range []string{"servers", "views"} {
		for _, e := range index[kind] {
			names = append(names, e.Path)
		}
	}
	if got := strings.Join(names, " "); got != "/api/a /api/b /api/v/ours" {
		t.Errorf("the index has %s", body)
	}
	for path, want := range map[string]string{"/a": "args", "/v/ours": "count"} {
		_, body, _ := send("GET", path, "", header)
		doc, err := openapi.Parse([]byte(body))
		if err != nil {
			t.Fatalf("%s: %v in %s", path, err, body)
		}
		var tools []string
		for _, op := range doc.Operations {
			tools = append(tools, op.Name)
		}
		if !slices.Contains(tools, want) || slices.Contains(tools, "hang") || !slices.Equal(doc.Schemes(), []string{"bearer"}) {
			t.Errorf("the document of %s has the tools %v and the schemes %v", path, tools, doc.Schemes())
		}
	}

	for _, tt := range []struct {
		path, args string
		status     int
	}{
		{"/a/args", `{"count":1}`, 200},
		{"/v/ours/count", `{"count":1}`, 200},
		{"/a/args", `{"count":101}`, 403}, // the policy refuses the arguments
		{"/a/args", `{"count":1}`, 429},
		{"/a/hang", `{}`, 404}, // the policy refuses the tool
		{"/a/none", `{}`, 404},
		{"/a/a_args", `{}`, 404},
		{"/v/ours/args", `{}`, 404},
		{"/v/ours/none", `{}`, 404},
		{"/v/theirs/a_args", `{}`, 404},
		{"/none/args", `{}`, 404},
		{"/b/echo", `{"message":"hi"}`, 200},
	} {
		status, body, got := send("POST", tt.path, tt.args, header)
		if status != tt.status || (status == 429) != (got.Get("Retry-After") != "") {
			t.Errorf("%s %s: %d %s, want %d", tt.path, tt.args, status, body, tt.status)
		}
	}
	if status, body, _ := send("GET", "/v/theirs", "", header); status != 403 || !strings.Contains(body, "may not use the view") {
		t.Errorf("a view for others: %d %s", status, body)
	}
	for _, pair := range [][2]string{{"/a/hang", "/a/gnah"}, {"/v/ours/a_args", "/v/ours/x_args"}, {"/v/ours/b_echo", "/v/ours/x_echo"}, {"/v/theirs/a_args", "/v/theirs/x"}} {
		_, hidden, _ := send("POST", pair[0], "{}", header)
		_, absent, _ := send("POST", pair[1], "{}", header)
		if hidden != absent {
			t.Errorf("%s: %s, but %s: %s", pair[0], hidden, pair[1], absent)
		}
	}
	counted := `patchbay_call_duration_seconds_count{server="b",mcp_method_name="tools/call",gen_ai_tool_name="echo"} 1`
	if got := readMetrics(t, r.stderr); !strings.Contains(got, counted) {
		t.Errorf("the metrics lack %s:\n%s", counted, got)
	}

	r.stop(t)
	text, err := os.ReadFile(logFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"caller":"apikey#ada","id":"1","status":200,"method":"tools/call","tool":"echo"`, `"status":429,"method":"tools/call","tool":"args"`, `"http":"POST /api/a/args","status":401`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the access log has no line with %s:\n%s", want, text)
		}
	}
	audited := map[string]bool{}
	for e, err := range audit.Read(log) {
		switch {
		case err != nil:
			t.Fatal(err)
		case e.Tool == "":
			continue
		case e.Principal == nil || e.Principal.ID != "apikey#ada" || e.Client == nil || e.Client.Name != "patchbay-api" || e.Client.IP != "127.0.0.1":
			t.Errorf("a line of the audit log lacks its caller: %s %s", e.Kind, e.Tool)
		}
		fact := fmt.Sprint(e.Kind, " ", e.Tool, " ", e.Outcome)
		if e.Decision != nil && e.Decision.Effect == "deny" {
			fact += " by " + e.Decision.Rule
		}
		audited[fact] = true
	}
	for _, want := range []string{"call.begin args ", "call.end args ok", "denied args denied by few", "denied hang denied by no hanging", "call.end echo ok", `denied b_echo denied by view "ours"`} {
		if !audited[want] {
			t.Errorf("the audit log has no line %q but %v", want, slices.Sorted(maps.Keys(audited)))
		}
	}
}

// An HTTP API that is /api of the gateway itself ends at once: an entry whose document is there is left out, and a call that comes back,
// also through another gateway, fails with words.
func TestUpAPILeadsBack(t *testing.T) {
	runtimeFolder(t)
	ports := []string{freePort(t), freePort(t)}
	base := func(i int) string { return "http://127.0.0.1:" + ports[i] }
	document := func(name string) string { // of the tool again of a server
		file := filepath.Join(t.TempDir(), name+".json")
		text := `{"openapi":"3.1.0","info":{"title":"x","version":"1"},"paths":{"/api/` + name + `/again":{"post":{"operationId":"again","requestBody":{"content":{"application/json":{}}}}}}}`
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	banner := ""
	for i := range ports {
		file := filepath.Join(t.TempDir(), "mcp.json")
		writeConfig(t, file, map[string]any{
			"self": map[string]any{"openapi": base(i) + "/api/own", "args": []string{"--allow-private"}},
			"own":  map[string]any{"openapi": document("own"), "args": []string{"--base", base(i)}},
			"far":  map[string]any{"openapi": document("far"), "args": []string{"--base", base(1 - i)}},
			"cmd":  again(t, "openapi", document("cmd"), "--base", base(i)),
		})
		banner += beginUp(t, "up", "--http", "127.0.0.1:"+ports[i], "--config", file, "--api").banner
	}
	if n := strings.Count(banner, "left out: it is this patchbay itself, by the address where it listens"); n != 2 {
		t.Errorf("%d servers are left out, want 2:\n%s", n, banner)
	}
	for _, path := range []string{"/api/own/again", "/api/far/again", "/api/cmd/again"} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", base(0)+path, strings.NewReader(`{"body":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(string(body), "The API answered 508 Loop Detected.") || !strings.Contains(string(body), "this request came back to a program that forwarded it") {
			t.Errorf("%s: %d %s", path, res.StatusCode, body)
		}
	}
}

// A call at /api is one span with that of its server below it, under the span that the header of the HTTP request names; the audit
// log has its trace. So it is for a call that fails or takes too long, and the status says which.
func TestUpAPITelemetry(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "200")
	c := newCollector(t)
	slow := stubServer(t)
	slow["patchbay"] = map[string]any{"callLimit": "300ms"}
	r, log, header := audited(t, "listen: {api: true}\nauth: [apikeys:keys.jsonl]\naudit: {file: audit.jsonl}\ntelemetry: {otlp: '"+c.url+"'}\n", map[string]any{
		"slow": slow, "all": map[string]any{"builtin": "everything"},
	})
	const parent = "b7ad6b7169203331"
	calls := []struct {
		path, args string
		status     int
		detail     string   // of the problem
		spans      []string // below one another
		end        string   // in the audit log
	}{
		{"/all/echo", `{"message":"hi"}`, 200, "", []string{"2 tools/call echo", "3 tools/call echo"}, "echo ok"},
		{"/slow/hang", `{}`, 504, `server "slow" took longer than 300ms (callLimit)`, []string{"2 tools/call hang", "3 tools/call hang"}, "hang error"},
		{"/slow/args", `{"count":"x"}`, 422, "count", []string{"2 tools/call args", "3 tools/call args"}, "args tool error"},
	}
	for i, call := range calls {
		req, err := http.NewRequestWithContext(t.Context(), "POST", strings.TrimSuffix(r.url, listen.Path)+listen.APIPath+call.path, strings.NewReader(call.args))
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header.Clone()
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Traceparent", fmt.Sprintf("00-0af7651916cd43dd8448eb211c80319%d-%s-01", i, parent))
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		var p struct {
			Status int
			Detail string
		}
		if res.Header.Get("Content-Type") == "application/problem+json" {
			err = json.Unmarshal(body, &p)
		}
		if err != nil || res.StatusCode != call.status || !strings.Contains(p.Detail, call.detail) || call.detail != "" && p.Status != call.status {
			t.Errorf("%s: %d %s, %v, want %d", call.path, res.StatusCode, body, err, call.status)
		}
	}
	until(t, "the spans of the calls are there", func() bool { return len(c.calls()) >= 6 })
	for i, call := range calls {
		var tree []string
		id, trace := parent, fmt.Sprintf("0af7651916cd43dd8448eb211c80319%d", i)
		for _, s := range c.calls() {
			if s.TraceID == trace {
				tree = append(tree, "")
			}
		}
		for at := range tree {
			for _, s := range c.calls() {
				if s.TraceID == trace && s.ParentSpanID == id {
					tree[at], id = fmt.Sprint(s.Kind, " ", s.Name), s.SpanID
					break
				}
			}
		}
		if !slices.Equal(tree, call.spans) {
			t.Errorf("%s has the spans %q, want %q", call.path, tree, call.spans)
		}
	}
	r.stop(t)
	ends := map[string]string{}
	for e, err := range audit.Read(log) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == audit.CallEnd {
			ends[e.Trace] += fmt.Sprint(e.Tool, " ", e.Outcome)
		}
	}
	for i, call := range calls {
		if got := ends[fmt.Sprintf("0af7651916cd43dd8448eb211c80319%d", i)]; got != call.end {
			t.Errorf("the audit log has the end %q of %s, want %q", got, call.path, call.end)
		}
	}
}
