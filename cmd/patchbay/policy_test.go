package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
)

// Behind up, a policy decides for each server, by the server's name and the tool's own. It follows
// its file: listening clients are notified that lists have changed, and the new rules decide at
// once. A faulty file changes nothing.
func TestUpFollowsItsPolicy(t *testing.T) {
	runtimeFolder(t)
	rules := filepath.Join(t.TempDir(), "policy.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(rules+"~", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(rules+"~", rules); err != nil {
			t.Fatal(err)
		}
	}
	write("rules: [{name: one, effect: allow, when: 'server == \"a\" && name == \"args\"'}]\n")
	r := startUp(t, map[string]any{"a": stubServer(t), "b": stubServer(t)}, "--policy", rules)
	s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), r.url)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tools := func() (names []string) {
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		return names
	}
	call := func(tool string) error {
		_, err := s.CallTool(t.Context(), tool, map[string]any{"count": 1})
		return err
	}
	if got, want := tools(), []string{"a_args"}; !slices.Equal(got, want) {
		t.Errorf("tools %q, want %q", got, want)
	}
	if err := call("a_args"); err != nil {
		t.Errorf("what is allowed: %v", err)
	}
	if err := call("b_args"); err == nil {
		t.Error("a call that is refused passes")
	}
	changed := make(chan struct{})
	listening := make(chan struct{})
	go func() {
		for e, err := range s.Watch(t.Context()) {
			switch {
			case err != nil:
				return
			case e.Method == "notifications/subscriptions/acknowledged":
				close(listening)
			case e.Method == "notifications/tools/list_changed":
				close(changed)
				return
			}
		}
	}()
	<-listening
	write("rules: [{name: one, effect: alow, when: 'true'}]\n")
	r.stderr.await(t, `unknown effect "alow"; use allow or deny`)
	if err := call("a_args"); err != nil {
		t.Errorf("with a file that has faults: %v", err)
	}
	write("rules: [{name: two, effect: allow, when: 'server == \"b\" && name == \"args\"'}]\n")
	r.stderr.await(t, `policy.yaml: now 1 rule`)
	<-changed
	if got, want := tools(), []string{"b_args"}; !slices.Equal(got, want) {
		t.Errorf("tools %q, want %q", got, want)
	}
	if err := call("b_args"); err != nil {
		t.Errorf("what is allowed now: %v", err)
	}
	if err := call("a_args"); err == nil {
		t.Error("what is no longer allowed passes")
	}
}

// Trap 22: rules see the annotations of servers that mcp.json trusts and of trusted built-in ones
// only; trust follows the file.
func TestHintsOfUntrusted(t *testing.T) {
	runtimeFolder(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	rules := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(rules, []byte("rules: [{name: look, effect: allow, when: 'annotations.readOnlyHint && name == \"echo\"'}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	everything := func(trusted bool) map[string]any {
		return map[string]any{"command": self, "args": []string{"serve", "everything"}, "env": map[string]any{testRun: "patchbay"}, "patchbay": map[string]any{"trusted": trusted}}
	}
	r := startUp(t, map[string]any{"theirs": everything(false), "mine": everything(true), "own": map[string]any{"builtin": "everything"}}, "--policy", rules)
	tools := func() (names []string) {
		s, err := (&mcp.Client{Name: "host", Version: "1"}).Dial(t.Context(), r.url)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
			if _, err := s.CallTool(t.Context(), tool.Name, map[string]any{"message": "hi"}); err != nil {
				t.Errorf("%s is listed, and its call fails: %v", tool.Name, err)
			}
		}
		if _, err := s.CallTool(t.Context(), "theirs_echo", map[string]any{"message": "hi"}); err == nil && !slices.Contains(names, "theirs_echo") {
			t.Error("a tool that is not listed is called")
		}
		slices.Sort(names)
		return names
	}
	if got, want := tools(), []string{"mine_echo", "own_echo"}; !slices.Equal(got, want) {
		t.Errorf("tools %q, want %q", got, want)
	}
	writeConfig(t, r.file, map[string]any{"theirs": everything(true), "mine": everything(false)})
	r.stderr.await(t, `~ mine`)
	if got, want := tools(), []string{"theirs_echo"}; !slices.Equal(got, want) {
		t.Errorf("tools %q after the change, want %q", got, want)
	}
}
