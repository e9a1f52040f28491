package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Servers are added, changed and removed while the program runs. A removed or changed server still
// answers its call in progress.
func TestUpFollowsItsFile(t *testing.T) {
	runtimeFolder(t)
	r := startUp(t, map[string]any{"stays": stubServer(t), "changes": stubServer(t), "leaves": stubServer(t)})
	s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dir := t.TempDir()
	type answer struct {
		server string
		res    *mcp.ToolResult
		err    error
	}
	answers := make(chan answer, 2)
	open := []string{"changes", "leaves"}
	for _, server := range open {
		ready := filepath.Join(dir, server)
		go func() {
			res, err := s.CallTool(context.WithoutCancel(t.Context()), server+"_hang", map[string]any{"ready": ready, "until": filepath.Join(dir, "go")})
			answers <- answer{server, res, err}
		}()
		until(t, "the call of "+server+" has begun", func() bool { _, err := os.Stat(ready); return err == nil })
	}
	writeConfig(t, r.file, map[string]any{"stays": stubServer(t), "changes": stubServer(t, "other"), "comes": stubServer(t)})
	for _, want := range []string{`(?m)^patchbay: \+ comes$`, `(?m)^patchbay: ~ changes$`, `(?m)^patchbay: - leaves$`, `(?m)^patchbay: comes: ready, 5 tools$`} {
		r.stderr.await(t, want)
	}
	if strings.Contains(r.stderr.String(), "stays") {
		t.Errorf("a server that did not change is told of: %s", r.stderr)
	}
	servers := func() (names []string) {
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if server, ok := strings.CutSuffix(tool.Name, "_args"); ok {
				names = append(names, server)
			}
		}
		slices.Sort(names)
		return names
	}
	until(t, "the servers are those of the file", func() bool { return slices.Equal(servers(), []string{"changes", "comes", "stays"}) })
	for _, server := range []string{"changes", "comes", "stays"} {
		if res, err := s.CallTool(t.Context(), server+"_args", map[string]any{"count": 1}); err != nil || res.Text() != `{"count":1}` {
			t.Errorf("call of %s = %v, %v", server, res, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range open {
		if a := <-answers; a.err != nil || a.res.Text() != "it exists" {
			t.Errorf("the call in progress with %q = %v, %v", a.server, a.res, a.err)
		}
	}
}

// A faulty or missing file changes nothing, and a fault is reported; a file that is written in
// place, half first, is used when it is complete.
func TestUpKeepsWhatRunsOverFaults(t *testing.T) {
	runtimeFolder(t)
	r := startUp(t, map[string]any{"one": stubServer(t)})
	if err := os.WriteFile(r.file, []byte("{\"mcpServers\": {\"one\": {},\n \"two\": {\"command\": 7}}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.stderr.await(t, `has faults; the servers concerned are not started, or stay as they are\n.*mcp\.json:1:17: .*\n.*mcp\.json:2:`)
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	r.stderr.await(t, `mcp\.json is gone; the servers are unchanged`)
	res, err := callOnce(t, r.url, "one_args")
	if err != nil || res.Text() != `{}` {
		t.Errorf("call after the faults = %v, %v", res, err)
	}
	writeConfig(t, r.file, map[string]any{"one": stubServer(t)})
	r.stderr.await(t, `mcp\.json is valid again`)
	if said := r.stderr.String(); strings.Contains(said, "~ one") || strings.Contains(said, "+ one") {
		t.Errorf("what did not change was told of: %s", said)
	}
	whole, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	whole = []byte(strings.Replace(string(whole), `"one"`, `"two"`, 1))
	before := strings.Count(r.stderr.String(), "faults")
	f, err := os.Create(r.file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.Write(whole[:len(whole)/2])
	f.Write(whole[len(whole)/2:])
	r.stderr.await(t, `(?m)^patchbay: \+ two$`)
	if got := strings.Count(r.stderr.String(), "faults"); got != before {
		t.Errorf("a half-written file was told of: %s", r.stderr)
	}
}

// callOnce calls a tool in a session of its own.
func callOnce(t *testing.T, url, tool string) (*mcp.ToolResult, error) {
	t.Helper()
	s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	return s.CallTool(t.Context(), tool, map[string]any{})
}

// up also follows an envFile, in any folder.
func TestUpFollowsEnvFile(t *testing.T) {
	runtimeFolder(t)
	env := filepath.Join(t.TempDir(), "colours")
	paint := func(colour string) {
		t.Helper()
		if err := os.WriteFile(env, []byte("COLOUR="+colour+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	paint("red")
	server := stubServer(t, "env")
	server["envFile"] = env
	r := startUp(t, map[string]any{"one": server})
	asked := func() string {
		t.Helper()
		s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), r.url)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		res, err := s.CallTool(t.Context(), "one_env", map[string]any{"name": "COLOUR"})
		if err != nil {
			return err.Error()
		}
		return res.Text()
	}
	if got := asked(); got != "red" {
		t.Fatalf("the colour is %q", got)
	}
	paint("blue")
	r.stderr.await(t, `(?m)^patchbay: ~ one$`)
	until(t, "the server has the new colour", func() bool { return asked() == "blue" })
	if strings.Contains(r.stderr.String(), "blue") {
		t.Errorf("a value is told: %s", r.stderr)
	}
	if err := os.WriteFile(env, []byte("COLOUR blue\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.stderr.await(t, `has faults; the servers concerned .* stay as they are\n.*colours:1:1: `)
	paint("green")
	until(t, "the server has the last colour", func() bool { return asked() == "green" })
}
