package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
)

// loginFile writes a gateway.yaml with people who log in, whose identity provider is never used.
func loginFile(t *testing.T, more string) (file, dir string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "gateway.yaml")
	text := "login: {issuer: 'http://127.0.0.1:1', client: gateway, dir: state}\n" + more
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, dir
}

// A folder of logins belongs to one up; the fault of a second one names the place in its file, the folder
// and the process. When the first has ended, the next may use it.
func TestUpLoginFolder(t *testing.T) {
	runtimeFolder(t)
	file, dir := loginFile(t, "")
	first := startUp(t, map[string]any{"a": stubServer(t)}, "--gateway", file)
	var said strings.Builder
	code := run(t.Context(), []string{"up", "-s", "shop", "--http", "127.0.0.1:0", "--gateway", file}, strings.NewReader(""), io.Discard, &said)
	want := fmt.Sprintf("%s:1:61: login.dir: the folder %s is in use by the process %d; end it, or name another folder", file, filepath.Join(dir, "state"), first.cmd.Process.Pid)
	if code != exitUsage || !strings.Contains(said.String(), want) {
		t.Errorf("exit code %d, %q; want %q", code, said.String(), want)
	}
	first.cmd.Process.Kill()
	first.cmd.Wait()
	startUp(t, map[string]any{"a": stubServer(t)}, "--gateway", file)
}

