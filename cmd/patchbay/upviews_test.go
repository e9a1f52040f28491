package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Each view has a path of its own, with what it says and for whom. A change of the file counts at once,
// and who listens is told; the audit log names the view that refused a call.
func TestUpViews(t *testing.T) {
	const teams = "auth: [apikeys:keys.jsonl]\naudit: {file: audit.jsonl}\nteams: {from: principal.id, members: {dev: [apikey#ada]}}\n"
	r, log, header := audited(t, teams+`views:
  ours: {for: principal.id == "apikey#ada", tools: ["a_*"], rename: {a_args: count}}
  theirs: {for: '"lead" in principal.roles', tools: ["*"]}
  search: {tools: ["*"], mode: search}
`, map[string]any{"a": stubServer(t), "b": stubServer(t)})
	dial := func(path string) (*mcp.Session, error) {
		return (&mcp.Client{Name: "desk", Version: "1", Header: header}).Dial(t.Context(), r.url+path)
	}
	tools := func(path string) string {
		s, err := dial(path)
		if err != nil {
			return err.Error()
		}
		defer s.Close()
		var names []string
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				return err.Error()
			}
			names = append(names, tool.Name)
		}
		slices.Sort(names)
		return strings.Join(names, " ")
	}
	for path, want := range map[string]string{
		"/v/ours":   "^[^b]*\\bcount\\b[^b]*$",
		"/v/theirs": `may not use the view \\?"theirs`,
		"/v/search": "^call_tool describe_tool find_tools$",
		"/v/none":   "404",
		"/s/a":      "404",
		"":          `no view \\?"all`,
	} {
		if got := tools(path); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%q has %s, want %s", path, got, want)
		}
	}
	if got := r.banner; !strings.Contains(got, " serves "+r.url+"/v/ours and 2 other views\n") || !strings.Contains(got, "(view search: "+r.url+"/v/search)") || !strings.Contains(got, "-s "+r.url+"/v/ours ") {
		t.Errorf("up shows\n%s", got)
	}
	s, err := dial("/v/ours")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if res, err := s.CallTool(t.Context(), "count", map[string]any{"count": 1}); err != nil || res.IsError {
		t.Errorf("the tool of the view: %v, %v", res, err)
	}
	outside, absent := "", ""
	if _, err := s.CallTool(t.Context(), "b_args", map[string]any{"count": 1}); err != nil {
		outside = strings.ReplaceAll(err.Error(), "b_args", "NAME")
	}
	if _, err := s.CallTool(t.Context(), "x_args", map[string]any{"count": 1}); err != nil {
		absent = strings.ReplaceAll(err.Error(), "x_args", "NAME")
	}
	if outside == "" || outside != absent {
		t.Errorf("outside of the view: %s; absent: %s", outside, absent)
	}

	// Without a credential nothing is told but where to log in.
	res, err := http.Get(r.url + "/v/ours")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a credential: %s", res.Status)
	}

	file := filepath.Join(filepath.Dir(log), "gateway.yaml")
	write := func(views string) {
		t.Helper()
		if err := os.WriteFile(file+"~", []byte(teams+views), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+"~", file); err != nil {
			t.Fatal(err)
		}
	}
	write("views:\n  ours: {tools: [b_args]}\n  all: {}\n")
	r.stderr.await(t, "changed views")
	for path, want := range map[string]string{"/v/ours": "^b_args$", "": `a_args.*b_args`, "/s/a": `^[^_]*\bargs\b`, "/v/theirs": "404"} {
		if got := tools(path); !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("after the change %q has %s, want %s", path, got, want)
		}
	}
	if _, err := s.CallTool(t.Context(), "b_args", map[string]any{"count": 1}); err != nil {
		t.Errorf("the session of before: %v", err)
	}
	write("views:\n  all: {for: '\"lead\" in principal.roles'}\n")
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(tools("/s/a"), "may not use the view") && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	tools("/s/a") // from its beginning
	write("views:\n  ours: {for: principal.rols == 1}\n")
	r.stderr.await(t, "views.ours.for")

	r.stop(t)
	denied := map[string]bool{}
	for e := range audit.Read(log) {
		if e.Kind == audit.Denied && e.Decision != nil && e.Principal != nil {
			denied[e.Method+e.Tool+" "+e.Decision.Rule+" "+e.Fault] = true
		}
		if e.Kind == audit.CallEnd && e.Tool == "x_args" {
			denied["x_args"] = true
		}
	}
	for _, want := range []string{`b_args view "ours" `, `x_args view "ours" unknown`, `server/discover view "theirs" `, `server/discover view "all" `} {
		if !denied[want] {
			text, _ := os.ReadFile(log)
			t.Errorf("no line says %q but %v:\n%s", want, denied, text)
		}
	}
	if denied["x_args"] {
		t.Error("a call of a tool outside of the view has a line call.end")
	}
}

