package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/patchbay-dev/patchbay/config"
)

// load writes text to a folder of its own and loads it; the folder is
// replaced by DIR in what it returns.
func load(t *testing.T, text string, env map[string]string) (*config.File, []string, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "mcp.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := config.Load(path, func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	var faults []string
	var problems config.Problems
	if errors.As(err, &problems) {
		for _, p := range problems {
			if p.Fix == "" {
				t.Errorf("no fix in %v", p)
			}
			faults = append(faults, fmt.Sprintf("%d:%d: %s", p.Line, p.Column, p.Text))
		}
	} else if err != nil {
		t.Fatalf("Load: %v", err)
	}
	if file != nil {
		for i := range file.Servers {
			file.Servers[i].Source = filepath.ToSlash(strings.ReplaceAll(file.Servers[i].Source, dir, "DIR"))
			file.Servers[i].Dir = strings.ReplaceAll(file.Servers[i].Dir, dir, "DIR")
		}
	}
	return file, faults, err
}

// fields is a server whose fields a test can see: Server compares and prints itself.
type fields config.Server

func plain(list []config.Server) []fields {
	out := make([]fields, len(list))
	for i, s := range list {
		out[i] = fields(s)
	}
	return out
}

func TestLoadBothDialects(t *testing.T) {
	file, faults, _ := load(t, "\xef\xbb\xbf"+`// both lists may be in one file
{
	"inputs": [{"id": "x"}],
	"mcpServers": {
		"zeta": {
			"command": "npx", /* "command": "no" */
			"args": ["-y", "${PKG:-server-everything}", "//not a comment", "a,]"],
			"env": {"TOKEN": "${env:TOKEN}", "PORT": 8080, "P": "C:\\Users\\me",},
			"cwd": "sub",
			"autoApprove": ["x"],
		},
		"alpha": {"type": "streamable-http", "url": "https://${HOST}/mcp?x={y}", "headers": {"Authorization": "Bearer ${TOKEN}"}},
	},
	"servers": {
		"old": {"url": "http://127.0.0.1/sse", "transport": "sse"},
		"any": {"url": "http://127.0.0.1/", "disabled": true, "headers": {"A": "${input:x} ${GONE}"}},
		"db": {"builtin": "sqlite", "args": ["${workspaceFolder}/data.db", "${userHome}"]},
	},
}
`, map[string]string{"TOKEN": "s3cret", "HOST": "example.com", "HOME": "/home/me", "USERPROFILE": "/home/me", "PKG": ""})
	if faults != nil {
		t.Fatal(faults)
	}
	want := []config.Server{
		{
			Name: "zeta", Command: "npx", Args: []string{"-y", "server-everything", "//not a comment", "a,]"},
			Env: map[string]string{"TOKEN": "s3cret", "PORT": "8080", "P": `C:\Users\me`},
			Dir: filepath.Join("DIR", "sub"), Transport: "stdio", Source: "DIR/mcp.json:5",
		},
		{Name: "alpha", URL: "https://example.com/mcp?x={y}", Headers: map[string]string{"Authorization": "Bearer s3cret"}, Transport: "http", Source: "DIR/mcp.json:12"},
		{Name: "old", URL: "http://127.0.0.1/sse", Transport: "sse", Source: "DIR/mcp.json:15"},
		{Name: "any", URL: "http://127.0.0.1/", Headers: map[string]string{"A": "${input:x} ${GONE}"}, Disabled: true, Source: "DIR/mcp.json:16"},
		{Name: "db", Builtin: "sqlite", Source: "DIR/mcp.json:17"},
	}
	for i := range file.Servers {
		file.Servers[i].Source = filepath.ToSlash(file.Servers[i].Source)
	}
	db := &file.Servers[len(file.Servers)-1]
	if len(db.Args) != 2 || !strings.HasSuffix(db.Args[0], "/data.db") || !filepath.IsAbs(strings.TrimSuffix(db.Args[0], "/data.db")) || db.Args[1] != "/home/me" {
		t.Errorf("args of db = %q, want the folder of the file and the home folder", db.Args)
	}
	db.Args = nil
	if diff := cmp.Diff(plain(want), plain(file.Servers), cmpopts.IgnoreUnexported(fields{})); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
	if len(file.Warnings) > 0 {
		t.Errorf("warnings %v, want none", file.Warnings)
	}
}

