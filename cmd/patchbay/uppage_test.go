package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/wine"
	"github.com/patchbay-dev/patchbay/mcp"
)

// guest is the browser of somebody at a page.
type guest struct {
	at     string // address of the page, without a slash at its end
	client *http.Client
}

// newGuest returns the browser of somebody who is not in.
func newGuest(t *testing.T, at string) *guest {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &guest{strings.TrimSuffix(at, "/"), &http.Client{Jar: jar, Transport: asPage{http.DefaultTransport}}}
}

// asPage adds the headers that the page and its browser send.
type asPage struct{ next http.RoundTripper }

func (a asPage) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if r.Method != http.MethodGet {
		r.Header.Set("Origin", r.URL.Scheme+"://"+r.URL.Host)
		r.Header.Set("Patchbay-Page", "1")
	}
	return a.next.RoundTrip(r)
}

// ask sends a request and returns the status and the body of its answer. A body is sent by POST.
func (v *guest) ask(t *testing.T, path string, body any) (int, string) {
	t.Helper()
	method, raw := http.MethodGet, []byte(nil)
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), method, v.at+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := v.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// open opens a session with a server of the page, or with all at "*".
func (v *guest) open(t *testing.T, server string) *mcp.Session {
	t.Helper()
	c := &mcp.Client{Name: "patchbay page", Version: "1", HTTPClient: v.client, Revisions: []mcp.Revision{"2026-07-28"}}
	s, err := c.Dial(t.Context(), v.at+"/ui/mcp/"+url.PathEscape(server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// link returns the address and the code of a new link, from "patchbay page --print".
func link(t *testing.T) (at, code string) {
	t.Helper()
	cmd, said := program(t, "page", "--print")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("patchbay page: %v, %s", err, said)
	}
	at, code, ok := strings.Cut(strings.TrimSpace(string(out)), "/#in=")
	if !ok {
		t.Fatalf("patchbay page printed %q", out)
	}
	return at, code
}

// enter lets somebody in by a link.
func enter(t *testing.T) *guest {
	t.Helper()
	at, code := link(t)
	v := newGuest(t, at)
	if status, text := v.ask(t, "/ui/in", map[string]string{"code": code}); status != http.StatusOK {
		t.Fatalf("a link does not let in: HTTP %d %s", status, text)
	}
	return v
}

// Calls from the page pass the policy as the person who looks at it, and the audit log has them with the person and the
// page. Actions on servers do too.
func TestPageOfUp(t *testing.T) {
	runtimeFolder(t)
	dir := t.TempDir()
	rules, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.jsonl")
	if err := os.WriteFile(rules, []byte(`rules: [{name: one, effect: allow, when: 'server == "a" && principal.scheme == "local"'}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	r := startUp(t, map[string]any{"a": stubServer(t), "b": stubServer(t)}, "--policy", rules, "--audit", log)
	origin := strings.TrimSuffix(r.url, "/mcp")
	if !strings.Contains(r.banner, "page: "+origin+"/, opened by patchbay page") {
		t.Errorf("up says %q", r.banner)
	}
	v := enter(t)
	if v.at != origin {
		t.Errorf("the page is at %s, the endpoint at %s", v.at, r.url)
	}
	var state struct {
		Person  string
		Admin   bool
		Servers []struct{ Name string }
	}
	if _, text := v.ask(t, "/ui/state", nil); json.Unmarshal([]byte(text), &state) != nil || state.Person == "" || !state.Admin || len(state.Servers) != 2 {
		t.Errorf("the state is %s", text)
	}
	one, all := v.open(t, "a"), v.open(t, "*")
	for _, tt := range []struct {
		with *mcp.Session
		tool string
		ok   bool
	}{{one, "args", true}, {all, "a_args", true}, {v.open(t, "b"), "args", false}, {all, "b_args", false}} {
		if _, err := tt.with.CallTool(t.Context(), tt.tool, map[string]any{"count": 1}); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.tool, err)
		}
	}
	if s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), r.url); err != nil {
		t.Error(err)
	} else {
		if _, err := s.CallTool(t.Context(), "a_args", map[string]any{"count": 1}); err == nil {
			t.Error("a host without a credential is the person of the page")
		}
		s.Close()
	}
	if _, text := v.ask(t, "/ui/rows", nil); strings.Contains(text, `"tools/call"`) {
		t.Errorf("frames are kept while nobody looks: %s", text)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, v.at+"/ui/events?want=state", nil)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := v.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	if _, err := one.CallTool(t.Context(), "args", map[string]any{"count": 1}); err != nil {
		t.Error(err)
	}
	until(t, "the page has a call on both hops", func() bool {
		_, text := v.ask(t, "/ui/rows", nil)
		return strings.Count(text, `"method":"tools/call"`) == 2
	})
	leave()
	if status, text := v.ask(t, "/ui/restart/a", map[string]string{}); status != http.StatusOK {
		t.Errorf("restart: HTTP %d %s", status, text)
	}
	if status, _ := v.ask(t, "/ui/mcp/c", map[string]string{}); status != http.StatusNotFound {
		t.Errorf("a server that does not exist: HTTP %d", status)
	}
	person := `"principal":{"id":"local#[^"]+"}`
	for _, want := range []string{
		`"client":{[^}]*"name":"patchbay page"[^}]*"via":"page"}.*"kind":"call\.end".*` + person + `.*"server":{[^}]*"name":"a"}.*"tool":"args"`,
		`"via":"page".*"kind":"denied".*` + person + `.*"server":{[^}]*"name":"b"}.*"tool":"args"`,
		`"event":"restart".*` + person,
	} {
		until(t, "the audit log has "+want, func() bool {
			text, err := os.ReadFile(log)
			return err == nil && regexp.MustCompile(want).Match(text)
		})
	}
	if text, err := os.ReadFile(log); err != nil || regexp.MustCompile(`"name":"host"[^}]*"via"`).Match(text) {
		t.Errorf("a host is at the page: %v", err)
	}
}

// A caller with a credential comes in if they have the role admin or a rule lets them, and only while their key is in its
// file. The link of the owner still works.
func TestPageWithCredentials(t *testing.T) {
	runtimeFolder(t)
	dir := t.TempDir()
	token, keys := map[string]string{}, []byte(nil)
	lines := map[string][]byte{}
	for name, roles := range map[string][]string{"root": {"admin"}, "ada": nil, "bob": nil} {
		key, entry := auth.NewAPIKey(name)
		entry.Roles = roles
		line, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		token[name], lines[name], keys = key, append(line, '\n'), append(append(keys, line...), '\n')
	}
	file, rules := filepath.Join(dir, "keys.jsonl"), filepath.Join(dir, "policy.yaml")
	for name, text := range map[string]string{file: string(keys), rules: `rules:
- {name: the page, effect: allow, when: 'kind == "page" && principal.id == "apikey#ada"'}
- {name: tools, effect: allow, when: 'kind == "tool" && name == "args" && principal.id == "apikey#ada"'}
`} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := startUp(t, map[string]any{"a": stubServer(t)}, "--auth", "apikeys:"+file, "--policy", rules)
	at := strings.TrimSuffix(r.url, "/mcp")
	if status, text := newGuest(t, at).ask(t, "/ui/state", nil); status != http.StatusUnauthorized || !strings.Contains(text, "patchbay page") || !strings.Contains(text, `"ways":["link","key"]`) {
		t.Errorf("a stranger: HTTP %d %s", status, text)
	}
	comes := func(name string) (*guest, int, string) {
		v := newGuest(t, at)
		status, text := v.ask(t, "/ui/in", map[string]string{"key": token[name]})
		return v, status, text
	}
	if _, status, text := comes("bob"); status != http.StatusForbidden || !strings.Contains(text, "apikey#bob may not open this page") {
		t.Errorf("bob: HTTP %d %s", status, text)
	}
	root, status, text := comes("root")
	if status != http.StatusOK {
		t.Errorf("root: HTTP %d %s", status, text)
	}
	ada, status, text := comes("ada")
	if status != http.StatusOK {
		t.Fatalf("ada: HTTP %d %s", status, text)
	}
	if _, err := ada.open(t, "a").CallTool(t.Context(), "args", map[string]any{"count": 1}); err != nil {
		t.Errorf("a call of ada: %v", err)
	}
	if _, err := root.open(t, "a").CallTool(t.Context(), "args", map[string]any{"count": 1}); err == nil {
		t.Error("root calls a tool that the policy does not allow")
	}
	if status, _ := ada.ask(t, "/ui/restart/a", map[string]string{}); status != http.StatusForbidden {
		t.Errorf("ada restarts a server: HTTP %d", status)
	}
	enter(t)
	if err := os.WriteFile(file, append(lines["root"], lines["bob"]...), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the page refuses a revoked key", func() bool {
		status, text := ada.ask(t, "/ui/state", nil)
		return status == http.StatusUnauthorized && strings.Contains(text, "not valid any more")
	})
	if status, _ := root.ask(t, "/ui/state", nil); status != http.StatusOK {
		t.Errorf("root: HTTP %d", status)
	}
}

// There is no page with --no-page, and none on other addresses than those of loopback without --page.
func TestNoPage(t *testing.T) {
	runtimeFolder(t)
	for _, flags := range [][]string{{"--no-page"}, {"--http", "0.0.0.0:0", "--insecure-no-auth"}} {
		t.Run(flags[0], func(t *testing.T) {
			r := startUp(t, map[string]any{"a": stubServer(t)}, flags...)
			status, text := newGuest(t, strings.TrimSuffix(r.url, "/mcp")).ask(t, "/", nil)
			if status != http.StatusNotFound || !strings.Contains(text, "the MCP endpoint is at /mcp") || strings.Contains(r.banner, "page:") {
				t.Errorf("HTTP %d %s; up says %s", status, text, r.banner)
			}
			cmd, said := program(t, "page", "--print")
			if out, err := cmd.Output(); err == nil || len(out) > 0 || !strings.Contains(said.String(), "no patchbay with a page is running here") {
				t.Errorf("patchbay page: %q, %v, %s", out, err, said)
			}
			r.cmd.Process.Kill()
			r.cmd.Wait()
		})
	}
}

// The browser gets the path of a file that only its user can read. The link in it works once, and the file is gone when
// it is used, or when the program ends. Command lines do not have the code.
func TestPageOpens(t *testing.T) {
	if runtime.GOOS == "windows" || runtime.GOOS == "darwin" {
		t.Skip("the system's own opener cannot be replaced")
	}
	runtimeFolder(t)
	bin, cache := t.TempDir(), t.TempDir()
	opened := filepath.Join(bin, "opened")
	script := fmt.Sprintf("#!/bin/sh\ntr '\\0' '\\n' </proc/$$/cmdline >%[1]s.line 2>/dev/null\ncp -p \"$1\" %[1]s.html\nprintf %%s \"$1\" >%[1]s~ && mv %[1]s~ %[1]s\n", opened)
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("DISPLAY", ":0")
	t.Setenv("WSL_DISTRO_NAME", "")
	cmd, said := program(t, "inspect", "conjugate", "shop")
	out := new(transcript)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	shown := func() (path, at, code string) {
		t.Helper()
		until(t, "the browser is opened", func() bool { _, err := os.Stat(opened); return err == nil })
		raw, err := os.ReadFile(opened)
		if err != nil {
			t.Fatal(err)
		}
		html, err := os.ReadFile(opened + ".html")
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(opened + ".html") // a copy with the mode
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the file has the mode %v, %v", info.Mode(), err)
		}
		m := regexp.MustCompile(`url=(http://127\.0\.0\.1:\d+)/#in=([\w-]+)"`).FindSubmatch(html)
		if m == nil {
			t.Fatalf("the file is %s", html)
		}
		if line, _ := os.ReadFile(opened + ".line"); bytes.Contains(line, m[2]) {
			t.Errorf("a command line has the code: %s", line)
		}
		os.Remove(opened)
		return string(raw), string(m[1]), string(m[2])
	}
	path, at, code := shown()
	if !strings.HasPrefix(path, cache) {
		t.Errorf("the file is %s", path)
	}
	until(t, "inspect says that the page opens", func() bool { return strings.Contains(out.String(), "ctrl-C ends it.") })
	if strings.Contains(out.String()+said.String(), code) {
		t.Errorf("inspect prints the code although it opens the browser: %s", out)
	}
	v := newGuest(t, at)
	if status, text := v.ask(t, "/ui/in", map[string]string{"code": code}); status != http.StatusOK {
		t.Errorf("HTTP %d %s", status, text)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is there after its link was used")
	}
	if res, err := v.open(t, "conjugate").Raw(t.Context(), "tools/list", nil); err != nil || !strings.Contains(string(res), `"conjugate"`) {
		t.Errorf("the tools are %s, %v", res, err)
	}
	if status, text := v.ask(t, "/ui/restart/conjugate", map[string]string{}); status != http.StatusOK || !strings.Contains(text, "conjugate: restarted; it is ready") {
		t.Errorf("a restart of a server of inspect: HTTP %d %s", status, text)
	}
	if state, _ := program(t, "status"); state != nil {
		if text, err := state.Output(); err != nil || !strings.Contains(string(text), "the page "+at+"/") {
			t.Errorf("the status of inspect is\n%s (%v)", text, err)
		}
	}
	page, _ := program(t, "page")
	if err := page.Run(); err != nil {
		t.Fatal(err)
	}
	path, at, _ = shown()
	if at != v.at {
		t.Errorf("patchbay page opens %s, not %s", at, v.at)
	}
	stream := make(chan error, 1)
	go func() { // a page that is open does not delay the end
		req, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, v.at+"/ui/events?want=state", nil)
		res, err := v.client.Do(req)
		if err == nil {
			_, err = io.Copy(io.Discard, res.Body)
			res.Body.Close()
		}
		stream <- err
	}()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("inspect: %v, %s", err, said)
	}
	<-stream
	if _, err := os.Stat(path); err == nil {
		t.Error("the file is there after the end of the program")
	}
}

// A call that is copied from the page of a command names the command, as the program was given it.
func TestCopiedCallNamesTheCommand(t *testing.T) {
	wine.Skip(t, "it has no Unix sockets, by which page finds inspect")
	runtimeFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd, _ := program(t, "inspect", "--no-open", "--", self, "serve", "conjugate")
	out := new(transcript)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	until(t, "inspect serves", func() bool { return strings.Contains(out.String(), "ctrl-C ends it.") })
	status, text := enter(t).ask(t, "/ui/paste", map[string]any{"server": "x", "tool": "conjugate", "arguments": map[string]any{}})
	var got struct{ CLI string }
	if err := json.Unmarshal([]byte(text), &got); err != nil || status != http.StatusOK {
		t.Fatalf("HTTP %d %s", status, text)
	}
	if want := "patchbay call conjugate '{}' -- " + shell([]string{self, "serve", "conjugate"}); got.CLI != want {
		t.Errorf("the command is %q, not %q", got.CLI, want)
	}
}
