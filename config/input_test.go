package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/config"
)

const withInputs = `{
  "inputs": [
    {"type": "promptString", "id": "api-key", "description": "API key", "password": true},
    {"type": "pickString", "id": "host", "options": ["a.example", {"label": "B", "value": "b.example"}], "default": "a.example"},
    {"type": "command", "id": "unused", "command": "x.y"}
  ],
  "servers": {
    "web": {"url": "https://${input:host}/mcp", "headers": {"Authorization": "Bearer ${input:api-key}", "X": "${env:X}"}},
    "prog": {"command": "run", "args": ["--key=${input:api-key}", "${X}"], "env": {"K": "${input:api-key}"}, "cwd": "${input:host}"},
    "none": {"command": "run"}
  }
}`

// A value that looks like a variable is not expanded again, whatever its origin.
func TestResolve(t *testing.T) {
	file, faults, _ := load(t, withInputs, map[string]string{"X": "${input:host}"})
	if faults != nil {
		t.Fatal(faults)
	}
	if len(file.Inputs) != 3 || !file.Inputs[0].Password || len(file.Inputs[1].Options) != 2 {
		t.Errorf("inputs = %+v", file.Inputs)
	}
	asked := 0
	answer := func(in config.Input) (string, error) {
		asked++
		return map[string]string{"api-key": "${X} hunter2", "host": "b.example"}[in.ID], nil
	}
	web, prog, none := file.Servers[0], file.Servers[1], file.Servers[2]
	if web.URL != "https://${input:host}/mcp" || len(web.Inputs()) != 2 {
		t.Errorf("before: url %q, inputs %v", web.URL, web.Inputs())
	}
	got, err := web.Resolve(answer)
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]string{"Authorization": "Bearer ${X} hunter2", "X": "${input:host}"}; got.URL != "https://b.example/mcp" || !cmp.Equal(got.Headers, want) || len(got.Inputs()) != 0 {
		t.Errorf("after: url %q, headers %v, inputs %v", got.URL, got.Headers, got.Inputs())
	}
	if web.Headers["Authorization"] != "Bearer ${input:api-key}" {
		t.Error("Resolve changed the server it was called on")
	}
	if asked != 2 {
		t.Errorf("asked %d times, want once for each input", asked)
	}
	got, err = prog.Resolve(answer)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"--key=${X} hunter2", "${input:host}"}; !cmp.Equal(got.Args, want) || got.Env["K"] != "${X} hunter2" || filepath.Base(got.Dir) != "b.example" || !filepath.IsAbs(got.Dir) {
		t.Errorf("args %q, env %v, dir %q", got.Args, got.Env, got.Dir)
	}
	if prog.Args[0] != "--key=${input:api-key}" {
		t.Error("Resolve changed the arguments of the server it was called on")
	}
	asked = 0
	if got, err := none.Resolve(answer); err != nil || !got.Equal(none) || asked != 0 {
		t.Errorf("Resolve of a server without inputs = %v, %v, asked %d times", got, err, asked)
	}
	nobody := errors.New("nobody is here")
	if _, err := web.Resolve(func(config.Input) (string, error) { return "", nobody }); !errors.Is(err, nobody) || !strings.Contains(err.Error(), `"host"`) {
		t.Errorf("Resolve = %v, want the cause and the input", err)
	}
	if _, err := web.Resolve(func(config.Input) (string, error) { return "hunter2 x", nil }); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Resolve to a wrong url = %v, want an error without the value", err)
	}
}