func TestLoadFaults(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"all at once", `{"mcpServers": {
  "": {"command": "x"},
  "a": {},
  "a": {"command": "x"},
  "b": {"command": ["x", "y"], "args": "z", "env": {"K": true, "A=B": "v"}},
  "c": {"command": "x", "url": "http://h/"},
  "d": {"command": "x", "type": "sse"},
  "e": {"url": "ftp://h/"},
  "f": {"url": "http://h/", "type": "stdio"},
  "g": {"url": "http://h/", "type": "carrier pigeon"},
  "h": {"url": "http://h/", "type": "http", "transport": "sse"},
  "i": {"command": "${GONE} ${ALSO}", "args": ["${input:key}", "${config:x.y}", "${", 1]},
  "j": {"command": "x", "disabled": "yes", "command": "y"},
  "k": 1,
  "é": {"comand": "x"},
  "l": {"serverUrl": "x"},
  "m": {"command": ""},
  "n": {"command": "C:\new", "env": {"A": "1", "A": "2"}},
  "o": {"url": "https:///mcp"}
}}`, []string{
			`2:3: a server without a name`,
			`3:3: the server "a" has neither command nor url`,
			`4:3: the server "a" is here twice, first in line 3`,
			`5:20: "command" is not a string`,
			`5:40: "args" is not a list`,
			`5:58: "K" in "env" is not a string`,
			`5:64: a name in "env" is empty or has = or a line break in it`,
			`6:32: the server "c" has both "command" and "url"`,
			`7:33: a command is reached by stdio`,
			`8:16: "url" is not an http or https URL`,
			`9:37: a url is not reached by stdio`,
			`10:37: "type" is not a transport`,
			`11:58: "type" and "transport" contradict each other`,
			`12:20: the environment variable GONE is not set`,
			`12:48: there is no input "key"`,
			`12:64: unknown variable ${config:...}`,
			`12:81: ${ without its }`,
			`12:87: an argument is not a string`,
			`13:37: "disabled" is not true or false`,
			`13:44: the member "command" is here twice, first in line 13`,
			`14:8: the server "k" is not an object`,
			`15:9: the server "é" has neither command nor url`,
			`16:9: the server "l" has neither command nor url`,
			`17:20: "command" is empty`,
			`18:20: "command" has a control character in it`,
			`18:48: the name "A" is here twice, first in line 18`,
			`19:16: "url" has no host`,
		}},
		{"empty", " \n", []string{`2:1: the file is empty`}},
		{"not an object", `[1]`, []string{`1:1: the file is not a JSON object`}},
		{"no servers", `{"mcpservers": {}}`, []string{`1:1: neither "mcpServers" nor "servers" is here`}},
		{"no list", `{"servers": []}`, []string{`1:13: "servers" is not an object`}},
		{"list twice", "{\"servers\": {},\n\"servers\": {}}", []string{`2:1: the member "servers" is here twice, first in line 1`}},
		{"name in both lists", "{\"servers\": {\"a\":{\"command\":\"x\"}},\n\"mcpServers\": {\"a\":{\"command\":\"x\"}}}", []string{`2:16: the server "a" is here twice, first in line 1`}},
		{"missing comma", "{\"servers\": {}\n  \"inputs\": []}", []string{`2:3: a comma or colon is missing before this string`}},
		{"cut off", `{"servers": {`, []string{`1:14: the file ends too early`}},
		{"windows path", `{"servers": {"a": {"command": "C:\Users"}}}`, []string{`1:34: unknown escape in a string`}},
		{"open string", "{\"servers\": {\"a\": {\"command\": \"x\n}}}", []string{`1:33: a string without its closing quote, or with a line break or control character in it`}},
		{"open comment", "{/* \n}", []string{`1:2: a comment without an end`}},
		{"after the end", "{\"servers\": {}}\n}", []string{`2:1: text after the end of the JSON`}},
		{"single quotes", `{'servers': {}}`, []string{`1:2: single quotes are not JSON`}},
		{"lone comma", `{,}`, []string{`1:2: unexpected character ","`}},
		{"UTF-16", "\xff\xfe{\x00}\x00", []string{`1:1: the file is UTF-16`}},
		{"latin 1", "{\"servers\": {\"\xe9\": {}}}", []string{`1:15: bytes that are not UTF-8`}},
		{"columns count characters", "\xef\xbb\xbf{/* é */ \"servers\": 1}", []string{`1:21: "servers" is not an object`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			file, faults, err := load(t, tt.text, nil)
			if file != nil && err != nil {
				t.Error("Load returned a file and an error")
			}
			if diff := cmp.Diff(tt.want, faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

// The settings of VS Code hold both lists in "mcp"; "patchbay" is at the top there, too.
func TestLoadMCPMember(t *testing.T) {
	file, faults, _ := load(t, `{
  "editor.wordWrap": "on",
  "mcp": {
    "inputs": [{"id": "key", "type": "promptString"}],
    "servers": {"a": {"url": "https://h/", "headers": {"K": "${input:key}"}}}
  },
  "patchbay": {"servers": {"a": {"callTimeout": "3s"}, "b": {"builtin": "shop"}}}
}`, nil)
	if faults != nil {
		t.Fatal(faults)
	}
	var names []string
	for _, s := range file.Servers {
		names = append(names, s.Name)
	}
	if fmt.Sprint(names) != "[a b]" || len(file.Inputs) != 1 || file.Servers[0].CallTimeout != 3*time.Second || len(file.Warnings) > 0 {
		t.Errorf("servers %v, inputs %v, callTimeout %v, warnings %v", names, file.Inputs, file.Servers[0].CallTimeout, file.Warnings)
	}
	_, faults, _ = load(t, `{
  "inputs": [],
  "mcp": {"servers": {"a": {"command": "x"}}},
  "mcpServers": {"a": {"command": "y"}},
  "servers": {}
}`, nil)
	want := []string{
		`2:3: "inputs" is here and in "mcp" in line 3`,
		`4:3: "mcpServers" is here and in "mcp" in line 3`,
		`4:18: the server "a" is here twice, first in line 3`,
		`5:3: "servers" is here and in "mcp" in line 3`,
	}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestLoadWarnings(t *testing.T) {
	file, faults, _ := load(t, `{"mcpServer": 1, "servers": {
  "a": {"command": "x", "arg": [], "ENV": {}, "headers": {}, "timeout": 5},
  "b": {"url": "http://h/", "cwd": "x", "hedaers": {}},
  "c": {"builtin": "sqlite", "type": "stdio"}
}}`, nil)
	if faults != nil {
		t.Fatal(faults)
	}
	var got []string
	for _, w := range file.Warnings {
		got = append(got, fmt.Sprintf("%d:%d: %s: %s", w.Line, w.Column, w.Text, w.Fix))
	}
	want := []string{
		`1:2: the member "mcpServer" is not read: did you mean "mcpServers"?`,
		`2:25: the member "arg" is not read: did you mean "args"?`,
		`2:36: the member "ENV" is not read: did you mean "env"?`,
		`2:58: "headers" has no effect besides "command": remove it`,
		`3:36: "cwd" has no effect besides "url": remove it`,
		`3:41: the member "hedaers" is not read: did you mean "headers"?`,
		`4:38: a builtin server has no transport: remove it`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	if len(file.Servers) != 3 {
		t.Errorf("read %d servers, want 3", len(file.Servers))
	}
	if len(file.Unread) != 1 || file.Unread[0].Text != `the member "timeout" is not read` || file.Unread[0].Server != "a" {
		t.Errorf("unread members %v, want timeout of a", file.Unread)
	}
}

// Each member without a reader is in Unread once, with its owner; settings of an editor are not.
func TestLoadUnread(t *testing.T) {
	file, faults, _ := load(t, `{"$schema": "x", "editorial": 1,
"inputs": [{"id": "i", "question": "?"}],
"mcp": {"other": {}},
"servers": {"a": {"command": "x", "idle": "1s", "autoApprove": ["y"]}},
"patchbay": {"models": {"m": {"provider": "openai", "name": "n", "color": "red"}}}, "models": {}}`, nil)
	if faults != nil {
		t.Fatal(faults)
	}
	var got []string
	for _, p := range file.Unread {
		got = append(got, fmt.Sprintf("%d %s%s: %s: %s", p.Line, p.Server, p.Model, p.Text, p.Fix))
	}
	const leave = "remove it, or leave it to another host"
	want := []string{
		`1 : the member "editorial" is not read: ` + leave,
		`2 : the member "question" of an input is not read: ` + leave,
		`3 : the member "mcp" is not read: it needs an object "servers" or "inputs"`,
		`4 a: the member "idle" is not read: move it into "patchbay", or leave it to another host`,
		`4 a: the member "autoApprove" is not read: ` + leave,
		`5 m: the member "color" of a model is not read: ` + leave,
		`5 : the member "models" is not read: move it into "patchbay", or leave it to another host`,
	}
	if diff := cmp.Diff(want, got); diff != "" || len(file.Warnings) > 0 {
		t.Errorf("unread (-want +got):\n%s\nwarnings %v", diff, file.Warnings)
	}
	if file, _, _ = load(t, `{"editor": 1, "mcp": {"servers": {}, "gallery": true}}`, nil); len(file.Unread) != 1 {
		t.Errorf("unread %v, want gallery", file.Unread)
	}
}

// "api_key" is a Bearer token, as is one of a header; both at once are a fault.
func TestLoadAPIKey(t *testing.T) {
	file, faults, _ := load(t, `{"inputs": [{"id": "k", "password": true}], "servers": {
  "a": {"url": "https://h/", "api_key": "planted-${KEY}"},
  "b": {"url": "https://h/", "api_key": "${input:k}", "headers": {"X": "y"}},
  "c": {"command": "x", "api_key": "unused"}
}}`, map[string]string{"KEY": "secret"})
	if faults != nil {
		t.Fatal(faults)
	}
	if got := file.Servers[0].Headers["Authorization"]; got != "Bearer planted-secret" {
		t.Errorf("Authorization of a is %q", got)
	}
	b, err := file.Servers[1].Resolve(func(config.Input) (string, error) { return "answer", nil })
	if err != nil || b.Headers["Authorization"] != "Bearer answer" || b.Headers["X"] != "y" {
		t.Errorf("headers of b are %v, %v", b.Headers, err)
	}
	var got []string
	for _, w := range file.Warnings {
		if strings.Contains(w.String(), "planted") {
			t.Errorf("the key is in the warning %v", w)
		}
		got = append(got, fmt.Sprintf("%d: %s", w.Line, w.Text))
	}
	want := []string{`2: "api_key" is sent as a Bearer token`, `3: "api_key" is sent as a Bearer token`, `4: "api_key" has no effect besides "command"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	_, faults, _ = load(t, `{"servers": {
  "a": {"url": "https://h/", "api_key": "x", "headers": {"authorization": "Basic y"}},
  "b": {"url": "https://h/", "api_key": 5},
  "c": {"url": "https://h/", "api_key": "Bearer x"}
}}`, nil)
	want = []string{`2:41: "api_key" is here besides the header "Authorization"`, `3:41: "api_key" is not a string`, `4:41: "api_key" begins with "Bearer "`}
	if diff := cmp.Diff(want, faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

// LOG-26-008: secrets are not in texts for people or in logs.
func TestLoadKeepsSecrets(t *testing.T) {
	env := map[string]string{"SECRET": "hunter2"}
	for _, text := range []string{
		`{"servers": {"a": {"command": "x", "env": {"K": "hunter2 ${GONE}", "L": ["hunter2"]}, "args": ["hunter2${", {"hunter2": 1}]}}}`,
		`{"servers": {"a": {"url": "hunter2", "headers": {"A": "${hunter2!}", "B": {"hunter2": 1}}}}}`,
		`{"servers": {"a": {"url": "ftp://${SECRET}", "headers": {"A": "${SECRET} ${GONE}"}}}}`,
		`{"servers": {"a": {"url": "http:// hunter2"}}}`,
		`{"servers": {"a": {"env": {"K": "\hunter2"}}}}`,
		`{"servers": {"a": {"env": {"K": "hunter2` + "\n" + `"}}}}`,
		`{"servers": {"a": {"env": {"K": "hunter2}}}}`,
		`{"servers": {"a": {"env": {"K": hunter2}}}}`,
		`{"servers": {"a": {"env": {"K": 'hunter2'}}}}`,
	} {
		_, faults, err := load(t, text, env)
		if faults == nil {
			t.Errorf("no fault in %s", text)
		} else if strings.Contains(err.Error(), "unter2") {
			t.Errorf("error shows a secret: %v", err)
		}
	}
	file, _, err := load(t, `{"servers": {"a": {"command": "x", "env": {"K": "${SECRET}"}}}}`, env)
	if err != nil {
		t.Fatal(err)
	}
	if s := fmt.Sprintf("%v %+v %#v", file.Servers[0], file.Servers, file.Servers[0]); strings.Contains(s, "hunter2") {
		t.Errorf("a printed server shows a secret: %s", s)
	}
}

func TestLoadOfFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := config.Load(filepath.Join(dir, "none.json"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of no file = %v, want os.ErrNotExist", err)
	}
	big := filepath.Join(dir, "big.json")
	if err := os.WriteFile(big, make([]byte, config.MaxBytes+1), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(big, nil); err == nil || errors.As(err, new(config.Problems)) {
		t.Errorf("Load of a big file = %v, want an error about its size", err)
	}
}

func TestWorkspaceFolderOfVSCode(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".vscode"), 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ".vscode", "mcp.json")
	if err := os.WriteFile(path, []byte(`{"servers": {"a": {"command": "${workspaceFolder}"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := config.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := file.Servers[0].Command; got != dir {
		t.Errorf("workspaceFolder = %q, want %q", got, dir)
	}
}

func TestFind(t *testing.T) {
	user, dir := t.TempDir(), t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "AppData", "HOME"} {
		t.Setenv(name, user)
	}
	base, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	if path, ok := config.Find(dir); ok {
		t.Errorf("Find in an empty folder = %q", path)
	}
	if err := os.Mkdir(filepath.Join(dir, "mcp.json"), 0o700); err != nil { // a folder is no file
		t.Fatal(err)
	}
	for _, path := range []string{
		filepath.Join(base, "patchbay", "mcp.json"),
		filepath.Join(dir, ".vscode", "mcp.json"),
		filepath.Join(dir, ".mcp.json"),
		filepath.Join(dir, "mcp.json"),
	} {
		if path == filepath.Join(dir, "mcp.json") {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, ok := config.Find(dir); !ok || got != path {
			t.Errorf("Find = %q, %v, want %q", got, ok, path)
		}
	}
}

// A name that is empty or here twice is a fault of that entry: the other servers stay.
func TestLoadUnnamed(t *testing.T) {
	text := `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x"}, "a": {"command": "y"}, "": {"command": "z"}},
"patchbay": {"servers": {"b": {"command": "w"}, "c": {"command": "v"}}}}`
	file, faults, err := config.Parse("mcp.json", []byte(text), nil)
	if err != nil || len(file.Servers) != 1 || file.Servers[0].Name != "c" {
		t.Errorf("servers %v, error %v", file.Servers, err)
	}
	var of []string
	for _, p := range faults {
		of = append(of, p.Server)
	}
	if want := []string{"a", config.NoName, "b"}; !slices.Equal(of, want) {
		t.Errorf("the faults are of %q, want %q\n%v", of, want, faults)
	}
	var names []string
	for _, e := range file.Entries() {
		names = append(names, e.Name)
	}
	if want := []string{"a", "b", "", "c"}; !slices.Equal(names, want) {
		t.Errorf("Entries = %q, want %q", names, want)
	}
}
