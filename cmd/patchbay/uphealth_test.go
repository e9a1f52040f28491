package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/board"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chain"
	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/internal/health"
	"github.com/patchbay-dev/patchbay/internal/listen"
	"github.com/patchbay-dev/patchbay/internal/wine"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/metrics"
)

// /healthz and /readyz report the state of the program. Requests from other origins and to rebound
// names are refused, and requests through a proxy get no names and reasons.
func TestHealth(t *testing.T) {
	runtimeFolder(t)
	r := startUp(t, map[string]any{"stub": stubServer(t), "dies": stubServer(t, "die")})
	broken := startUp(t, map[string]any{"dies": stubServer(t, "die")})
	required := stubServer(t, "die")
	required["patchbay"] = map[string]any{"required": true}
	lacking := startUp(t, map[string]any{"stub": stubServer(t), "dies": required})
	tests := []struct {
		name, method, url string
		header            map[string]string
		code              int
		want              string
	}{
		{"alive", "GET", r.url + "/../healthz", nil, 200, `^{"program":"patchbay","state":"alive"}\n$`},
		{"ready", "GET", r.url + "/../readyz", nil, 200, `"state":"degraded".*"name":"dies","state":"(failing|crashing)".*exit status 3.*"said":\["stub: no configuration","stub: giving up"\].*"name":"stub","state":"ready"`},
		{"alive though nothing works", "GET", broken.url + "/../healthz", nil, 200, `alive`},
		{"nothing works", "GET", broken.url + "/../readyz", nil, 503, `"state":"failing"`},
		{"a required server is away", "GET", lacking.url + "/../readyz", nil, 503, `"state":"failing".*"name":"dies","state":"(failing|crashing)",.*"required":true.*"name":"stub","state":"ready"`},
		{"through a proxy", "GET", r.url + "/../readyz", map[string]string{"X-Forwarded-For": "203.0.113.9"}, 200, `^{"program":"patchbay","state":"degraded"}\n$`},
		{"a page elsewhere", "GET", r.url + "/../readyz", map[string]string{"Origin": "https://evil.example"}, 403, `origin`},
		{"a rebound name", "GET", r.url + "/../healthz", map[string]string{"Host": "evil.example"}, 403, `host`},
		{"another method", "POST", r.url + "/../readyz", nil, 405, `GET`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequest(tt.method, strings.Replace(tt.url, "/mcp/..", "", 1), nil)
			if err != nil {
				t.Fatal(err)
			}
			for k, v := range tt.header {
				req.Header.Set(k, v)
			}
			req.Host = tt.header["Host"]
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode != tt.code || !regexp.MustCompile(tt.want).Match(body) {
				t.Errorf("HTTP %d %s, want %d %s", res.StatusCode, body, tt.code, tt.want)
			}
		})
	}
}

