package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/patchbay-dev/patchbay/audit"
	"github.com/patchbay-dev/patchbay/mcp"
)

// A call that a signal to the program cuts off is not one that its caller canceled: the audit log and the
// access log say that the program was stopped, over stdio and over HTTP.
func TestStoppedCalls(t *testing.T) {
	runtimeFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "mcp.json")
	writeConfig(t, config, map[string]any{"stub": stubServer(t)})
	for _, tt := range []struct {
		line, tool string
		args       map[string]any
		http       bool
	}{
		{"serve everything", "long_operation", map[string]any{"seconds": 60}, false},
		{"up --stdio --config " + config, "stub_hang", map[string]any{}, false},
		{"bridge --stdio -s stub --config " + config, "hang", map[string]any{}, false},
		{"up --http 127.0.0.1:0 --config " + config, "stub_hang", map[string]any{}, true},
	} {
		t.Run(tt.line, func(t *testing.T) {
			dir := t.TempDir()
			log, access := filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "access.jsonl")
			said := new(transcript)
			cmd := exec.Command(self, append(strings.Fields(tt.line), "--audit", log, "--log", access)...)
			cmd.Env, cmd.Stderr = append(os.Environ(), testRun+"=patchbay"), said
			var s *mcp.Session
			if tt.http {
				r := beginUp(t, cmd.Args[1:]...)
				cmd = r.cmd
				s, err = new(mcp.Client).Dial(t.Context(), r.url)
			} else {
				s, err = new(mcp.Client).Start(t.Context(), cmd)
			}
			if err != nil {
				t.Fatal(err, said)
			}
			defer s.Close()
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.CallTool(t.Context(), tt.tool, tt.args)
			}()
			until(t, "the call has begun", func() bool {
				text, _ := os.ReadFile(log)
				return strings.Contains(string(text), `"kind":"call.begin"`)
			})
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			<-done
			if tt.http {
				cmd.Wait()
			} else {
				s.Close()
			}
			var end audit.Entry
			for e, err := range audit.Read(log) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == audit.CallEnd {
					end = *e
				}
			}
			if end.Outcome != "error" || end.Fault != "transport" || end.Reason != "this program was stopped before the answer" {
				t.Errorf("the line of the end is %s", end.Line())
			}
			text, err := os.ReadFile(access)
			if err != nil || !regexp.MustCompile(`"tool":"`+tt.tool+`",.*"outcome":"error"`).Match(text) {
				t.Errorf("the access log is %s, %v", text, err)
			}
		})
	}
}
