package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A restart lets a call in progress finish over the old process, or cuts it off with the words that its
// outcome is unknown; logs -f goes on over restarts.
func TestSteerInMidCall(t *testing.T) {
	runtimeFolder(t)
	r := startUp(t, map[string]any{"a": stubServer(t), "b": stubServer(t)})
	follower, _ := program(t, "logs", "a", "-f")
	pipe, err := follower.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follower.Start(); err != nil {
		t.Fatal(err)
	}
	lines := new(transcript)
	copied := make(chan struct{})
	go func() {
		defer close(copied)
		io.Copy(lines, pipe)
	}()
	lines.await(t, ` -- ready, `)

	s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dir := t.TempDir()
	hang := func(name, file string) <-chan string {
		t.Helper()
		ready := filepath.Join(dir, name)
		got := make(chan string, 1)
		go func() {
			res, err := s.CallTool(t.Context(), "a_hang", map[string]any{"ready": ready, "until": file})
			if err != nil {
				got <- err.Error()
				return
			}
			got <- fmt.Sprint(res.Text())
		}()
		is := func() bool { _, err := os.Stat(ready); return err == nil }
		until(t, "the call is in progress", is)
		return got
	}
	end := filepath.Join(dir, "end")
	finishes := hang("one", end)
	if got := patchbay(t, "restart", "a"); !regexp.MustCompile(`^a: restarted; it is ready \(2026-07-28\); 1 call in progress may finish until [0-9:]+ \(pid \d+\)\n$`).MatchString(got) {
		t.Errorf("restart printed %q", got)
	}
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := <-finishes; !strings.Contains(got, "it exists") {
		t.Errorf("the call that may finish got %s", got)
	}
	cut := hang("two", filepath.Join(dir, "never"))
	patchbay(t, "restart", "a", "--drain", "0s")
	if got := <-cut; !strings.Contains(got, `lost; the tool may or may not have run`) {
		t.Errorf("the call that was cut off got %s", got)
	}
	if _, err := s.CallTool(t.Context(), "a_args", map[string]any{"count": 1}); err != nil {
		t.Errorf("a call after the restarts: %v", err)
	}
	if _, err := s.CallTool(t.Context(), "b_args", map[string]any{"count": 1}); err != nil {
		t.Errorf("a call of the other server: %v", err)
	}
	until(t, "the log has three starts", func() bool {
		return strings.Count(lines.String(), " -- ready, ") == 3 && strings.Count(lines.String(), " stub: hello\n") >= 3
	})
	follower.Process.Kill()
	<-copied
	follower.Wait()
	if got := patchbay(t, "status"); !regexp.MustCompile(`(?m)^a +ready +\S+ +2 `).MatchString(got) {
		t.Errorf("status shows\n%s", got)
	}
}

