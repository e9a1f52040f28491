package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host/modeltest"
)

const orderModel = `
rules:
  - when: {results: {place-order: ""}}
    answer: [text: So be it.]
  - answer: [call: {name: place-order, arguments: {product: prd-1013, customer: cus-1001}}]
`

// ownHooks writes hooks into the person's own file.
func ownHooks(t *testing.T, hooks string) string {
	t.Helper()
	path, ok := config.UserFile()
	if !ok {
		t.Fatal("no own file")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"patchbay": {"hooks": `+hooks+`}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A hook of the person's own file runs in every folder and whatever --config names. It refuses a call that --allow allows, with its
// reason for the model; a hook that cannot be read or started refuses, too.
func TestOwnHooks(t *testing.T) {
	alone(t)
	s := scripted(t, modeltest.MustParse(orderModel))
	order := func(args ...string) (ran, string) {
		t.Helper()
		out := typed(t, "", append([]string{"run", "order a stove", "-m", "openai/scripted", "-s", "shop", "--allow", "shop/*"}, args...)...)
		all := s.Requests()
		for _, m := range all[len(all)-1].Messages {
			for _, r := range m.Results {
				return out, r.Text
			}
		}
		return out, ""
	}
	if out, told := order(); out.code != exitOK || !strings.Contains(told, "ord-") {
		t.Fatalf("without a hook: %d, %s, the model is told %s", out.code, out.stderr, told)
	}
	ownHooks(t, `{"sundays": {"when": "before", "tools": "shop/place-order", "command": "sh", "args": ["-c", "grep -q prd-1013 && echo no stoves on Sundays >&2 && exit 2"]}}`)
	if err := os.WriteFile("other.json", []byte(`{"mcpServers": {}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"--config", "other.json"}} {
		if out, told := order(args...); out.code != exitOK || !strings.HasPrefix(told, `It was not called: hook "sundays": no stoves on Sundays`) || !strings.Contains(out.stderr, "no stoves on Sundays") {
			t.Errorf("run %q with a hook: %d, %s, the model is told %s", args, out.code, out.stderr, told)
		}
	}
	ownHooks(t, `{"other": {"when": "before", "tools": ["bank/*"], "command": "false"}, "note": {"when": "after", "command": "sh", "args": ["-c", "echo remember the fuel >&2; exit 2"]}}`)
	if _, told := order(); !strings.Contains(told, "ord-") || !strings.HasSuffix(told, "[A hook of the person says: remember the fuel]") {
		t.Errorf("after a hook that adds a text the model is told %s", told)
	}
	ownHooks(t, `{"gone": {"when": "before", "command": "no-such-command"}}`)
	if _, told := order(); !strings.Contains(told, `hook "gone" failed`) {
		t.Errorf("with a hook that cannot be started the model is told %s", told)
	}
	ownHooks(t, `{"gone": {"when": "befor", "command": "true"}}`)
	if out, _ := order(); out.code == exitOK || !strings.Contains(out.stderr, `"when" has an unknown value`) {
		t.Errorf("with a hook that cannot be read: %d, %s", out.code, out.stderr)
	}
	ownHooks(t, `{"gone": {"when": "before", "command": "no-such-command"}}`)
	if out := typed(t, "", "config", "doctor"); out.code == exitOK || !strings.Contains(out.stdout, "hook gone before all calls") || !strings.Contains(out.stdout, `the command "no-such-command" was not found`) {
		t.Errorf("the doctor says %s%s", out.stdout, out.stderr)
	}
}

// A hook that came with a folder runs only after the person has agreed to the file, which shows it, and again after each change. The
// doctor examines it.
func TestHooksOfFolder(t *testing.T) {
	alone(t)
	scripted(t, modeltest.MustParse(orderModel))
	write := func(command string) {
		t.Helper()
		text := `{"mcpServers": {"mine": {"builtin": "shop"}}, "patchbay": {"hooks": {"spy": {"when": "before", "command": "` + command + `", "args": ["ran"], "env": {"LD_PRELOAD": "./x.so"}}}}}`
		if err := os.WriteFile("mcp.json", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ran := func() bool { _, err := os.Stat("ran"); os.Remove("ran"); return err == nil }
	write("touch")
	chat := func() string {
		return typed(t, "order a stove\n", "chat", "-m", "openai/scripted", "-s", "shop", "--allow", "*").stderr
	}
	typed(t, "", "config", "trust")
	if said := chat(); strings.Contains(said, "do not run") || !ran() {
		t.Errorf("with trust: %s", said)
	}
	typed(t, "", "config", "trust", "--forget")
	if said := chat(); !strings.Contains(said, "the hooks of mcp.json do not run, as it is not trusted") || ran() {
		t.Errorf("before the person has agreed: %s", said)
	}
	if out := typed(t, "", "run", "order a stove", "-m", "openai/scripted", "--allow", "*"); out.code != exitUsage || ran() {
		t.Errorf("without trust: %d, %s", out.code, out.stderr)
	}
	out := typed(t, "", "config", "trust")
	if want := "hook spy before all calls: touch ran (sets LD_PRELOAD=./x.so) (gets calls)"; out.code != exitOK || !strings.Contains(out.stdout, want) {
		t.Errorf("config trust shows %s, want %s", out.stdout, want)
	}
	if out := typed(t, "", "run", "order a stove", "-m", "openai/scripted", "--allow", "*"); out.code != exitOK || !ran() {
		t.Errorf("with trust: %d, %s", out.code, out.stderr)
	}
	doctor := typed(t, "", "config", "doctor")
	if !strings.Contains(doctor.stdout, "hook spy before all calls") || ran() {
		t.Errorf("the doctor says %s", doctor.stdout)
	}
	write("/bin/touch")
	if said := chat(); !strings.Contains(said, "do not run") || ran() {
		t.Errorf("after a change: %s", said)
	}
}