// status lists each up of the user, and drops those that were killed. The error for a taken port
// names the up that has it.
func TestStatus(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs the command env")
	}
	dir := runtimeFolder(t)
	patchbay := func(want int, args ...string) string {
		t.Helper()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, args...)
		cmd.Env = append(os.Environ(), testRun+"=patchbay")
		var said strings.Builder
		cmd.Stderr = &said
		out, _ := cmd.Output()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("patchbay %s exited with %d, want %d: %s", strings.Join(args, " "), got, want, said.String())
		}
		return string(out) + said.String()
	}
	matches := func(got, want string) {
		t.Helper()
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("got\n%s\nwant %s", got, want)
		}
	}
	matches(patchbay(exitUnreachable, "status"), `no patchbay up is running here; \S+patchbay has no socket of one\n.*hint: patchbay up, or -s URL`)
	one := startUp(t, map[string]any{"stub": stubServer(t), "dies": stubServer(t, "die")})
	two := startUp(t, map[string]any{"all": map[string]any{"builtin": "everything"}})
	text := patchbay(exitOK, "status")
	matches(text, `(?m)^patchbay \S+, `+one.url+`: degraded$`)
	matches(text, `(?m)^stub +ready +\ds +0 +shared +- +1 +5  stub 7, 2026-07-28$`)
	matches(text, `(?m)^dies +(failing|crashing) +\d+s +\d+ +auto +- +0 +-  .*exit status 3\n  \| stub: no configuration\n  \| stub: giving up$`)
	matches(text, `(?m)^all +ready .* 47  everything `)
	matches(patchbay(exitOK, "status", "-s", two.url), `^patchbay .*`+two.url)
	matches(patchbay(exitUnreachable, "status", "-s", "http://127.0.0.1:1"), `refused`)
	port := regexp.MustCompile(`\d+/`).FindString(two.url)
	matches(patchbay(exitLocal, "up", "--http", "127.0.0.1:"+strings.TrimSuffix(port, "/"), "-s", "everything"), `another patchbay already serves http.*: pid \d+, .*mcp.json\n.*--http 127.0.0.1:0`)

	one.cmd.Process.Kill()
	one.cmd.Wait()
	earlier := time.Now().Add(-time.Hour) // a search keeps a socket that may just be opening
	if err := os.Chtimes(filepath.Join(dir, "patchbay", fmt.Sprintf("up-%d.sock", one.cmd.Process.Pid)), earlier, earlier); err != nil {
		t.Fatal(err)
	}
	var reports []health.Report
	if err := json.Unmarshal([]byte(patchbay(exitOK, "status", "--json")), &reports); err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1 || reports[0].URL != two.url || reports[0].PID != two.cmd.Process.Pid || reports[0].Servers[0].Tools != 47 {
		t.Errorf("reports %+v, want that of %s alone", reports, two.url)
	}
	two.cmd.Process.Signal(syscall.SIGINT)
	two.cmd.Wait()
	if left, _ := filepath.Glob(filepath.Join(dir, "patchbay", "*")); len(left) > 0 {
		t.Errorf("%q are left behind", left)
	}
}

// Over stdio the gateway is a server like others, and ends with its input.
func TestUpOverStdio(t *testing.T) {
	runtimeFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	writeConfig(t, file, map[string]any{"stub": stubServer(t), "all": map[string]any{"builtin": "everything"}})
	for _, rev := range []mcp.Revision{mcp.V2024_11_05, mcp.V2026_07_28} {
		cmd := exec.Command(self, "up", "--stdio", "--config", file)
		cmd.Env = append(os.Environ(), testRun+"=patchbay")
		said := new(transcript)
		cmd.Stderr = said
		s, err := (&mcp.Client{Name: "host", Version: "1", Revisions: []mcp.Revision{rev}}).Start(t.Context(), cmd)
		if err != nil {
			t.Fatal(err)
		}
		res, err := s.CallTool(t.Context(), "stub_args", map[string]any{"count": 3})
		if err != nil || res.Text() != `{"count":3}` {
			t.Errorf("%s: call of a command = %v, %v", rev, res, err)
		}
		said.await(t, `(?m)^patchbay: serving all, stub over stdio \(.*mcp.json\)$`)
		start := time.Now()
		s.Close()
		// The session waits half a second, and then sends a signal.
		if took := time.Since(start); took > 3*time.Second || cmd.ProcessState == nil || !cmd.ProcessState.Success() {
			t.Errorf("%s: it took %v to end, with %v", rev, took, cmd.ProcessState)
		}
	}
}