// The listener listen.admin needs a credential with the role admin; refusals and actions are in the audit log.
func TestAdminListener(t *testing.T) {
	runtimeFolder(t)
	dir := t.TempDir()
	var keys []byte
	token := map[string]string{"": ""}
	for name, roles := range map[string][]string{"ada": {"admin"}, "bob": {"dev"}} {
		key, entry := auth.NewAPIKey(name)
		entry.Roles = roles
		line, err := json.Marshal(entry)
		if err != nil {
			t.Fatal(err)
		}
		token[name], keys = key, append(append(keys, line...), '\n')
	}
	port, err := freeport.Addr()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "gateway.yaml")
	for name, text := range map[string]string{"keys.jsonl": string(keys), "gateway.yaml": "listen: {admin: '" + port + "'}\nauth: [apikeys:keys.jsonl]\naudit: {file: audit.jsonl}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := startUp(t, map[string]any{"a": stubServer(t), "b": stubServer(t)}, "--gateway", file)
	r.stderr.await(t, "administration: http://"+regexp.QuoteMeta(port)+"/admin/v1")
	do := func(who, method, path string, header ...string) (int, string) {
		t.Helper()
		req, err := http.NewRequest(method, "http://"+port+"/admin/v1"+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if who != "" {
			req.Header.Set("Authorization", "Bearer "+token[who])
		}
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
			if header[i] == "Host" {
				req.Host = header[i+1]
			}
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(body)
	}
	for _, tt := range []struct {
		who, method, path string
		header            []string
		code              int
		want              string
	}{
		{"", "GET", "/servers", nil, 401, ""},
		{"", "POST", "/servers/a/restart", nil, 401, ""},
		{"bob", "GET", "/servers", nil, 403, `apikey#bob does not have the role \"admin\"`},
		{"bob", "POST", "/servers/a/disable", nil, 403, "role"},
		{"ada", "GET", "/servers", nil, 200, `"name":"a","state":"ready"`},
		{"ada", "GET", "/servers/b", nil, 200, `"name":"b"`},
		{"ada", "POST", "/servers/a/restart", []string{"Origin", "https://evil.example"}, 403, "origin"},
		{"ada", "GET", "/servers", []string{"Host", "evil.example"}, 403, "rebinding"},
		{"ada", "POST", "/servers/aa/restart", nil, 404, `did you mean \"a\"?`},
		{"ada", "POST", "/servers/a/restart", nil, 200, `"text":"a: restarted; it is ready`},
		{"ada", "POST", "/servers/a/disable", nil, 200, `"state":"disabled"`},
		{"ada", "GET", "/servers/a", nil, 200, `"state":"disabled"`},
		{"ada", "GET", "/servers/a/logs", nil, 200, "stub: hello"},
		{"ada", "GET", "/audit?kind=config&server=a", nil, 200, `"event":"restart"`},
		{"ada", "GET", "/audit?since=soon", nil, 400, "since cannot be"},
	} {
		if code, body := do(tt.who, tt.method, tt.path, tt.header...); code != tt.code || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %s %s %q: HTTP %d %s, want %d %s", tt.who, tt.method, tt.path, tt.header, code, body, tt.code, tt.want)
		}
	}

	// A caller of the gateway gets the words; the verbs use the listener too.
	c := &mcp.Client{Name: "host", Version: "1", Header: http.Header{"Authorization": {"Bearer " + token["bob"]}}}
	s, err := c.Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), "a_args", map[string]any{"count": 1}); err == nil || !strings.Contains(err.Error(), "is disabled (patchbay enable a)") {
		t.Errorf("a call of a disabled server: %v", err)
	}
	if got := patchbay(t, "enable", "a", "--admin", "http://"+port, "--header", "Authorization: Bearer "+token["ada"]); !strings.HasPrefix(got, "a: enabled; it is ready") {
		t.Errorf("enable printed %q", got)
	}
	// Standard error comes by another way than the answer of the server, before or after it.
	if got := patchbay(t, "logs", "a", "-n", "2", "--admin", "http://"+port, "--header", "Authorization: Bearer "+token["ada"]); !strings.Contains(got, " -- ready") {
		t.Errorf("logs printed %q", got)
	}
	for who, want := range map[string]string{"": "requires authorization: HTTP 401", "bob": "does not have the role"} {
		args := []string{"disable", "a", "--admin", "http://" + port}
		if who != "" {
			args = append(args, "--header", "Authorization: Bearer "+token[who])
		}
		var said strings.Builder
		if code := run(t.Context(), args, strings.NewReader(""), io.Discard, &said); code != exitUnauthorized || !strings.Contains(said.String(), want) {
			t.Errorf("disable as %q: exit code %d, %s", who, code, said.String())
		}
	}
	s.Close()
	r.stop(t)
	var story []string
	for e, err := range audit.Read(filepath.Join(dir, "audit.jsonl")) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Kind == audit.Config && e.Server != nil:
			story = append(story, e.Principal.ID+" "+e.Event+" "+e.Server.Name)
		case e.Kind == audit.Denied && e.Principal != nil && strings.Contains(e.Method, "/admin/"):
			story = append(story, e.Principal.ID+" refused "+e.Method)
		}
	}
	want := "apikey#bob refused GET /admin/v1/servers, apikey#bob refused POST /admin/v1/servers/a/disable, apikey#ada restart a, apikey#ada disable a, apikey#ada enable a, apikey#bob refused POST /admin/v1/servers/a/disable"
	if got := strings.Join(story, ", "); got != want {
		t.Errorf("the audit log has\n%s\nwant\n%s", got, want)
	}
}

// Without auth the listener stays on loopback.
func TestAdminNeedsAuth(t *testing.T) {
	runtimeFolder(t)
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	for text, want := range map[string]string{
		"listen: {admin: '0.0.0.0:0'}\n": "gateway.yaml:1:17: listen.admin: anyone who can reach this address could restart and disable servers: there is no authentication; add auth, or use 127.0.0.1",
		"listen: {admin: x}\n":           "gateway.yaml:1:17: listen.admin: ",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		if code := run(t.Context(), []string{"up", "-s", "conjugate", "--gateway", file}, strings.NewReader(""), io.Discard, &said); code != exitUsage || !strings.Contains(said.String(), want) {
			t.Errorf("%s: exit code %d, %s", text, code, said.String())
		}
	}
	var said strings.Builder
	if err := os.WriteFile(file, []byte("listen: {admin: '127.0.0.1:0'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := run(t.Context(), []string{"serve", "conjugate", "--gateway", file}, strings.NewReader(""), io.Discard, &said); code != exitUsage || !strings.Contains(said.String(), "listen.admin has no effect on patchbay serve") {
		t.Errorf("serve: exit code %d, %s", code, said.String())
	}
	r := beginUp(t, "up", "-s", "conjugate", "--http", "127.0.0.1:0", "--gateway", file)
	r.stderr.await(t, `administration: http://127\.0\.0\.1:\d+/admin/v1`)
	at := regexp.MustCompile(`http://127\.0\.0\.1:\d+/admin/v1`).FindString(r.stderr.String())
	res, err := http.Get(at + "/servers")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); res.StatusCode != 200 || !strings.Contains(string(body), `"name":"conjugate"`) {
		t.Errorf("HTTP %d %s", res.StatusCode, body)
	}
}
