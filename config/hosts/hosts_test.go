package hosts_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/hosts"
)

const project = "/home/me/project"

// read reads a fixture.
func read(t *testing.T, host, name string) (hosts.Host, []byte, *hosts.Listing) {
	t.Helper()
	h, ok := hosts.Named(host)
	if !ok {
		t.Fatalf("no host %q", host)
	}
	path := filepath.Join("testdata", host, name)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l, err := h.Read(data, hosts.From{Path: path, Dir: project})
	if err != nil {
		t.Fatal(err)
	}
	return h, data, l
}

// values decodes a file of any of the formats.
func values(t *testing.T, name string, data []byte) map[string]any {
	t.Helper()
	var v map[string]any
	var err error
	switch filepath.Ext(name) {
	case ".toml":
		err = toml.Unmarshal(data, &v)
	case ".yaml":
		err = yaml.Unmarshal(data, &v)
	default:
		if data, err = config.Standardize(name, data); err == nil {
			err = json.Unmarshal(data, &v)
		}
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, data)
	}
	return v
}

// A file has the same servers after a round trip through mcp.json: each server is added to a
// document, read back from there and written again.
func TestRoundTrip(t *testing.T) {
	tests := []struct {
		host, name string
		keys       []string // keys of the written file
		without    []string // entries that are not converted
	}{
		{"claude-desktop", "claude_desktop_config.json", []string{"mcpServers"}, nil},
		{"claude-code", ".mcp.json", []string{"mcpServers"}, nil},
		{"cursor", "mcp.json", []string{"mcpServers"}, nil},
		{"vscode", "mcp.json", []string{"inputs", "servers"}, nil},
		{"windsurf", "mcp_config.json", []string{"mcpServers"}, nil},
		{"zed", "settings.json", []string{"context_servers"}, []string{"from-extension"}},
		{"goose", "config.yaml", []string{"extensions"}, []string{"developer"}},
		{"codex", "config.toml", []string{"mcp_servers"}, nil},
		{"gemini", "settings.json", []string{"mcpServers"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.host, func(t *testing.T) {
			h, data, l := read(t, tt.host, tt.name)
			path := filepath.Join(t.TempDir(), "mcp.json")
			t.Setenv("XDG_DATA_HOME", t.TempDir())
			var doc *config.Document
			err := config.Edit(t.Context(), path, func(d *config.Document) error {
				doc = d
				for _, in := range l.Inputs {
					if err := d.AddInput(in); err != nil {
						return err
					}
				}
				for _, e := range l.Servers {
					if err := d.Add(e); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			env := func(name string) (string, bool) {
				if name == "API_BASE_URL" {
					return "", false
				}
				return "set", true
			}
			file, faults, err := config.Inspect(path, env)
			if err != nil {
				t.Fatal(err)
			}
			faults = slices.DeleteFunc(faults, func(p config.Problem) bool { return strings.Contains(p.Text, "envFile") })
			if len(faults) > 0 || len(file.Servers) == 0 {
				t.Errorf("Patchbay does not read it: %v in\n%s", faults, doc.Bytes())
			}
			back, err := h.Write(&hosts.Listing{Servers: doc.Entries(), Inputs: doc.Inputs()})
			if err != nil {
				t.Fatal(err)
			}
			got, whole := values(t, tt.name, back), values(t, tt.name, data)
			want := map[string]any{}
			for _, key := range tt.keys {
				want[key] = whole[key]
			}
			for _, name := range tt.without {
				delete(want[tt.keys[0]].(map[string]any), name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the file that came back (-want +got):\n%s", diff)
			}
		})
	}
}

// show returns a short form of a listing.
func show(l *hosts.Listing) []string {
	var out []string
	for _, e := range l.Servers {
		out = append(out, e.Name+" "+string(e.Object))
	}
	return append(out, l.Notes...)
}

func TestRead(t *testing.T) {
	tests := []struct {
		host, name string
		want       []string
	}{
		{"claude-code", ".claude.json", []string{
			`notes {"type":"stdio","command":"notes-server","args":["--local"],"env":{}}`,
			`issues {"type":"http","url":"https://issues.example.com/mcp"}`,
			`"notes" of "mcpServers" is left out: another one of that name in the file takes precedence`,
		}},
		{"vscode", "settings.json", []string{
			`old {"type":"sse","url":"https://old.example.com/sse","headers":{"X-Key":"${input:k}"}}`,
		}},
		{"zed", "older.json", []string{
			`mine {"settings":{"something":true},"command":"/opt/bin/mine","args":["run"],"env":{"A":"1"}}`,
		}},
		{"codex", "config.toml", []string{
			`a.b {"command":"dotted","disabled":false}`,
			`design {"url":"https://design.example.com/mcp","headers":{"X-Region":"eu-1","X-Team":"${TEAM_NAME}","Authorization":"Bearer ${DESIGN_TOKEN}"},"disabled":true}`,
			`docs {"command":"npx","args":["-y","server-docs"],"env":{"DOCS_LEVEL":"2"},"cwd":"/srv/docs","enabled_tools":["search","read"],"env_vars":["LOCAL_TOKEN"],"startup_timeout_sec":20,"tool_timeout_sec":45.5}`,
		}},
		{"goose", "config.yaml", []string{
			`fetch {"type":"stdio","command":"uvx","args":["mcp-server-fetch"],"env":{"FETCH_AGENT":"goose"},"disabled":false,"available_tools":[],"bundled":null,"description":"Fetches pages","env_keys":["FETCH_TOKEN"],"name":"fetch","timeout":300}`,
			`remote {"type":"streamable_http","env":{},"url":"https://remote.example.com/mcp","headers":{"Authorization":"Bearer token"},"disabled":true,"name":"Remote","timeout":60}`,
			`events {"type":"sse","url":"https://events.example.com/sse","disabled":false,"name":"events","timeout":300}`,
			`"developer": left out: an extension of the type "builtin" is part of goose`,
			`"fetch": goose keeps the value of FETCH_TOKEN itself: set the environment variable FETCH_TOKEN`,
		}},
		{"gemini", "settings.json", []string{
			`python {"command":"python","args":["-m","my_server","--port","8080"],"cwd":"./mcp-servers/python","env":{"DATABASE_URL":"${DB_CONNECTION_STRING}","API_KEY":"prefix-${EXTERNAL_API_KEY}"},"timeout":15000,"trust":false,"includeTools":["safe"]}`,
			`http {"url":"https://api.example.com/mcp","headers":{"Authorization":"Bearer token"},"timeout":5000,"type":"http"}`,
			`events {"url":"https://events.example.com/sse","type":"sse"}`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.host+"/"+tt.name, func(t *testing.T) {
			_, _, l := read(t, tt.host, tt.name)
			if diff := cmp.Diff(tt.want, show(l)); diff != "" {
				t.Errorf("listing (-want +got):\n%s", diff)
			}
		})
	}
}

// A list of another host in the same file is noted.
func TestOtherLists(t *testing.T) {
	data := []byte(`{"servers":{"a":{"command":"x"}},"mcpServers":{"b":{"command":"y"}}}`)
	for host, want := range map[string]string{
		"vscode": `the list "mcpServers" is left out: VS Code reads only "servers"`,
		"cursor": `the list "servers" is left out: Cursor reads only "mcpServers"`,
	} {
		h, _ := hosts.Named(host)
		l, err := h.Read(data, hosts.From{Path: "mcp.json"})
		if err != nil || len(l.Servers) != 1 || !slices.Contains(l.Notes, want) {
			t.Errorf("%s reads %+v, %v; want the note %q", host, l, err, want)
		}
	}
}

// One server with all members, as far as each host supports them.
func TestWriteOfOtherWords(t *testing.T) {
	l := func() *hosts.Listing {
		return &hosts.Listing{
			Servers: []config.Entry{
				{Name: "prog", Object: json.RawMessage(`{"command":"${userHome}/x","env":{"A":"${A}","B":"${env:C:-d}","P":"${input:pw}"},"patchbay":{"idle":"1m"}}`)},
				{Name: "web", Object: json.RawMessage(`{"transport":"streamable-http","url":"https://h/","headers":{"Authorization":"Bearer ${env:T}","X":"${X}"}}`)},
				{Name: "off", Object: json.RawMessage(`{"command":"x","disabled":true}`)},
				{Name: "db", Object: json.RawMessage(`{"builtin":"sqlite","args":["x.db"],"idle":"1m"}`)},
			},
			Inputs: []json.RawMessage{json.RawMessage(`{"id":"pw"}`)},
		}
	}
	wants := map[string]string{
		"claude-desktop": `{"mcpServers":{"db":{"args":["serve","sqlite","x.db"],"command":"patchbay"},"prog":{"command":"${userHome}/x","env":{"A":"${A}","B":"${env:C:-d}","P":"${input:pw}"}}}}`,
		"claude-code":    `{"mcpServers":{"db":{"args":["serve","sqlite","x.db"],"command":"patchbay"},"prog":{"command":"${HOME}/x","env":{"A":"${A}","B":"${C:-d}","P":"${PATCHBAY_INPUT_PW}"}},"web":{"headers":{"Authorization":"Bearer ${T}","X":"${X}"},"type":"http","url":"https://h/"}}}`,
		"cursor":         `{"mcpServers":{"db":{"args":["serve","sqlite","x.db"],"command":"patchbay"},"off":{"command":"x","disabled":true},"prog":{"command":"${userHome}/x","env":{"A":"${env:A}","B":"${env:C}","P":"${env:PATCHBAY_INPUT_PW}"}},"web":{"headers":{"Authorization":"Bearer ${env:T}","X":"${env:X}"},"type":"streamable-http","url":"https://h/"}}}`,
		"vscode":         `{"inputs":[{"id":"pw"}],"servers":{"db":{"args":["serve","sqlite","x.db"],"command":"patchbay","type":"stdio"},"prog":{"command":"${userHome}/x","env":{"A":"${env:A}","B":"${env:C}","P":"${input:pw}"},"type":"stdio"},"web":{"headers":{"Authorization":"Bearer ${env:T}","X":"${env:X}"},"type":"http","url":"https://h/"}}}`,
		"windsurf":       `{"mcpServers":{"db":{"args":["serve","sqlite","x.db"],"command":"patchbay"},"off":{"command":"x","disabled":true},"prog":{"command":"${userHome}/x","env":{"A":"${env:A}","B":"${env:C}","P":"${env:PATCHBAY_INPUT_PW}"}},"web":{"headers":{"Authorization":"Bearer ${env:T}","X":"${env:X}"},"serverUrl":"https://h/","type":"streamable-http"}}}`,
		"zed":            `{"context_servers":{"db":{"args":["serve","sqlite","x.db"],"command":"patchbay","source":"custom"},"off":{"command":"x","enabled":false,"source":"custom"},"prog":{"command":"${userHome}/x","env":{"A":"${A}","B":"${env:C:-d}","P":"${input:pw}"},"source":"custom"},"web":{"headers":{"Authorization":"Bearer ${env:T}","X":"${X}"},"url":"https://h/"}}}`,
		"goose":          `{"extensions":{"db":{"args":["serve","sqlite","x.db"],"cmd":"patchbay","enabled":true,"name":"db","timeout":300,"type":"stdio"},"off":{"cmd":"x","enabled":false,"name":"off","timeout":300,"type":"stdio"},"prog":{"cmd":"${userHome}/x","enabled":true,"env_keys":["A"],"envs":{"B":"${env:C:-d}","P":"${input:pw}"},"name":"prog","timeout":300,"type":"stdio"},"web":{"enabled":true,"headers":{"Authorization":"Bearer ${env:T}","X":"${X}"},"name":"web","timeout":300,"type":"streamable_http","uri":"https://h/"}}}`,
		"codex":          `{"mcp_servers":{"db":{"args":["serve","sqlite","x.db"],"command":"patchbay"},"off":{"command":"x","enabled":false},"prog":{"command":"${userHome}/x","env":{"B":"${env:C:-d}","P":"${input:pw}"},"env_vars":["A"]},"web":{"bearer_token_env_var":"T","env_http_headers":{"X":"X"},"url":"https://h/"}}}`,
		"gemini":         `{"mcpServers":{"db":{"args":["serve","sqlite","x.db"],"command":"patchbay"},"prog":{"command":"${HOME}/x","env":{"A":"$A","B":"$C","P":"$PATCHBAY_INPUT_PW"}},"web":{"headers":{"Authorization":"Bearer ${T}","X":"$X"},"httpUrl":"https://h/"}}}`,
	}
	ext := map[string]string{"goose": "x.yaml", "codex": "x.toml"}
	for _, h := range hosts.All() {
		t.Run(h.Name, func(t *testing.T) {
			list := l()
			out, err := h.Write(list)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(values(t, ext[h.Name], out))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(wants[h.Name], string(got)); diff != "" {
				t.Errorf("written (-want +got):\n%s", diff)
			}
			lossless := h.Name == "vscode"
			if loud := slices.ContainsFunc(list.Notes, func(n string) bool { return strings.Contains(n, `"prog"`) }); !loud && !lossless {
				t.Error("no note about what the host cannot do")
			}
		})
	}
}

func TestRedact(t *testing.T) {
	e, n := hosts.Redact(config.Entry{Name: "my srv", Object: json.RawMessage(`{"command":"x","env":{"KEY":"hunter2","lower":"hunter2","REF":"${R}","N":5,"EMPTY":""},"headers":{"Authorization":"Bearer hunter2","X-Key":"hunter2"}}`)})
	want := `{"command":"x","env":{"KEY":"${KEY}","lower":"${LOWER}","REF":"${R}","N":"${N}","EMPTY":""},"headers":{"Authorization":"Bearer ${MY_SRV_AUTHORIZATION}","X-Key":"${MY_SRV_X_KEY}"}}`
	if string(e.Object) != want || n != 5 {
		t.Errorf("Redact = %s, %d\nwant %s, 5", e.Object, n, want)
	}
	e, n = hosts.Redact(config.Entry{Name: "srv", Object: json.RawMessage(`{"url":"https://h/","api_key":"hunter2"}`)})
	want = `{"url":"https://h/","headers":{"Authorization":"Bearer ${SRV_AUTHORIZATION}"}}`
	if string(e.Object) != want || n != 1 {
		t.Errorf("Redact = %s, %d\nwant %s, 1", e.Object, n, want)
	}
}

func TestPlaces(t *testing.T) {
	systems := []hosts.System{
		{OS: "linux", Home: "/home/me", Config: "/home/me/.config", Dir: "/p"},
		{OS: "darwin", Home: "/Users/me", Config: "/Users/me/Library/Application Support", Dir: "/p"},
		{OS: "windows", Home: `C:/Users/me`, Config: `C:/Users/me/AppData/Roaming`, Dir: "C:/p"},
	}
	want := map[string][]string{
		"claude-desktop": {"/home/me/.config/Claude/claude_desktop_config.json", "/Users/me/Library/Application Support/Claude/claude_desktop_config.json", "C:/Users/me/AppData/Roaming/Claude/claude_desktop_config.json"},
		"claude-code":    {"/home/me/.claude.json", "/Users/me/.claude.json", "C:/Users/me/.claude.json"},
		"cursor":         {"/home/me/.cursor/mcp.json", "/Users/me/.cursor/mcp.json", "C:/Users/me/.cursor/mcp.json"},
		"vscode":         {"/home/me/.config/Code/User/mcp.json", "/Users/me/Library/Application Support/Code/User/mcp.json", "C:/Users/me/AppData/Roaming/Code/User/mcp.json"},
		"windsurf":       {"/home/me/.codeium/windsurf/mcp_config.json", "/Users/me/.codeium/windsurf/mcp_config.json", "C:/Users/me/.codeium/windsurf/mcp_config.json"},
		"zed":            {"/home/me/.config/zed/settings.json", "/Users/me/.config/zed/settings.json", "C:/Users/me/AppData/Roaming/Zed/settings.json"},
		"goose":          {"/home/me/.config/goose/config.yaml", "/Users/me/.config/goose/config.yaml", "C:/Users/me/AppData/Roaming/Block/goose/config/config.yaml"},
		"codex":          {"/home/me/.codex/config.toml", "/Users/me/.codex/config.toml", "C:/Users/me/.codex/config.toml"},
		"gemini":         {"/home/me/.gemini/settings.json", "/Users/me/.gemini/settings.json", "C:/Users/me/.gemini/settings.json"},
	}
	for _, h := range hosts.All() {
		for i, sys := range systems {
			places := h.Places(sys)
			if got := filepath.ToSlash(places[0].Path); got != want[h.Name][i] || places[0].Scope != "user" {
				t.Errorf("%s on %s: %q (%s), want %q", h.Name, sys.OS, got, places[0].Scope, want[h.Name][i])
			}
		}
	}
}

func TestGuess(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*", "*"))
	dots, err2 := filepath.Glob(filepath.Join("testdata", "*", ".*"))
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	for _, path := range append(files, dots...) {
		want := filepath.Base(filepath.Dir(path))
		if want == "fuzz" || filepath.Base(path) == "fuzz" {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if want == "cursor" {
			want = "claude-code" // the same form; only the folder differs
		}
		if got := hosts.Guess(path, data); got.Name != want {
			t.Errorf("Guess of %s = %s, want %s", path, got.Name, want)
		}
	}
}

// The error of a wrong file has its place and none of its values.
func TestReadFaults(t *testing.T) {
	for host, text := range map[string]string{
		"cursor": "{\"mcpServers\": {\"a\": {\"env\": {\"K\": \"hunter2}}}",
		"vscode": `{"servers": "hunter2"}`,
		"goose":  "extensions: [hunter2]",
		"codex":  "[mcp_servers.a]\ncommand = hunter2",
	} {
		h, _ := hosts.Named(host)
		_, err := h.Read([]byte(text), hosts.From{Path: "FILE", Dir: project})
		if err == nil || !strings.Contains(err.Error(), "FILE") || strings.Contains(err.Error(), "unter2") {
			t.Errorf("%s: Read = %v, want the file and no value", host, err)
		}
	}
	for _, h := range hosts.All() {
		if l, err := h.Read(nil, hosts.From{Path: "FILE"}); err != nil || len(l.Servers) > 0 {
			t.Errorf("%s: Read of an empty file = %v, %v", h.Name, l, err)
		}
	}
}

// All entries read from any file are objects that can be written to every host and to mcp.json.
func FuzzRead(f *testing.F) {
	for i, h := range hosts.All() {
		files, err := filepath.Glob(filepath.Join("testdata", h.Name, "*.*"))
		if err != nil {
			f.Fatal(err)
		}
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(i, data)
		}
	}
	f.Fuzz(func(t *testing.T, i int, data []byte) {
		all := hosts.All()
		l, err := all[uint(i)%uint(len(all))].Read(data, hosts.From{Path: "x", Dir: project})
		if err != nil {
			if l != nil {
				t.Fatal("a listing and an error")
			}
			return
		}
		for _, e := range l.Servers {
			var v map[string]any
			if err := json.Unmarshal(e.Object, &v); err != nil {
				t.Fatalf("%q: %s is no object: %v", e.Name, e.Object, err)
			}
		}
		for _, h := range all {
			if _, err := h.Write(&hosts.Listing{Servers: l.Servers, Inputs: l.Inputs}); err != nil {
				t.Fatalf("%s does not write %v: %v", h.Name, show(l), err)
			}
		}
	})
}

func ExampleHost_Read() {
	h, _ := hosts.Named("codex")
	l, err := h.Read([]byte("[mcp_servers.docs]\ncommand = \"npx\"\nargs = [\"-y\", \"server-docs\"]\n"), hosts.From{Path: "config.toml"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range l.Servers {
		fmt.Printf("%s %s\n", e.Name, e.Object)
	}
	// Output: docs {"command":"npx","args":["-y","server-docs"]}
}

// Claude Code on Windows starts scripts such as npx with cmd.exe, and reading its file undoes that.
func TestScriptsOfWindows(t *testing.T) {
	h, _ := hosts.Named("claude-code")
	for _, tt := range []struct{ os, entry, want, note string }{
		{"windows", `{"command":"npx","args":["-y","a b"],"env":{"A":"%x%"}}`, `{"command":"cmd","args":["/c","npx","-y","a b"],"env":{"A":"%x%"}}`, ""},
		{"windows", `{"command":"C:\\tools\\Run.CMD"}`, `{"command":"cmd","args":["/c","C:\\tools\\Run.CMD"]}`, ""},
		{"windows", `{"command":"npx","args":["a&b"]}`, `{"command":"npx","args":["a&b"]}`, `put the values into "env"`},
		{"windows", `{"command":"uvx","args":["x"]}`, `{"command":"uvx","args":["x"]}`, ""},
		{"windows", `{"url":"https://example.com/mcp"}`, `{"type":"http","url":"https://example.com/mcp"}`, ""},
		{"linux", `{"command":"npx","args":["-y","x"]}`, `{"command":"npx","args":["-y","x"]}`, ""},
	} {
		l := &hosts.Listing{Servers: []config.Entry{{Name: "s", Object: json.RawMessage(tt.entry)}}, OS: tt.os}
		out, err := h.Write(l)
		if err != nil {
			t.Fatal(err)
		}
		var file struct{ McpServers map[string]json.RawMessage }
		var got, want any
		if err := json.Unmarshal(out, &file); err != nil {
			t.Fatal(err)
		}
		json.Unmarshal(file.McpServers["s"], &got)
		json.Unmarshal([]byte(tt.want), &want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", tt.entry, tt.os, diff)
		}
		if notes := strings.Join(l.Notes, "\n"); (tt.note == "") != (notes == "") || !strings.Contains(notes, tt.note) {
			t.Errorf("%s: the notes are %q, want %q", tt.entry, notes, tt.note)
		}
		back, err := h.Read(out, hosts.From{Path: "mcp.json", Dir: project})
		if err != nil || len(back.Servers) != 1 {
			t.Fatalf("%s: read again: %v, %v", tt.entry, back, err)
		}
		var first, again struct {
			Command string
			Args    []string
		}
		json.Unmarshal([]byte(tt.entry), &first)
		json.Unmarshal(back.Servers[0].Object, &again)
		if first.Command != again.Command || !slices.Equal(first.Args, again.Args) {
			t.Errorf("%s: read again, it is %s", tt.entry, back.Servers[0].Object)
		}
	}
	l, err := h.Read([]byte(`{"mcpServers":{"s":{"command":"CMD.exe","args":["/C","dir"]}}}`), hosts.From{Path: "mcp.json"})
	if err != nil || string(l.Servers[0].Object) != `{"command":"CMD.exe","args":["/C","dir"]}` {
		t.Errorf("another command of cmd.exe is read as %v, %v", l, err)
	}
}