// Limits of a tool count its calls by every way together: under another name, by call_tool, and at the
// server alone.
func TestUpViewsLimits(t *testing.T) {
	r, _, header := audited(t, "auth: [apikeys:keys.jsonl]\nlimits: ['tool:a_args=2/h']\nviews:\n  renamed: {rename: {a_args: count}}\n  search: {mode: search}\n  all: {}\n",
		map[string]any{"a": stubServer(t), "b": stubServer(t)})
	call := func(path, tool string, args any) string {
		s, err := (&mcp.Client{Name: "desk", Version: "1", Header: header}).Dial(t.Context(), r.url+path)
		if err != nil {
			return err.Error()
		}
		defer s.Close()
		if res, err := s.CallTool(t.Context(), tool, args); err != nil || res.IsError {
			return fmt.Sprint(res, err)
		}
		return "ok"
	}
	one := map[string]any{"count": 1}
	for i, c := range []struct {
		path, tool string
		args       any
		want       string
	}{
		{"/v/renamed", "count", one, "ok"},
		{"/v/search", "call_tool", map[string]any{"name": "a_args", "arguments": one}, "ok"},
		{"/s/a", "args", one, "than 2/h"},
		{"/v/search", "call_tool", map[string]any{"name": "a_args", "arguments": one}, "than 2/h"},
		{"/v/renamed", "count", one, "than 2/h"},
		{"", "a_args", one, "than 2/h"},
		{"/s/b", "args", one, "ok"},
		{"", "b_args", one, "ok"},
	} {
		if got := call(c.path, c.tool, c.args); !strings.Contains(got, c.want) {
			t.Errorf("call %d, of %s at %q: %s, want %s", i, c.tool, c.path, got, c.want)
		}
	}
}

// Requests that a view refuses count for the limit of their caller.
func TestUpViewsRefusalsAreLimited(t *testing.T) {
	r, _, header := audited(t, "auth: [apikeys:keys.jsonl]\nlimits: [10/h]\nviews: {small: {tools: ['b_*']}}\n", map[string]any{"a": stubServer(t)})
	s, err := (&mcp.Client{Name: "desk", Version: "1", Header: header}).Dial(t.Context(), r.url+"/v/small")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 11 {
		_, err = s.CallTool(t.Context(), "a_args", map[string]any{"count": 1})
	}
	if err == nil || !strings.Contains(err.Error(), "than 10/h") {
		t.Errorf("after 11 refusals: %v", err)
	}
}

