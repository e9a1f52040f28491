package explain_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/explain"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/deploy"
)

const servers = `{"mcpServers": {
  "jira": {"url": "https://jira.example/mcp", "patchbay": {"trusted": true, "cache": "1m", "callTimeout": "2m", "callLimit": "10m", "share": "principal", "clients": 7,
    "replicas": ["https://jira2.example/mcp"], "breaker": {"open": "50% of 10 in 20s", "for": "5s"}, "tools": {"disabled": ["secret_*"]}}},
  "wiki": {"url": "https://wiki.example/mcp", "patchbay": {"cache": "1m"}},
  "off": {"url": "https://off.example/mcp", "disabled": true}
}}`

// deployment reads a deployment. Its server jira lists tools.
func deployment(t *testing.T, gateway string) *explain.Deployment {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"mcp.json": servers, "gateway.yaml": gateway, "rules.yaml": "default: allow\nrules:\n  - {name: none, when: name == \"none\", effect: deny}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := deploy.Load(filepath.Join(dir, "gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := config.Load(filepath.Join(dir, "mcp.json"), nil)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("long", 30)
	list := []json.RawMessage{
		json.RawMessage(`{"name":"find","annotations":{"readOnlyHint":true}}`), json.RawMessage(`{"name":"delete","annotations":{"destructiveHint":true}}`),
		json.RawMessage(`{"name":"secret_one"}`), json.RawMessage(`{"name":"` + long + `"}`),
	}
	return &explain.Deployment{
		File: f, Servers: file, Program: chain.Program{}, Trusted: func(s config.Server) bool { return s.Trusted },
		Lists: map[string][]json.RawMessage{"jira": list}, Source: "a test",
	}
}

const whole = `servers: mcp.json
policy: rules.yaml
limits: [9/s, "tool:jira_f*=1/h", "tool:wiki_*=2/h", address=5/s, concurrent=3, proxy=10.0.0.0/8]
audit: {file: audit.jsonl, sync: none, onFailure: pass}
`

// Each fact has the values that are set, and says which of them count.
func TestFacts(t *testing.T) {
	d := deployment(t, whole)
	for _, tt := range []struct {
		tool        string
		annotations string
		want        map[string]string // the beginning of each fact; limits are joined
	}{
		{"jira_find", "", map[string]string{
			"server": "jira, tool find (mcp.json:2), trusted", "hints": "readOnlyHint=true", "cache": "yes, for 1m0s: ", "deadline": "2m0s without a message (callTimeout); 10m0s for the whole call (callLimit)",
			"limit":   "9/s (gateway.yaml:3): requests of this caller; tool:jira_f*=1/h (gateway.yaml:3): calls of the tool, of this caller; address=5/s (gateway.yaml:3): HTTP requests of the address; concurrent=3 (gateway.yaml:3): requests of this caller",
			"breaker": "opens when 5 of 10 calls within 20s fail, for 5s; one for each of 2 replicas", "share": "principal: one connection for each principal; at most 7 clients",
			"audit": "yes, in audit.jsonl: the call does not wait for its first line, as the tool of a trusted server only reads; it is made even if that fails",
		}},
		{"jira_delete", "", map[string]string{"hints": "destructiveHint=true", "cache": "no, and the call drops the kept results of jira", "audit": "yes, in audit.jsonl: the call waits until its first line is written", "limit": "9/s (gateway.yaml:3): requests of this caller; address"}},
		{"jira_delete", `{"readOnlyHint":true}`, map[string]string{"hints": "readOnlyHint=true", "cache": "yes"}},
		{"wiki_find", "", map[string]string{"server": "wiki, tool find (mcp.json:4)", "hints": "unknown, as no running patchbay up", "cache": `no: "cache" has no effect without "trusted": true of wiki`, "deadline": "5m0s without a message (default); none", "breaker": "none: a single server", "share": "auto: "}},
		{"wiki_find", `{"readOnlyHint":true}`, map[string]string{"hints": "readOnlyHint=true; they do not count, as wiki is not trusted", "audit": "yes, in audit.jsonl: the call waits"}},
	} {
		c := &explain.Call{Tool: tt.tool}
		if tt.annotations != "" {
			c.Annotations = json.RawMessage(tt.annotations)
		}
		e, err := d.Explain(t.Context(), c)
		if err != nil {
			t.Errorf("%s: %v", tt.tool, err)
			continue
		}
		if !e.Allowed || e.Ways[0].By != "by default, as no rule matches" || e.Ways[0].Path != "/mcp" {
			t.Errorf("%s: %+v", tt.tool, e.Ways)
		}
		got := map[string]string{}
		for _, f := range e.Facts {
			if got[f.Of] != "" {
				got[f.Of] += "; "
			}
			got[f.Of] += f.Text
		}
		for of, want := range tt.want {
			if !strings.HasPrefix(got[of], want) {
				t.Errorf("%s %s: %s %q, want %q", tt.tool, tt.annotations, of, got[of], want)
			}
		}
	}
	files, err := os.ReadDir(d.File.Dir())
	if err != nil || len(files) != 3 {
		t.Errorf("an explanation has written a file: %v, %v", files, err)
	}
}

