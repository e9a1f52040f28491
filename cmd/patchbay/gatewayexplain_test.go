package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/explain"
	"github.com/patchbay-dev/patchbay/mcp"
)

// explaining is a deployment with three callers, four views and rules on all that rules can ask.
const explaining = `auth: [apikeys:keys.jsonl]
policy: rules.yaml
teams: {from: principal.roles, members: {helpers: [support]}}
limits: [1000/s, "tool:ev_*=600/h"]
views:
  all: {}
  support: {for: '"support" in principal.roles', tools: ["ev_add", "ev_greet", "stub_args"], rename: {ev_add: plus}}
  search: {tools: ["ev_*", "stub_args"], mode: search, changes: {ev_echo: {hidden: true}}}
  fixed: {changes: {ev_add: {arguments: {a: 1000}}, ev_greet: {hidden: true}}}
`

const explainingRules = `default: deny
rules:
  - {name: nobody hangs, when: name == "hang", effect: deny}
  - {name: large numbers, when: 'name == "add" && arguments.a > 100', effect: deny, reason: too large}
  - {name: readers, when: kind == "tool" && annotations.readOnlyHint, effect: allow}
  - {name: stub needs a scope, when: 'server == "stub" && !("stub" in principal.scopes)', effect: deny, scopes: [stub]}
  - {name: stub, when: server == "stub", effect: allow}
`

// explained runs gateway explain.
func explained(t *testing.T, args ...string) (e *explain.Explanation, code int, out string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(t.Context(), append([]string{"gateway", "explain"}, args...), strings.NewReader(""), &stdout, &stderr)
	if slices.Contains(args, "--json") && (code == exitOK || code == exitRefused) {
		e = new(explain.Explanation)
		if err := json.Unmarshal([]byte(stdout.String()), e); err != nil {
			t.Fatalf("%q prints %q: %v", args, stdout.String(), err)
		}
	}
	return e, code, stdout.String() + stderr.String()
}

// deployExplaining starts the deployment. It returns the keys of its callers.
func deployExplaining(t *testing.T) (r *running, file string, keys map[string]string) {
	t.Helper()
	runtimeFolder(t)
	dir := t.TempDir()
	keys = map[string]string{}
	var lines []byte
	for _, one := range []struct{ subject, role, scope string }{{"ada", "support", "stub"}, {"bob", "support", ""}, {"eve", "", "stub"}} {
		key, entry := auth.NewAPIKey(one.subject)
		if one.role != "" {
			entry.Roles = []string{one.role}
		}
		if one.scope != "" {
			entry.Scopes = []string{one.scope}
		}
		line, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
		keys["apikey#"+one.subject] = key
	}
	file = filepath.Join(dir, "gateway.yaml")
	for name, text := range map[string]string{"keys.jsonl": string(lines), "gateway.yaml": explaining, "rules.yaml": explainingRules} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return startUp(t, map[string]any{"ev": map[string]any{"builtin": "everything"}, "stub": stubServer(t)}, "--gateway", file), file, keys
}

// gateway explain and up agree about each caller, tool and view.
func TestExplainAgreesWithUp(t *testing.T) {
	r, file, keys := deployExplaining(t)
	views := map[string]string{"all": "", "support": "/v/support", "search": "/v/search", "fixed": "/v/fixed"}
	tools := []struct{ name, args string }{
		{"ev_add", `{"a":1,"b":2}`}, {"ev_add", `{"a":101,"b":2}`}, {"ev_greet", `{"name":"x"}`}, {"ev_echo", `{"message":"x"}`}, {"stub_args", `{"count":1}`}, {"stub_hang", `{}`},
	}
	allowed := 0
	for id, key := range keys {
		for view, path := range views {
			s, dialErr := (&mcp.Client{Name: "desk", Version: "1", Header: http.Header{"Authorization": {"Bearer " + key}}}).Dial(t.Context(), r.url+path)
			for _, tool := range tools {
				var args map[string]any
				if err := json.Unmarshal([]byte(tool.args), &args); err != nil {
					t.Fatal(err)
				}
				name := tool.name
				if view == "support" && name == "ev_add" {
					name = "plus"
				}
				err := dialErr
				var res *mcp.ToolResult
				switch {
				case err != nil:
				case view == "search":
					res, err = s.CallTool(t.Context(), "call_tool", map[string]any{"name": name, "arguments": args})
				default:
					res, err = s.CallTool(t.Context(), name, args)
				}
				if err == nil && res.IsError { // of the view: the servers have none for these arguments
					err = fmt.Errorf("the result is an error: %v", res.Content)
				}
				command := []string{tool.name, "--gateway", file, "--config", r.file, "--principal", id, "--view", view, "--json"}
				for k, v := range args {
					command = append(command, fmt.Sprintf("%s=%v", k, v))
				}
				e, code, out := explained(t, command...)
				if e == nil {
					t.Errorf("%q: exit code %d: %s", command, code, out)
					continue
				}
				if e.Allowed != (err == nil) || (code == exitOK) != (err == nil) || e.Ways[0].Name != name {
					t.Errorf("%s at %s, %s %s: up: %v; explain (%d): %s", id, view, tool.name, tool.args, err, code, out)
				}
				if e.Allowed {
					allowed++
				}
			}
			if s != nil {
				s.Close()
			}
		}
	}
	if allowed < 15 || allowed > 3*4*len(tools)-15 {
		t.Errorf("%d calls are allowed: the table does not test both outcomes", allowed)
	}
}