// Each view is a resource of its own for clients that log in.
func TestUpViewsMetadata(t *testing.T) {
	runtimeFolder(t)
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	if err := os.WriteFile(path, []byte("auth: ['jwt:http://127.0.0.1:1,audience=x']\nviews: {small: {tools: ['*']}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startUp(t, map[string]any{"a": stubServer(t)}, "--gateway", path)
	base := strings.TrimSuffix(r.url, "/mcp")
	for at, want := range map[string]string{"/mcp": "/mcp", "/mcp/v/small": "/mcp/v/small"} {
		res, err := http.Get(base + "/.well-known/oauth-protected-resource" + at)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if !strings.Contains(string(text), `"resource":"`+base+want+`"`) {
			t.Errorf("the metadata at %s is %s", at, text)
		}
	}

	wantAlike(t, base, "/mcp/v/", "small")
}

// wantAlike fails the test if callers without a credential of the gateway can tell the resource of a name from one
// that does not exist.
func wantAlike(t *testing.T, base, path, name string) {
	t.Helper()
	answer := func(method, path, name string, header ...string) string {
		t.Helper()
		req, err := http.NewRequest(method, base+strings.ReplaceAll(path, "NAME", name), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		res.Header.Del("Date")
		return strings.ReplaceAll(fmt.Sprintln(res.Status, res.Header, string(body)), "/"+name, "/NAME")
	}
	at, absent := path+"NAME", strings.Repeat("q", len(name)) // answers have a Content-Length
	for _, c := range [][]string{
		{"GET", "/.well-known/oauth-protected-resource" + at},
		{"OPTIONS", "/.well-known/oauth-protected-resource" + at},
		{"GET", at}, {"HEAD", at}, {"DELETE", at}, {"PUT", at},
		{"POST", at, "Content-Type", "application/json", "Accept", "application/json, text/event-stream"},
		{"POST", at, "Authorization", "Bearer x.y.z"},
		{"OPTIONS", at, "Origin", base, "Access-Control-Request-Method", "POST"},
		{"OPTIONS", at, "Origin", "https://evil.example", "Access-Control-Request-Method", "POST"},
	} {
		there, none := answer(c[0], c[1], name, c[2:]...), answer(c[0], c[1], absent, c[2:]...)
		if there != none {
			t.Errorf("%s: of what is there\n%s\nof what is not\n%s", c, there, none)
		}
		if _, url, ok := strings.Cut(there, `resource_metadata="`); ok {
			url, _, _ = strings.Cut(strings.TrimPrefix(url, base), `"`)
			there, none := answer("GET", url, name), answer("GET", url, absent)
			if there != none || !strings.Contains(there, `"resource":"`+base+at+`"`) {
				t.Errorf("%s: metadata of what is there\n%s\nof what is not\n%s", url, there, none)
			}
		}
	}
}

// Each server below /mcp/s is a resource of its own too: a token for it is refused at every other path, and
// without a token nobody can find out which servers there are.
func TestUpServersAreResources(t *testing.T) {
	runtimeFolder(t)
	dir := t.TempDir()
	const issuer = "https://issuer.example"
	key, file := filepath.Join(dir, "key.pem"), filepath.Join(dir, "gateway.yaml")
	token := func(audience string) string {
		return strings.TrimSpace(patchbay(t, "token", "jwt", "ada", "--key", key, "--issuer", issuer, "--audience", audience))
	}
	token("makes the key")
	if err := os.WriteFile(file, []byte("auth: ['jwt:"+issuer+",keys=key.pem']\nviews: {all: {}, small: {tools: ['*']}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startUp(t, map[string]any{"a": stubServer(t), "b": stubServer(t)}, "--gateway", file)
	base := strings.TrimSuffix(r.url, "/mcp")
	wantAlike(t, base, "/mcp/s/", "a")

	paths := []string{"/mcp", "/mcp/s/a", "/mcp/s/b", "/mcp/v/small"}
	for _, resource := range append(paths, "/mcp/s/none", "/mcp/s") {
		client := &mcp.Client{Header: http.Header{"Authorization": {"Bearer " + token(base+resource)}}}
		for _, path := range paths {
			s, err := client.Dial(t.Context(), base+path)
			if err == nil {
				s.Close()
			}
			var status *mcp.HTTPError
			if path == resource && err != nil || path != resource && (!errors.As(err, &status) || status.Status != http.StatusUnauthorized) {
				t.Errorf("a token for %s at %s: %v", resource, path, err)
			}
		}
	}
}

// The report has the tokens of each view, server and tool, about: a quarter of the bytes of what clients
// list. A view that changes tells so at once.
func TestUpViewsTokens(t *testing.T) {
	runtimeFolder(t)
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	write := func(views string) {
		t.Helper()
		if err := os.WriteFile(file+"~", []byte("views:\n  one: {tools: "+views+", changes: {a_args: {description: "+strings.Repeat("long", 100)+"}}}\n  found: {mode: search}\n  all: {}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+"~", file); err != nil {
			t.Fatal(err)
		}
	}
	write("[a_args]")
	r := startUp(t, map[string]any{"a": stubServer(t), "b": stubServer(t)}, "--gateway", file)
	report := func() (out health.Report) {
		t.Helper()
		res, err := http.Get(strings.TrimSuffix(r.url, "/mcp") + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	listed := func(path string) (n, tokens int) {
		t.Helper()
		bytes := 0
		s, err := new(mcp.Client).Dial(t.Context(), r.url+path)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for params := []byte("{}"); params != nil; {
			res, err := s.Do(t.Context(), &mcp.Request{Method: "tools/list", Params: params})
			if err != nil {
				t.Fatal(err)
			}
			var page struct {
				Tools      []json.RawMessage
				NextCursor json.RawMessage
			}
			if err := json.Unmarshal(res.JSON(), &page); err != nil {
				t.Fatal(err)
			}
			for _, tool := range page.Tools {
				n, bytes = n+1, bytes+len(tool)
			}
			if params = nil; page.NextCursor != nil {
				params = fmt.Appendf(nil, `{"cursor":%s}`, page.NextCursor)
			}
		}
		return n, (bytes + 3) / 4
	}
	check := func(want map[string]string) {
		t.Helper()
		views := report().Views
		if len(views) != len(want) {
			t.Errorf("views %+v", views)
		}
		for _, v := range views {
			if v.Path != "/mcp"+want[v.Name] {
				t.Errorf("%+v, want the path %s", v, want[v.Name])
			}
			n, tokens := listed(strings.TrimPrefix(v.Path, "/mcp"))
			if v.Tokens != tokens || v.Search != (v.Name == "found") || !v.Search && v.Tools != n || v.Search && v.Tools < 10 {
				t.Errorf("%+v, but clients list %d tools of %d tokens", v, n, tokens)
			}
		}
	}
	paths := map[string]string{"one": "/v/one", "found": "/v/found", "all": ""}
	check(paths)
	for _, s := range report().Servers {
		_, tokens := listed("/s/" + s.Name)
		sum := 0
		for _, tool := range s.Largest {
			sum += tool.Tokens
		}
		// The gateway's names are longer than those of the server.
		if s.Tokens < tokens || s.Tokens > tokens+s.Tools || len(s.Largest) != s.Tools || sum < s.Tokens || s.Largest[0].Tokens < s.Largest[1].Tokens || strings.HasPrefix(s.Largest[0].Name, s.Name+"_") {
			t.Errorf("%s: %d tools of %d tokens, but it lists %d tokens; %+v", s.Name, s.Tools, s.Tokens, tokens, s.Largest)
		}
	}
	write("['*']")
	r.stderr.await(t, "changed views")
	check(paths)
}

// A view that hides all tools is named with its place, at the start and after a change.
func TestUpViewsEmpty(t *testing.T) {
	runtimeFolder(t)
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	write := func(views string) {
		t.Helper()
		if err := os.WriteFile(file+"~", []byte("views:\n  all: {}\n"+views), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+"~", file); err != nil {
			t.Fatal(err)
		}
	}
	write("  small: {tools: [b_*]}\n  full: {tools: ['*']}\n  pages: {resources: ['*']}\n")
	r := startUp(t, map[string]any{"a": stubServer(t)}, "--gateway", file)
	r.stderr.await(t, `warning: \S+gateway.yaml:3:\d+: view "small" has none of the 5 tools`)
	write("  full: {tools: ['*']}\n  other: {tools: [A_args]}\n")
	r.stderr.await(t, `warning: \S+gateway.yaml:4:\d+: view "other" has none of the 5 tools`)
	if text := r.stderr.String(); strings.Contains(text, `"full"`) || strings.Contains(text, `"pages"`) {
		t.Errorf("other views are named:\n%s", text)
	}

	// So are changes without an effect, once, and the report has them.
	write("  full: {rename: {a_agrs: x, b_args: y, a_args: a_free, c: d}}\n")
	for _, want := range []string{
		`:3:\d+: view "full" changes the tool "a_agrs", which server "a" does not list; correct the name, or remove the change`,
		`:3:\d+: view "full" changes the tool "b_args", which no server offers`,
		`:3:\d+: view "full" does not have the tool "a_free" of a server, because "a_args" is renamed to that; use another name`,
	} {
		r.stderr.await(t, want)
	}
	for range 2 {
		if names := listOf(t, r.url+"/v/full"); !strings.Contains(names, "a_free") || strings.Contains(names, "a_args") {
			t.Errorf("the view has %s", names)
		}
	}
	if text := r.stderr.String(); strings.Count(text, "a_agrs") != 1 || strings.Contains(text, "middleware") {
		t.Errorf("stderr\n%s", text)
	}
	res, err := http.Get(strings.TrimSuffix(r.url, "/mcp") + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var report health.Report
	if err := json.NewDecoder(res.Body).Decode(&report); err != nil || len(report.Views) != 2 || len(report.Views[1].Warnings) != 4 {
		t.Errorf("the report has %+v, %v", report.Views, err)
	}
}

// listOf returns the names of the tools at a URL.
func listOf(t *testing.T, url string) string {
	t.Helper()
	s, err := new(mcp.Client).Dial(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var names []string
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// Over stdio up serves one view: the one of --view, else the view all.
func TestUpViewsStdio(t *testing.T) {
	runtimeFolder(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "gateway.yaml")
	config := filepath.Join(dir, "mcp.json")
	data, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"a": stubServer(t), "b": stubServer(t)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, data, 0o600); err != nil {
		t.Fatal(err)
	}
	const small = "  small: {tools: [a_args], rename: {a_args: count}}\n  leads: {for: '\"lead\" in principal.roles'}\n"
	for _, c := range []struct {
		views string
		args  []string
		want  string
	}{
		{"views:\n" + small, []string{"--view", "small"}, "^count$"},
		{"views:\n" + small, nil, `has views and none of them is all, which is served over stdio without --view.*\n.*--view NAME, one of small, leads`},
		{"views:\n" + small, []string{"--view", "smal"}, `has no view "smal".*\n.*one of small, leads`},
		{"views:\n" + small, []string{"--view", "leads"}, `gateway.yaml:4:\d+: views.leads.for refuses callers over stdio, who have no principal`},
		{"views:\n" + small + "  all: {tools: [b_args]}\n", nil, "^b_args$"},
		{"", nil, "a_args.*b_args"},
		{"", []string{"--view", "small"}, `--view small: there are no views`},
	} {
		if err := os.WriteFile(file, []byte("servers: mcp.json\n"+c.views), 0o600); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"up", "--stdio", "--gateway", file}, c.args...)
		if got := stdioTools(t, args); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s with %q has %s, want %s", args, c.views, got, c.want)
		}
	}
	if got := stdioTools(t, []string{"up", "--gateway", file, "--view", "small"}); !strings.Contains(got, "--view is for --stdio: over HTTP each view has a path, such as /mcp/v/small") {
		t.Errorf("--view without --stdio: %s", got)
	}
}

// stdioTools returns the names of the tools of a command line that serves stdio, or what it says instead.
func stdioTools(t *testing.T, args []string) string {
	t.Helper()
	cmd, stderr := program(t, args...)
	s, err := new(mcp.Client).Start(t.Context(), cmd)
	if err != nil {
		until(t, "the program says why it ends", func() bool { return strings.Contains(stderr.String(), "patchbay") })
		return stderr.String()
	}
	defer s.Close()
	var names []string
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			return err.Error()
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}
