package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/internal/freeport"
	"github.com/patchbay-dev/patchbay/internal/health"
)

// again returns the configuration of this program as a command, in words for env.
func again(t *testing.T, words ...string) map[string]any {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("needs the command env")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return map[string]any{"command": "env", "args": append([]string{testRun + "=patchbay", self}, words...)}
}

// freePort returns an unused port.
func freePort(t *testing.T) string {
	t.Helper()
	addr, err := freeport.Addr()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// An up whose file leads back to it leaves those servers out with a message, and serves the others
// once (trap 1). It recognizes itself by its address in every spelling, as a command in the file
// and by a link to it, by a wrapper, and by a bridge that passes requests back to it.
func TestUpLeadsBackToItself(t *testing.T) {
	runtimeFolder(t)
	dir, port := t.TempDir(), freePort(t)
	file, link := filepath.Join(dir, "mcp.json"), filepath.Join(dir, "link.json")
	if err := os.Symlink(file, link); err != nil {
		t.Skip(err)
	}
	wrapper := again(t, "up", "--stdio", "--config", file)
	wrapped := map[string]any{"command": "sh", "args": []string{"-c", `env "$@" || exit $?`, "sh", testRun + "=patchbay",
		wrapper["args"].([]string)[1], "up", "--stdio", "--config", file}}
	servers := map[string]any{
		"command": wrapper, "link": again(t, "up", "--stdio", "--config", link), "wrapped": wrapped,
		"bridged": again(t, "bridge", "--stdio", "-s", "http://127.0.0.1:"+port+"/mcp"),
		"other":   map[string]any{"builtin": "conjugate"},
	}
	spellings := []string{"localhost", "127.0.0.1"}
	if name, err := os.Hostname(); err == nil {
		if ips, err := net.LookupHost(name); err == nil && len(ips) > 0 && net.ParseIP(ips[0]).IsLoopback() {
			spellings = append(spellings, name)
		}
	}
	for _, host := range spellings {
		servers["url-"+host] = map[string]any{"url": "http://" + host + ":" + port + "/mcp"}
	}
	writeConfig(t, file, servers)
	cmd, said := program(t, "up", "--http", "127.0.0.1:"+port, "--config", file)
	out := new(transcript)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	out.await(t, "ctrl-C ends it")
	state := func(name string) (s health.Server) {
		var reports []health.Report
		if err := json.Unmarshal([]byte(typedRun(t, "", exitOK, "status", "--json")), &reports); err != nil || len(reports) != 1 {
			t.Fatalf("status = %+v, %v", reports, err)
		}
		for _, s = range reports[0].Servers {
			if s.Name == name {
				return s
			}
		}
		t.Fatalf("status is without %s", name)
		return s
	}
	for name := range servers {
		switch name {
		case "other":
		case "bridged": // it is known by the first request that comes back
			until(t, "the bridge is said to lead back", func() bool { s := state(name); return s.State == "failing" && strings.Contains(s.Reason, "leads back") })
		default:
			if s := state(name); s.State != "left out" || !strings.Contains(s.Reason, "itself") {
				t.Errorf("%s is %s: %s, want it left out", name, s.State, s.Reason)
			}
			if want := regexp.MustCompile(`(?m)^` + name + ` .*left out: .*itself`); !want.MatchString(out.String()) {
				t.Errorf("up printed\n%swant a line like %s", out, want)
			}
		}
	}
	if got := typedRun(t, "", exitOK, "tools", "--json", "-s", "http://127.0.0.1:"+port+"/mcp"); strings.Count(got, `"name"`) != 1 {
		t.Errorf("the tools are %s, want those of the other server once", got)
	}
	// The servers do not restart each other: a loop would log more than this.
	if n := strings.Count(said.String(), "\n"); n > 30 {
		t.Errorf("%d lines were logged: %s", n, said)
	}
}

// Two gateways that have each other as servers serve each other's other servers, without a loop.
func TestUpsHaveEachOther(t *testing.T) {
	runtimeFolder(t)
	ports := []string{freePort(t), freePort(t)}
	var said []*transcript
	for i, builtin := range []string{"conjugate", "shop"} {
		file := filepath.Join(t.TempDir(), "mcp.json")
		writeConfig(t, file, map[string]any{
			builtin: map[string]any{"builtin": builtin},
			"peer":  map[string]any{"url": "http://localhost:" + ports[1-i] + "/mcp"},
		})
		cmd, log := program(t, "up", "--http", "127.0.0.1:"+ports[i], "--config", file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		said = append(said, log)
	}
	tools := func(port string) []string {
		return regexp.MustCompile(`(?m)^(\S+)`).FindAllString(typedOut(t, "tools", "-s", "http://127.0.0.1:"+port+"/mcp"), -1)
	}
	until(t, "each has the tools of the other", func() bool {
		a, b := strings.Join(tools(ports[0]), " "), strings.Join(tools(ports[1]), " ")
		return strings.Contains(a, "peer_shop_") && strings.Contains(a, "conjugate_") && strings.Contains(b, "peer_conjugate_")
	})
	for i, port := range ports {
		for _, name := range tools(port) {
			if strings.Contains(name, "peer_peer") {
				t.Errorf("up %d lists %s, which is its own", i, name)
			}
		}
	}
	for _, log := range said {
		if n := strings.Count(log.String(), "\n"); n > 30 {
			t.Errorf("%d lines were logged: %.2000s", n, log)
		}
	}
}

// typedOut returns the output of a run, whatever its exit code.
func typedOut(t *testing.T, words ...string) string {
	t.Helper()
	return typed(t, "", words...).stdout
}

// Clearing the environment on the way hides nothing where the system shows the ancestors: an up
// that a wrapper starts with env -i, or without its variable, ends with the first process (trap 1).
func TestLineageOfClearedEnvironment(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the environments of ancestors are looked at on Linux alone")
	}
	runtimeFolder(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "mcp.json")
	self := again(t, "up", "--stdio", "--config", file)["args"].([]string)
	home := "HOME=" + t.TempDir()
	writeConfig(t, file, map[string]any{
		"cleared": map[string]any{"command": "sh", "args": append([]string{"-c", `exec env -i "$@"`, "sh", "PATH=" + os.Getenv("PATH"), home}, self...)},
		"unset":   map[string]any{"command": "sh", "args": append([]string{"-c", `env -u ` + "PATCHBAY_PARENT" + ` "$@" || exit $?`, "sh"}, self...)},
		"other":   map[string]any{"builtin": "conjugate"},
	})
	cmd, _ := program(t, "up", "--http", "127.0.0.1:0", "--config", file)
	out := new(transcript)
	cmd.Stdout = out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	out.await(t, "ctrl-C ends it")
	for _, name := range []string{"cleared", "unset"} {
		if want := regexp.MustCompile(`(?m)^` + name + ` .*left out: .*itself`); !want.MatchString(out.String()) {
			t.Errorf("up printed\n%swant a line like %s", out, want)
		}
	}
}