// The output of explain: the rule with its place, the view, the limits, and where the tools come from.
func TestExplainWords(t *testing.T) {
	r, file, _ := deployExplaining(t)
	claims := filepath.Join(t.TempDir(), "claims.json")
	if err := os.WriteFile(claims, []byte(`{"sub":"zoe","roles":["support"],"scope":"stub other","exp":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		code int
		want []string
	}{
		{"ev_greet --principal apikey#bob --view support", exitOK, []string{
			`(?m)^allowed  by rule "readers" \(rules.yaml:5\)$`, `(?m)^at       view support, /mcp/v/support: as ev_greet$`, `(?m)^caller   apikey#bob; roles support; team helpers$`,
			`(?m)^server   ev, tool greet \(mcp.json:\d+\), trusted; now ready$`, `(?m)^hints    .*readOnlyHint=true`, `(?m)^limit    1000/s \(gateway.yaml:4\): requests of this caller$`,
			`(?m)^limit    tool:ev_\*=600/h \(gateway.yaml:4\): calls of the tool`, `(?m)^cache    no: "cache" of the server is not set$`, `(?m)^deadline 5m0s without a message`, `(?m)^breaker  none`, `(?m)^share    `,
			`(?m)^audit    no: gateway.yaml has no audit$`, `(?m)^tools of the running patchbay up \(pid \d+\)$`,
		}},
		{"plus a=200 b=1 --principal apikey#bob --view support", exitRefused, []string{`refused  by rule "large numbers" \(rules.yaml:4\)`, "reason: too large"}},
		{"ev_add b=1 --principal apikey#bob --view fixed", exitRefused, []string{`refused  by rule "large numbers" \(rules.yaml:4\)`}},
		{"stub_args --principal apikey#bob --view support", exitRefused, []string{`refused  by rule "stub needs a scope" \(rules.yaml:6\)`, "scopes that would allow it, sent to the caller: stub", "hints .*do not count, as stub is not trusted"}},
		{"stub_args --view support --principal apikey#eve", exitRefused, []string{`refused  the view "support" is not for this caller \(gateway.yaml:7\)`}},
		{"stub_hang --view support --principal apikey#ada", exitRefused, []string{`refused  the view "support" does not have it \(gateway.yaml:7\)`}},
		{"ev_greet --view fixed", exitRefused, []string{`the view "fixed" hides it \(gateway.yaml:9\)`, "caller   anonymous; team none"}},
		{"ev_greet", exitOK, []string{"at       view all, /mcp: as ev_greet", "not at   view support, /mcp/v/support: the view \"support\" is not for this caller", "at       view search, /mcp/v/search: as ev_greet, by call_tool", "not at   view fixed"}},
		{"stub_args --view support --claims " + claims, exitOK, []string{`allowed  by rule "stub" \(rules.yaml:7\)`, "caller   jwt#zoe; roles support; scopes stub other; team helpers"}},
		{"stub_hang --principal apikey#ada --view all --annotation readOnlyHint", exitRefused, []string{`by rule "nobody hangs" \(rules.yaml:3\)`}},
		{"ev_gret", exitUsage, []string{`no server has the tool "ev_gret"; did you mean "?ev_greet`}},
		{"ev_greet --view suport", exitUsage, []string{`has no view "suport"; views: all, support, search, fixed; did you mean`}},
		{"ev_greet --principal apikey#zed", exitUsage, []string{`no API key of .* has the subject "zed"; there are apikey#ada, apikey#bob, apikey#eve`}},
		{"ev_greet --principal a --claims b", exitUsage, []string{"--principal and --claims exclude each other"}},
		{"ev_greet --claims " + file, exitUsage, []string{"is not a JSON object with the claims of a token"}},
	} {
		_, code, out := explained(t, append(strings.Fields(tt.args), "--gateway", file, "--config", r.file)...)
		if code != tt.code {
			t.Errorf("%s: exit code %d, want %d", tt.args, code, tt.code)
		}
		for _, want := range tt.want {
			if !regexp.MustCompile(want).MatchString(out) {
				t.Errorf("%s: no line %s in\n%s", tt.args, want, out)
			}
		}
	}
	r.stop(t)
	_, code, out := explained(t, "ev_greet", "--gateway", file, "--config", r.file, "--principal", "apikey#bob")
	if code != exitRefused || !strings.Contains(out, "hints    unknown, as no running patchbay up") || strings.Contains(out, "tools of") {
		t.Errorf("without a running up: exit code %d\n%s", code, out)
	}
	if _, code, out = explained(t, "ev_greet", "--gateway", file, "--config", r.file, "--annotation", "readOnlyHint=true"); code != exitOK {
		t.Errorf("with an annotation: exit code %d\n%s", code, out)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(file), "audit.jsonl")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an explanation has made an audit log: %v", err)
	}
}
