package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
)

// /healthz and /readyz tell how the program is. Pages of other origins and rebound
// names are refused, and what comes through a proxy learns no names and reasons.
func TestHealth(t *testing.T) {
	runtimeFolder(t)
	r := startUp(t, map[string]any{"stub": stubServer(t), "dies": stubServer(t, "die")})
	broken := startUp(t, map[string]any{"dies": stubServer(t, "die")})
	tests := []struct {
		name, method, url string
		header            map[string]string
		code              int
		want              string
	}{
		{"alive", "GET", r.url + "/../healthz", nil, 200, `^{"program":"patchbay","state":"alive"}\n$`},
		{"ready", "GET", r.url + "/../readyz", nil, 200, `"state":"ready".*"name":"dies","state":"failing".*exit status 3.*"said":\["stub: no configuration","stub: giving up"\].*"name":"stub","state":"ready"`},
		{"alive though nothing works", "GET", broken.url + "/../healthz", nil, 200, `alive`},
		{"nothing works", "GET", broken.url + "/../readyz", nil, 503, `"state":"failing"`},
		{"through a proxy", "GET", r.url + "/../readyz", map[string]string{"X-Forwarded-For": "203.0.113.9"}, 200, `^{"program":"patchbay","state":"ready"}\n$`},
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

// status finds each up of the user, and forgets those that were killed. A port that
// one has is said to be its.
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
	matches(patchbay(exitUnreachable, "status"), `no patchbay up is running here\n.*hint: patchbay up\n`)
	one := startUp(t, map[string]any{"stub": stubServer(t), "dies": stubServer(t, "die")})
	two := startUp(t, map[string]any{"all": map[string]any{"builtin": "everything"}})
	text := patchbay(exitOK, "status")
	matches(text, `(?m)^patchbay \S+, `+one.url+`: ready$`)
	matches(text, `(?m)^stub +ready +\ds +0 +shared +5  stub 7, 2026-07-28$`)
	matches(text, `(?m)^dies +failing +\ds +\d+ +auto +-  .*exit status 3\n  \| stub: no configuration\n  \| stub: giving up$`)
	matches(text, `(?m)^all +ready .* 47  everything `)
	matches(patchbay(exitOK, "status", "-s", two.url), `^patchbay .*`+two.url)
	matches(patchbay(exitUnreachable, "status", "-s", "http://127.0.0.1:1"), `refused`)
	port := regexp.MustCompile(`\d+/`).FindString(two.url)
	matches(patchbay(exitLocal, "up", "--http", "127.0.0.1:"+strings.TrimSuffix(port, "/"), "-s", "everything"), `served by another patchbay up already: pid \d+, .*mcp.json\n.*--http 127.0.0.1:0`)

	one.cmd.Process.Kill()
	one.cmd.Wait()
	var reports []upReport
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
		said.await(t, `(?m)^patchbay: serves all, stub over stdio \(.*mcp.json\)$`)
		start := time.Now()
		s.Close()
		// The session gives it half a second, and then a signal.
		if took := time.Since(start); took > 3*time.Second || cmd.ProcessState == nil || !cmd.ProcessState.Success() {
			t.Errorf("%s: it took %v to end, with %v", rev, took, cmd.ProcessState)
		}
	}
}

// The reason of a state and what the server said last, which package gateway joins, can
// be told apart.
func TestApart(t *testing.T) {
	tests := []struct {
		reason, why string
		said        int
	}{
		{"", "", 0},
		{"it was not ready within 1m0s", "it was not ready within 1m0s", 0},
		{`exit status 3; it last said: "a\nb"`, "exit status 3", 2},
		{`x; it last said: "a" and more`, `x; it last said: "a" and more`, 0},
		{`; it last said: `, `; it last said: `, 0},
	}
	for _, tt := range tests {
		if why, said := apart(tt.reason); why != tt.why || len(said) != tt.said {
			t.Errorf("apart(%q) = %q, %q; want %q and %d lines", tt.reason, why, said, tt.why, tt.said)
		}
	}
}
