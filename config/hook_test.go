package config_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/config"
)

func TestHooks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcp.json")
	env := func(name string) (string, bool) { return "value of " + name, name == "HOME" }
	file, faults, err := config.Parse(path, []byte(`{"patchbay": {"hooks": {
  "check": {"when": "before", "tools": ["shop/*", "*/write"], "command": "${HOME}/check", "args": ["-v"], "env": {"A": "b"}, "cwd": "hooks", "timeout": "5s"},
  "log": {"when": "after", "tools": "*", "command": "log"},
  "all": {"when": "before", "command": "all"}
}}}`), env)
	if err != nil || faults != nil || len(file.Warnings)+len(file.Unread) > 0 {
		t.Fatal(err, faults, file.Warnings, file.Unread)
	}
	if len(file.Hooks) != 3 {
		t.Fatalf("%d hooks", len(file.Hooks))
	}
	h := file.Hooks[0]
	if h.Name != "check" || h.After || !slices.Equal(h.Tools, []string{"shop/*", "*/write"}) || h.Command != "value of HOME/check" || !slices.Equal(h.Args, []string{"-v"}) ||
		h.Env["A"] != "b" || h.Dir != filepath.Join(filepath.Dir(path), "hooks") || h.Timeout != 5*time.Second || h.Source != path+":2" || strings.Join(h.CommandLine(), " ") != "${HOME}/check -v" {
		t.Errorf("the first hook is %+v", h)
	}
	if h := file.Hooks[1]; !h.After || !slices.Equal(h.Tools, []string{"*"}) || h.Timeout != 0 {
		t.Errorf("the second hook is %+v", h)
	}
	if file.Hooks[2].Tools != nil {
		t.Errorf("the third hook is for %q", file.Hooks[2].Tools)
	}
}

// Any fault of a hook is one of the file as a whole: a hook that cannot be read must not be missed.
func TestHookFaults(t *testing.T) {
	for hooks, want := range map[string]string{
		`[]`:          `"hooks" is not an object`,
		`{"a": "ls"}`: `the hook "a" is not an object`,
		`{"": {"when": "before", "command": "x"}}`:                                           `the name of a hook is empty`,
		`{"a": {"command": "x"}}`:                                                            `does not say when it runs`,
		`{"a": {"when": "during", "command": "x"}}`:                                          `"when" has an unknown value`,
		`{"a": {"when": "before"}}`:                                                          `has no command`,
		`{"a": {"when": "before", "command": ""}}`:                                           `"command"`,
		`{"a": {"when": "before", "command": "x", "tool": "shop/*"}}`:                        `a hook has no member "tool"`,
		`{"a": {"when": "before", "command": "x", "tools": ["shop"]}}`:                       `the tools "shop" are not SERVER/TOOL`,
		`{"a": {"when": "before", "command": "x", "tools": 5}}`:                              `"tools" is not a list`,
		`{"a": {"when": "before", "command": "x", "timeout": "never"}}`:                      `"timeout" of a hook is too long`,
		`{"a": {"when": "before", "command": "x", "timeout": "11m"}}`:                        `"timeout" of a hook is too long`,
		`{"a": {"when": "before", "command": "x", "timeout": 5}}`:                            `"timeout" is not a duration`,
		`{"a": {"when": "before", "command": "${NONE}"}}`:                                    `NONE`,
		`{"a": {"when": "before", "command": "x", "env": {"A": "${input:pin}"}}}`:            `has an input in it`,
		`{"a": {"when": "before", "command": "x"}, "a": {"when": "before", "command": "y"}}`: `"a"`,
	} {
		text := `{"inputs": [{"type": "promptString", "id": "pin"}], "patchbay": {"hooks": ` + hooks + `}}`
		file, faults, err := config.Parse("/x/mcp.json", []byte(text), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		if len(faults) == 0 || !strings.Contains(faults.Error(), want) || faults[0].Server != "" || faults[0].Model != "" {
			t.Errorf("%s: %v, want %s; hooks %v", hooks, faults, want, len(file.Hooks))
		}
	}
}
