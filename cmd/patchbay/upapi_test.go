package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

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
