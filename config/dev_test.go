package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/config"
)

func TestLoadDev(t *testing.T) {
	file, faults, _ := load(t, `{"servers": {
  "a": {"command": "node", "args": ["x.js"], "dev": {"watch": "src/**/*.ts", "debug": {"type": "node"}}},
  "b": {"command": "/usr/bin/python3.12", "dev": {"watch": ["${workspaceFolder}/*.py", "!./test_*.py"], "debug": {"type": "debugpy"}, "speed": 1}}
}}`, nil)
	if faults != nil {
		t.Fatal(faults)
	}
	a, b := file.Servers[0].Dev, file.Servers[1].Dev
	if diff := cmp.Diff([]string{"src/**/*.ts"}, a.Watch); diff != "" || a.Debug != "node" || a.Dir == "" {
		t.Errorf("dev of a is %+v", a)
	}
	if diff := cmp.Diff([]string{"*.py", "!test_*.py"}, b.Watch); diff != "" || b.Debug != "debugpy" {
		t.Errorf("dev of b is %+v", b)
	}
	if len(file.Unread) != 1 || len(file.Warnings) > 0 {
		t.Errorf("unread %v, warnings %v; want speed", file.Unread, file.Warnings)
	}
	_, faults, _ = load(t, `{"servers": {
  "b": {"command": "node", "dev": {"debug": {"type": "gdb"}}},
  "c": {"command": "node", "args": ["--inspect-brk", "x"], "dev": {"debug": {"type": "node"}}},
  "d": {"command": "x", "dev": {"watch": "../*"}},
  "e": {"command": "x", "dev": {"watch": ["[a", 5, "", "${NO_SUCH}/x"]}},
  "f": {"command": "x", "dev": "src"}
}}`, nil)
	want := []string{
		`2:45: "debug" has no known type`,
		`3:77: "debug" is here besides the argument "--inspect-brk"`,
		`4:42: "watch" names files outside of the folder of the file`,
		`5:43: "watch" has a [ or { without its end`,
		`5:49: "watch" is not a pattern of files`,
		`5:52: "watch" is not a pattern of files`,
		`5:56: the environment variable NO_SUCH is not set`,
		`6:32: "dev" is not an object`,
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	file, faults, _ = load(t, `{"servers": {
  "a": {"command": "npx", "dev": {"debug": {"type": "node"}}}
}}`, nil)
	if len(faults) > 0 || len(file.Warnings) != 1 || !strings.Contains(file.Warnings[0].String(), `2:53: "node" cannot debug the command "npx"`) {
		t.Errorf("faults %v, warnings %v", faults, file.Warnings)
	}
}

func TestDebugs(t *testing.T) {
	for _, tt := range []struct {
		debugger, command string
		want              bool
	}{
		{"node", "node", true}, {"node", `C:\Program Files\nodejs\Node.EXE`, true}, {"node", "/opt/node22", true}, {"node", "nodemon", false}, {"node", "npx", false},
		{"debugpy", "python", true}, {"debugpy", ".venv/bin/python3.12", true}, {"debugpy", "uv", false}, {"", "node", false},
	} {
		if got := (config.Dev{Debug: tt.debugger}).Debugs(tt.command); got != tt.want {
			t.Errorf("%q debugs %q: %v, want %v", tt.debugger, tt.command, got, tt.want)
		}
	}
}