// A tool that cannot be called has words that say why, and what to do.
func TestUnknownTools(t *testing.T) {
	d := deployment(t, "servers: mcp.json\nviews: {small: {tools: [jira_find], rename: {jira_find: search}}}\n")
	for _, tt := range []struct {
		call explain.Call
		want string
	}{
		{explain.Call{Tool: "jira_fin"}, `no server has the tool "jira_fin"; did you mean "jira_find"?`},
		{explain.Call{Tool: "x"}, `no server has the tool "x"`},
		{explain.Call{Tool: "jira_secret_one"}, `no server has the tool "jira_secret_one"`},
		{explain.Call{Tool: "off_x"}, `"off_x" is a tool of "off", which is disabled (`},
		{explain.Call{Tool: "jira_find", View: "smal"}, `has no view "smal"; views: small; did you mean "small"?`},
		{explain.Call{Tool: "wiki_some--abcdefgh"}, "is a shortened name; only a running patchbay up"},
	} {
		if _, err := d.Explain(t.Context(), &tt.call); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", tt.call.Tool, err, tt.want)
		}
	}
	for _, name := range []string{"jira_find", "search"} {
		e, err := d.Explain(t.Context(), &explain.Call{Tool: name, View: "small"})
		if err != nil || !e.Allowed || e.Ways[0].Name != "search" || e.Tool != "jira_find" || e.Ways[0].By != "as gateway.yaml has no policy" {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	d.Lists = nil
	if e, err := d.Explain(t.Context(), &explain.Call{Tool: "jira_delete", View: "small"}); err != nil || e.Allowed || !strings.Contains(e.Ways[0].By, `the view "small" does not have it (gateway.yaml:2)`) {
		t.Errorf("outside of the view: %+v, %v", e, err)
	}
	if _, err := d.Explain(t.Context(), &explain.Call{Tool: "jira_secret_one"}); err == nil || !strings.Contains(err.Error(), "its entry leaves it out") {
		t.Errorf("a tool that the entry leaves out: %v", err)
	}
}

// The claims of a token make the principal that the verifiers of auth would make of it.
func TestClaims(t *testing.T) {
	path := filepath.Join(t.TempDir(), "claims.json")
	if err := os.WriteFile(path, []byte(`{"iss":"https://idp.example","sub":"ada","groups":["dev","lead"],"scp":["a","b"],"exp":5,"nbf":1,"aud":"x","team":"red"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for auth, want := range map[string]string{
		"auth: ['jwt:https://idp.example,audience=y,roles=groups']\n": "https://idp.example#ada dev,lead a,b red",
		"auth: ['jwt:https://other.example,audience=y']\n":            "does not accept a token with the claims of",
		"servers: mcp.json\n": "jwt#ada  a,b red",
	} {
		c := &explain.Caller{Claims: path}
		p, err := c.Of(deployment(t, auth).File)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = p.ID + " " + strings.Join(p.Roles, ",") + " " + strings.Join(p.Scopes, ",") + " " + p.Claims["team"].(string)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", auth, got, want)
		}
	}
}
