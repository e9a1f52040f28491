package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// --log of serve, up and bridge writes a line for each request, over HTTP and stdio, and also for one
// that --limit refuses.
func TestAccessLog(t *testing.T) {
	runtimeFolder(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	over := func(verb string, url func(flags ...string) string) {
		t.Run(verb, func(t *testing.T) {
			log, tool := file(verb), map[bool]string{true: "all_echo", false: "echo"}[verb == "up"]
			s, err := new(mcp.Client).Dial(t.Context(), url("--log", log, "--limit", "tool:"+tool+"=1/h"))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			s.CallTool(t.Context(), tool, map[string]any{"message": "secret text"})
			s.CallTool(t.Context(), tool, map[string]any{"message": "secret text"})
			var got string
			wants := []string{`"transport":"http","address":"127.0.0.1","id":"\d+","status":200,"method":"tools/call","tool":"` + tool + `","ms":[0-9.]+,"outcome":"ok"}`, `"tool":"` + tool + `","ms":[0-9.]+,"outcome":"denied","code":-?\d+}`}
			until(t, verb+" has written the lines", func() bool {
				content, _ := os.ReadFile(log)
				got = string(content)
				return regexp.MustCompile(wants[0]).MatchString(got) && regexp.MustCompile(wants[1]).MatchString(got)
			})
			if strings.Contains(got, "secret") {
				t.Errorf("the log has arguments:\n%s", got)
			}
		})
	}
	over("serve", func(flags ...string) string { return "http://" + startServe(t, flags...) + "/mcp" })
	over("up", func(flags ...string) string {
		return startUp(t, map[string]any{"all": map[string]any{"builtin": "everything"}}, flags...).url
	})
	over("bridge", func(flags ...string) string {
		return bridged(t, append([]string{"--http", "127.0.0.1:0", "-s", "everything"}, flags...)...)
	})

	// Over stdio, standard output belongs to the client.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"serve", "everything"}, {"up", "--stdio", "-s", "everything"}, {"bridge", "--stdio", "-s", "everything"}} {
		said := new(transcript)
		cmd := exec.Command(self, append(args, "--log", "-")...)
		cmd.Env, cmd.Stderr = append(os.Environ(), testRun+"=patchbay"), said
		s, err := new(mcp.Client).Start(t.Context(), cmd)
		if err != nil {
			t.Fatal(err)
		}
		s.CallTool(t.Context(), "echo", map[string]any{"message": "hi"})
		said.await(t, `(?m)^{"time":"[^"]+","transport":"stdio","id":"\d+","method":"tools/call","tool":"echo","ms":`)
		s.Close()
	}
}

// A log that cannot be opened is an error before anything is served.
func TestAccessLogBadPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "log")
	for _, args := range []string{"serve everything", "serve everything --http 127.0.0.1:0", "up -s everything --http 127.0.0.1:0", "up -s everything --stdio", "bridge -s everything --stdio", "bridge -s everything --http 127.0.0.1:0"} {
		var said strings.Builder
		code := run(t.Context(), append(strings.Fields(args), "--log", path), strings.NewReader(""), io.Discard, &said)
		if code != exitUsage || !strings.Contains(said.String(), "--log: open "+path) || !strings.Contains(said.String(), "hint: ") {
			t.Errorf("patchbay %s = %d %s", args, code, said.String())
		}
	}
}