// With login, up prints that clients log in by themselves, and the redirect URI; no line has a credential.
func TestUpLoginHints(t *testing.T) {
	runtimeFolder(t)
	file, _ := loginFile(t, "auth: [apikeys:keys.jsonl]\n")
	if err := os.WriteFile(filepath.Join(filepath.Dir(file), "keys.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := startUp(t, map[string]any{"a": stubServer(t)}, "--gateway", file)
	for _, want := range []string{
		"Clients log in by themselves. The identity provider must have this redirect URI:\n  " + strings.TrimSuffix(r.url, "/mcp") + "/oauth/callback\n",
		"login " + r.url + "\n",
	} {
		if !strings.Contains(r.banner, want) {
			t.Errorf("up printed no %q: %s", want, r.banner)
		}
	}
	if strings.Contains(r.banner, "--header") || strings.Contains(r.banner, "CREDENTIAL") || strings.Contains(r.banner, "--stdio") {
		t.Errorf("up printed a place for a credential, or another gateway: %s", r.banner)
	}
}

// The paths of a login check the host of requests as /mcp does.
func TestUpLoginHosts(t *testing.T) {
	runtimeFolder(t)
	file, _ := loginFile(t, "")
	r := startUp(t, map[string]any{"a": stubServer(t)}, "--gateway", file, "--allow-host", "mcp.example.com")
	site := strings.TrimSuffix(r.url, "/mcp")
	for _, path := range []string{"/oauth/authorize", "/oauth/keys", "/oauth/register", "/.well-known/oauth-authorization-server"} {
		for host, want := range map[string]bool{"evil.example": false, "evil.example:80": false, "localhost": true, "mcp.example.com": true, "": true} {
			req, err := http.NewRequest("GET", site+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(res.Body)
			res.Body.Close()
			if refused := res.StatusCode == 403 && strings.Contains(string(body), "DNS rebinding"); refused == want {
				t.Errorf("%s for the host %q: HTTP %d %s", path, host, res.StatusCode, body)
			}
		}
	}
}

// logins list and end act on a running up; without login it says so.
func TestUpLogins(t *testing.T) {
	runtimeFolder(t)
	file, _ := loginFile(t, "audit: {file: audit.jsonl}\n")
	r := startUp(t, map[string]any{"a": stubServer(t)}, "--gateway", file)
	if got := patchbay(t, "logins", "list"); !strings.HasPrefix(got, "nobody is logged in (pid ") {
		t.Errorf("list printed %q", got)
	}
	if got := patchbay(t, "logins", "list", "--json"); got != `{"logins":[],"total":0}`+"\n" {
		t.Errorf("list printed %q", got)
	}
	var said strings.Builder
	if code := run(t.Context(), []string{"logins", "end", "alice"}, strings.NewReader(""), io.Discard, &said); code != exitUsage || !strings.Contains(said.String(), "alice has no login at the gateway") {
		t.Errorf("end: exit code %d, %s", code, said.String())
	}
	until(t, "the audit log tells it", func() bool {
		got := patchbay(t, "audit", "query", filepath.Join(filepath.Dir(file), "audit.jsonl"), "--kind", "config", "--json")
		return regexp.MustCompile(`"person":"alice".*"event":"logins".*"principal":{"id":"local#`).MatchString(got)
	})
	const refusals = 200
	for range refusals { // they have few lines, which count all
		res, err := http.Get(strings.TrimSuffix(r.url, "/mcp") + "/oauth/authorize?client_id=nobody")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	until(t, "the audit log counts all refused logins", func() bool {
		lines, all := 0, 0
		for e, err := range audit.Read(filepath.Join(filepath.Dir(file), "audit.jsonl")) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind != audit.Login+"refused" {
				continue
			}
			lines, all = lines+1, all+1+e.More
			if e.Client == nil || e.Client.IP != "127.0.0.1" || e.Reason == "" || e.Principal == nil || e.Principal.Issuer != strings.TrimSuffix(r.url, "/mcp") {
				t.Fatalf("the line of a refused login is %s", e.Line())
			}
		}
		return all == refusals && lines < refusals
	})
	r.cmd.Process.Kill()
	r.cmd.Wait()
	startUp(t, map[string]any{"a": stubServer(t)})
	said.Reset()
	if code := run(t.Context(), []string{"logins", "list"}, strings.NewReader(""), io.Discard, &said); code == exitOK || !strings.Contains(said.String(), "nobody logs in at this gateway; login of gateway.yaml lets people do so") {
		t.Errorf("without login: exit code %d, %s", code, said.String())
	}
}

// Administrators who log in need the URL of listen.admin; other issuers' tokens and keys need none. Its
// metadata names it as a resource of its own, and the way to log in.
func TestUpLoginAdmin(t *testing.T) {
	runtimeFolder(t)
	file, _ := loginFile(t, "listen: {admin: '127.0.0.1:0'}\n")
	r := startUp(t, map[string]any{"a": stubServer(t)}, "--gateway", file)
	r.stderr.await(t, "administration: http://")
	at := regexp.MustCompile(`administration: (\S+)`).FindStringSubmatch(r.stderr.String())[1]
	res, err := http.Get(at + "/servers")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if want := `resource_metadata="` + at + "/servers?oauth-protected-resource"; res.StatusCode != 401 || !strings.Contains(res.Header.Get("WWW-Authenticate"), want) {
		t.Errorf("HTTP %d %q, want %s", res.StatusCode, res.Header, want)
	}
	for _, path := range []string{strings.Replace(at, "/admin", "/.well-known/oauth-protected-resource/admin", 1), at + "/servers?oauth-protected-resource"} {
		res, err := http.Get(path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if want := fmt.Sprintf(`{"resource":%q,"authorization_servers":[%q]`, at, strings.TrimSuffix(r.url, "/mcp")); !strings.HasPrefix(string(body), want) {
			t.Errorf("%s: HTTP %d %s, want %s", path, res.StatusCode, body, want)
		}
	}
	var said strings.Builder
	site := strings.TrimSuffix(at, "/admin/v1")
	if code := run(t.Context(), []string{"restart", "a", "--admin", site}, strings.NewReader(""), io.Discard, &said); code != exitUnauthorized || !strings.Contains(said.String(), "patchbay login "+at) {
		t.Errorf("restart: exit code %d, %s", code, said.String())
	}
	said.Reset()
	file, _ = loginFile(t, "listen: {admin: '0.0.0.0:0'}\n")
	code := run(t.Context(), []string{"up", "-s", "shop", "--http", "127.0.0.1:0", "--gateway", file}, strings.NewReader(""), io.Discard, &said)
	if code != exitUsage || !strings.Contains(said.String(), "add adminURL: https://admin.example.com to login") {
		t.Errorf("without a URL: exit code %d, %s", code, said.String())
	}
}