// A server that requires a login has that state, with the command to run; up notices a login and a
// logout of another process without a restart.
func TestUpNeedsLogin(t *testing.T) {
	runtimeFolder(t)
	ownFolders(t)
	var good atomic.Value // the valid token
	good.Store("planted-1")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":"invalid_grant"}`)
		case r.Header.Get("Authorization") != "Bearer "+good.Load().(string):
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
		default:
			stubHTTP.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(srv.Close)
	logIn := func(token auth.Secret) {
		t.Helper()
		v, err := vault.Open("", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Save(t.Context(), &login.Record{
			Key: login.Key{Server: srv.URL + "/mcp", Issuer: srv.URL, Client: "me"}, Resource: srv.URL + "/mcp", TokenURL: srv.URL + "/token",
			ClientMethod: "none", Access: token, Got: time.Now(), Expires: time.Now().Add(time.Hour),
		}); err != nil {
			t.Fatal(err)
		}
	}
	r := startUp(t, map[string]any{"web": map[string]any{"url": srv.URL + "/mcp"}})
	command := "patchbay login web --config " + r.file
	if !strings.Contains(r.banner, "needs login: "+command) {
		t.Errorf("up printed %s, want the command", r.banner)
	}
	wine.Skip(t, "it has no Unix sockets, by which status finds up")
	state := func() (s health.Server) {
		var reports []health.Report
		if err := json.Unmarshal([]byte(typedRun(t, "", exitOK, "status", "--json")), &reports); err != nil || len(reports) != 1 {
			t.Fatalf("status = %+v, %v", reports, err)
		}
		return reports[0].Servers[0]
	}
	if s := state(); s.State != "needs login" || s.Login != command {
		t.Errorf("status %+v, want the command %q", s, command)
	}
	logIn("planted-1")
	r.stderr.await(t, `web: ready, 5 tools`)
	if _, err := callOnce(t, r.url, "web_args"); err != nil {
		t.Errorf("call after the login: %v", err)
	}
	good.Store("planted-2")
	if _, err := callOnce(t, r.url, "web_args"); err == nil || !strings.Contains(err.Error(), "needs login: "+command) {
		t.Errorf("call after the end of the login: %v", err)
	}
	r.stderr.await(t, `web: needs login: `+command)
	if s := state(); s.State != "needs login" || s.Login != command {
		t.Errorf("status after the end of the login %+v", s)
	}
	logIn("planted-2")
	until(t, "calls pass again", func() bool { _, err := callOnce(t, r.url, "web_args"); return err == nil })
	if s := state(); s.State != "ready" {
		t.Errorf("status after another login %+v", s)
	}
}

// If a server refuses a kept answer, its state is that it needs a login; the command asks for
// another answer, and up uses that without a restart.
func TestUpRefusedInput(t *testing.T) {
	runtimeFolder(t)
	ownFolders(t)
	file := filepath.Join(t.TempDir(), "mcp.json")
	inputFile(t, file, locked(t, "planted-right"))
	typedRun(t, "planted-wrong\n", exitUnauthorized, "ping", "-n", "1", "-s", "web", "--config", file)
	cmd, said := program(t, "up", "--http", "127.0.0.1:0", "--config", file)
	out := new(transcript)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	out.await(t, "ctrl-C ends it")
	if want := "needs login: patchbay ping -s web --config " + file; !strings.Contains(out.String(), want) {
		t.Errorf("up printed %s, want %q", out, want)
	}
	typedRun(t, "planted-right\n", exitOK, "ping", "-n", "1", "-s", "web", "--config", file)
	said.await(t, `web: ready, 5 tools`)
}

// Trap 13 (F5, F6): a silent server delays nobody: "up" is ready, and answers a first list with the
// tools of the others.
func TestMuteServerDelaysNobody(t *testing.T) {
	runtimeFolder(t)
	address, err := freeport.Addr()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	writeConfig(t, file, map[string]any{
		"stub": stubServer(t),
		"mute": map[string]any{"command": "sleep", "args": []string{"1000"}},
	})
	cmd, said := program(t, "up", "--http", address, "--config", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	began := time.Now()
	until(t, "/readyz is 200", func() bool {
		res, err := http.Get("http://" + address + "/readyz")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("up was ready after %v, want 5 s and what a busy machine needs; it said %s", took, said)
	}
	s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), "http://"+address+"/mcp")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	began = time.Now()
	names := 0
	for tool, err := range s.Tools(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(tool.Name, "stub_") {
			names++
		}
	}
	if took := time.Since(began); took > 4*time.Second || names == 0 {
		t.Errorf("the first list has %d tools of the good server, after %v; want it within a second", names, took)
	}
}

// A server of this program is not ready while its last calls finish.
func TestOwnReport(t *testing.T) {
	a, _ := testApp(t)
	ctx, stop := context.WithCancel(a.ctx)
	a.ctx = ctx
	made, err := a.chain(chain.Config{})
	if err != nil {
		t.Fatal(err)
	}
	began, counters := time.Now(), &metrics.Counters{}
	if r := a.ownReport("shop", "http://x/mcp", began, made, counters); r.State != health.Ready || r.From != "serve" || r.Servers[0].Name != "shop" || r.Audit != nil || r.Record != nil {
		t.Errorf("the state is %+v", r)
	}
	stop()
	if r := a.ownReport("", "http://x/mcp", began, made, counters); r.State != health.Ending || r.From != "mock" || r.Servers[0].Name != "mock" {
		t.Errorf("while its last calls finish the state is %+v", r)
	}
}

// A required server that cannot be started for a client makes up failing, although the connection for
// lists is open, until it can be started again.
func TestUpUnstarted(t *testing.T) {
	runtimeFolder(t)
	stub := stubServer(t)
	args := stub["args"].([]string)
	link := filepath.Join(t.TempDir(), "stub")
	if err := os.Symlink(args[1], link); err != nil {
		t.Fatal(err)
	}
	r := startUp(t, map[string]any{"stub": map[string]any{"command": "env", "args": []string{args[0], link}, "patchbay": map[string]any{"required": true, "share": "session"}}})
	ready := func() (int, string) {
		res, err := http.Get(strings.TrimSuffix(r.url, listen.Path) + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		return res.StatusCode, string(text)
	}
	until(t, "it is ready", func() bool { code, _ := ready(); return code == http.StatusOK })
	if err := os.Rename(link, link+"~"); err != nil {
		t.Fatal(err)
	}
	s, err := (&mcp.Client{Name: "desk", Version: "1"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CallTool(t.Context(), "stub_args", map[string]any{"count": 1}); err == nil {
		t.Error("a server that does not exist was called")
	}
	if code, text := ready(); code != http.StatusServiceUnavailable || !strings.Contains(text, `"state":"failing"`) || !strings.Contains(text, "No such file") {
		t.Errorf("the state is %d %s", code, text)
	}
	if got := patchbay(t, "status"); !strings.Contains(got, "/mcp: failing") || !strings.Contains(got, "stub    failing") {
		t.Errorf("status shows\n%s", got)
	}
	if err := os.Rename(link+"~", link); err != nil {
		t.Fatal(err)
	}
	until(t, "it is ready again", func() bool { code, _ := ready(); return code == http.StatusOK })
}

// A gateway that status cannot find says so.
func TestUpWithoutSocket(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows may have no Unix sockets")
	}
	t.Setenv("XDG_RUNTIME_DIR", filepath.Join(runtimeFolder(t), strings.Repeat("x", 100)))
	r := startUp(t, map[string]any{"all": map[string]any{"builtin": "everything"}})
	r.stderr.await(t, `warning: patchbay status cannot find this program: the path \S+ has 1\d\d bytes.*; set XDG_RUNTIME_DIR to a shorter folder`)
}

// Status names a log that others have changed, and the next step.
func TestStatusOfChangedLog(t *testing.T) {
	got := board.AuditLine(&health.Audit{File: "a.jsonl", Lines: 3, Changed: "audit log has lost its end"})
	if want := "(audit log a.jsonl, 3 lines)\naudit log has lost its end; patchbay audit verify a.jsonl says more"; got != want {
		t.Errorf("status shows %q, want %q", got, want)
	}
}