func TestValues(t *testing.T) {
	file, _, _ := load(t, withInputs, map[string]string{"X": "sekrit"})
	var got []string
	for _, s := range file.Servers {
		for _, v := range s.Values() {
			got = append(got, strings.Join([]string{v.Member, v.Name, v.Written, strings.Join(v.From(), "+")}, "|"))
		}
	}
	want := []string{
		`url||https://${input:host}/mcp|the input "host"`,
		`headers|Authorization|Bearer ${input:api-key}|the input "api-key"`,
		`headers|X|${env:X}|X of the environment`,
		`command||run|`,
		`args|0|--key=${input:api-key}|the input "api-key"`,
		`args|1|${X}|X of the environment`,
		`env|K|${input:api-key}|the input "api-key"`,
		`cwd||${input:host}|the input "host"`,
		`command||run|`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestInputFaults(t *testing.T) {
	_, faults, _ := load(t, `{"inputs": [
  {"id": 5}, {}, 1,
  {"id": "a", "password": "yes"},
  {"id": "a", "options": [1]}
], "servers": {"s": {"command": "${input:b}"}}}`, nil)
	want := []string{
		`2:10: "id" of an input is not a string`,
		`2:14: an input without an id`,
		`2:18: an input is not an object`,
		`3:27: "password" is not true or false`,
		`4:10: the input "a" is here twice, first in line 3`,
		`4:27: an option of an input is not a string`,
		`5:33: there is no input "b"`,
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if _, faults, _ := load(t, `{"inputs": {}, "servers": {}}`, nil); len(faults) != 1 {
		t.Errorf("inputs that are no list: %v", faults)
	}
}

func TestEnvName(t *testing.T) {
	for id, want := range map[string]string{
		"token":     "PATCHBAY_INPUT_TOKEN",
		"api-key.2": "PATCHBAY_INPUT_API_KEY_2",
		"é x":       "PATCHBAY_INPUT___X",
	} {
		if got := (config.Input{ID: id}).EnvName(); got != want {
			t.Errorf("EnvName of %q = %q, want %q", id, got, want)
		}
	}
}

func TestEnvFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := write("mcp.json", `{"servers": {"a": {"command": "x", "envFile": "${workspaceFolder}/.env", "env": {"OWN": "1"}}}}`)
	write(".env", "# comment\n\nexport A = plain # not this\r\nOWN=2\nB='single ${X} \\n'\nC=\"two\\nlines\\\" and \nthree\"\nA=last\nD=\nE=a#b=c\n")
	file, err := config.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"A": "last", "OWN": "1", "B": `single ${X} \n`, "C": "two\nlines\" and \nthree", "D": "", "E": "a#b=c"}
	if diff := cmp.Diff(want, file.Servers[0].Env); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}

	write(".env", "ok=1\nhunter2\nB=\"hunter2\nC='x'")
	_, err = config.Load(path, nil)
	var problems config.Problems
	if !errors.As(err, &problems) || len(problems) != 2 || problems[0].Line != 2 || problems[1].Line != 3 || filepath.Base(problems[0].Path) != ".env" || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Load with a wrong envFile = %v, want faults in lines 2 and 3 of it", err)
	}
	for _, text := range []string{
		`{"servers": {"a": {"command": "x", "envFile": "none"}}}`,
		`{"servers": {"a": {"command": "x", "envFile": "."}}}`,
		`{"inputs": [{"id": "i"}], "servers": {"a": {"command": "x", "envFile": "${input:i}"}}}`,
	} {
		if _, err := config.Load(write("mcp.json", text), nil); !errors.As(err, &problems) || len(problems) != 1 {
			t.Errorf("Load of %s = %v, want one fault", text, err)
		}
	}
	for _, name := range []string{"none", ".env"} {
		if _, err := config.Load(write("mcp.json", `{"servers": {"a": {"command": "x", "envFile": "`+name+`", "disabled": true}}}`), nil); err != nil {
			t.Errorf("Load of a disabled server with the envFile %q = %v", name, err)
		}
	}
}

func TestInspect(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(path, []byte(`{"servers": {"good": {"command": "x"}, "bad": {"command": "${GONE_FOR_EVER}"}}, "inputs": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	file, faults, err := config.Inspect(path, nil)
	if err != nil || len(file.Servers) != 1 || file.Servers[0].Name != "good" || len(faults) != 2 {
		t.Fatalf("Inspect = %+v, %v, %v", file, faults, err)
	}
	if faults[0].Server != "bad" || faults[1].Server != "" {
		t.Errorf("faults are about %q and %q, want the server and the file", faults[0].Server, faults[1].Server)
	}
}
