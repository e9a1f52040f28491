package install

import (
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/config/hosts"
)

// files are those of hosts, as people write them.
var files = map[string]string{
	"claude-code": "{\n  \"numStartups\": 7,\n  \"projects\": {\"/x\": {\"mcpServers\": {}}},\n  \"mcpServers\": {\n    \"a\": {\"type\": \"http\", \"url\": \"https://a.example\"}\n  }\n}\n",
	"cursor":      "// mine\n{\"mcpServers\": {\"a\": {\"command\": \"a\"}}}",
	"vscode":      "{\r\n\t\"inputs\": [],\r\n\t\"servers\": {\r\n\t\t// one\r\n\t\t\"a\": {\"type\": \"stdio\", \"command\": \"a\"},\r\n\t},\r\n}\r\n",
	"windsurf":    "{}",
	"zed":         "// settings\n{\n  \"theme\": \"One\", // dark\n  \"context_servers\": {},\n}\n",
	"codex":       "# mine\nmodel = \"x\" # the model\n\n[mcp_servers.a]\ncommand = \"a\" # b",
	"gemini":      "",
}

func target(t *testing.T, host, scope string) (*Target, hosts.System) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "data"))
	t.Setenv("LOCALAPPDATA", filepath.Join(dir, "data"))
	t.Setenv("HOME", dir)
	sys := hosts.System{OS: runtime.GOOS, Home: dir, Config: filepath.Join(dir, "config"), Dir: filepath.Join(dir, "project")}
	h, ok := hosts.Named(host)
	if !ok {
		t.Fatalf("no host %s", host)
	}
	to, err := Find(h, sys, scope)
	if err != nil {
		t.Fatal(err)
	}
	return to, sys
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
}

var gateway = &Gateway{Name: "team", URL: "http://127.0.0.1:7420/mcp"}

// The server is added to the file of each host, which reads it. The rest of the file stays, and undo
// restores the file byte for byte: also to no file.
func TestInstallAndUndo(t *testing.T) {
	for host, text := range files {
		for _, missing := range []bool{false, true} {
			to, sys := target(t, host, "user")
			if !missing {
				put(t, to.Path, text)
			}
			c, err := to.Plan(gateway, false)
			if err != nil {
				t.Errorf("%s: %v", host, err)
				continue
			}
			if err := c.Write(); err != nil {
				t.Errorf("%s: %v", host, err)
				continue
			}
			now, err := os.ReadFile(to.Path)
			if err != nil {
				t.Fatal(err)
			}
			l, err := to.Host.Read(now, hosts.From{Path: to.Path, Dir: sys.Dir})
			found := false
			if err == nil {
				for _, s := range l.Servers {
					found = found || s.Name == "team" && strings.Contains(string(s.Object), gateway.URL)
				}
			}
			if !found {
				t.Errorf("%s reads %v from\n%s", host, err, now)
			}
			for _, part := range []string{"// mine", "# mine", "# the model", "// dark", "// one", `"a"`, "# b", "numStartups"} {
				if !missing && strings.Contains(text, part) && !strings.Contains(string(now), part) {
					t.Errorf("%s: %s is lost:\n%s", host, part, now)
				}
			}
			again, err := to.Plan(gateway, false)
			if err != nil || !again.Nothing() {
				t.Errorf("%s: the second time: %v, %v", host, err, again)
			}
			for _, line := range c.Lines() {
				if strings.HasPrefix(line, "- ") && strings.Contains(line, "one") {
					t.Errorf("%s: the change removes %s", host, line)
				}
			}
			exact, err := Undo(to, "team")
			if err != nil || !exact {
				t.Errorf("%s: undo: %v, %v", host, exact, err)
			}
			back, err := os.ReadFile(to.Path)
			if missing != os.IsNotExist(err) || !missing && string(back) != text {
				t.Errorf("%s: after undo: %v\n%q, want\n%q", host, err, back, text)
			}
		}
	}
}

// Uninstall keeps changes that were made after the installation.
func TestUndoOfAChangedFile(t *testing.T) {
	for host, text := range files {
		to, _ := target(t, host, "user")
		put(t, to.Path, text)
		c, err := to.Plan(gateway, false)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Write(); err != nil {
			t.Fatal(err)
		}
		now, err := os.ReadFile(to.Path)
		if err != nil {
			t.Fatal(err)
		}
		mark := "// later\n"
		if host == "codex" {
			mark = "# later\n"
		}
		put(t, to.Path, mark+string(now))
		exact, err := Undo(to, "team")
		back, _ := os.ReadFile(to.Path)
		if err != nil || exact || !strings.HasPrefix(string(back), mark) || strings.Contains(string(back), gateway.URL) {
			t.Errorf("%s: %v, %v\n%s", host, exact, err, back)
		}
		if host != "gemini" && host != "windsurf" && host != "zed" && strings.TrimSpace(string(back)) != strings.TrimSpace(mark+text) {
			t.Errorf("%s: %q, want %q", host, back, mark+text)
		}
	}
}

// Another server of the name is replaced only with force.
func TestInstallOverAnother(t *testing.T) {
	to, _ := target(t, "cursor", "user")
	text := `{"mcpServers": {"team": {"url": "https://other.example"}}}`
	put(t, to.Path, text)
	if _, err := to.Plan(gateway, false); err == nil || !strings.Contains(err.Error(), `has another server "team"`) {
		t.Errorf("without force: %v", err)
	}
	c, err := to.Plan(gateway, true)
	if err != nil {
		t.Fatal(err)
	}
	put(t, to.Path, text+"\n")
	if err := c.Write(); err == nil || !strings.Contains(err.Error(), "another program has changed") {
		t.Errorf("the file has changed: %v", err)
	}
	put(t, to.Path, text)
	if err := c.Write(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(to.Path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if exact, err := Undo(to, "team"); err != nil || !exact {
		t.Errorf("undo: %v, %v", exact, err)
	}
	if back, _ := os.ReadFile(to.Path); string(back) != text {
		t.Errorf("after undo: %s", back)
	}
	if _, err := Undo(to, "gone"); err == nil || !strings.Contains(err.Error(), `has no server "gone"`) {
		t.Errorf("an unknown server: %v", err)
	}
}

// A secret is never in a file of a project, and in one of the user only where the host has no other way.
func TestInstallSecrets(t *testing.T) {
	g := &Gateway{Name: "team", URL: "https://gw.example/mcp", Header: http.Header{"Authorization": {"Bearer s3cr3t-value"}, "X-Team": {"blue"}}}
	for host, want := range map[string]string{
		"claude-code": `"Authorization": "Bearer ${TEAM_AUTHORIZATION}"`,
		"cursor":      `"Authorization": "Bearer ${env:TEAM_AUTHORIZATION}"`,
		"vscode":      `"Authorization": "${input:team-authorization}"`,
		"gemini":      `"Authorization": "Bearer ${TEAM_AUTHORIZATION}"`,
		"codex":       `bearer_token_env_var = `,
		"zed":         "s3cr3t-value",
	} {
		for _, scope := range []string{"user", "project"} {
			to, _ := target(t, host, scope)
			c, err := to.Plan(g, false)
			if host == "zed" && scope == "project" {
				if err == nil || !strings.Contains(err.Error(), "plain text") || strings.Contains(err.Error(), "s3cr3t") {
					t.Errorf("zed in a project: %v", err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", host, err)
				continue
			}
			if text := string(c.After); !strings.Contains(text, want) || host != "zed" && strings.Contains(text, "s3cr3t") || !strings.Contains(text, "blue") {
				t.Errorf("%s:\n%s", host, text)
			}
			if len(c.Notes) == 0 || strings.Contains(strings.Join(c.Notes, " "), "s3cr3t") {
				t.Errorf("%s: notes %q", host, c.Notes)
			}
			if shown := g.Masked(strings.Join(c.Lines(), "\n")); strings.Contains(shown, "s3cr3t") {
				t.Errorf("%s shows the secret:\n%s", host, shown)
			}
			if host == "vscode" && !strings.Contains(string(c.After), `"id": "team-authorization"`) {
				t.Errorf("vscode has no input:\n%s", c.After)
			}
		}
	}
}

// A file that cannot be changed without a loss is left alone, and the lines are shown.
func TestInstallByHand(t *testing.T) {
	to, _ := target(t, "goose", "user")
	put(t, to.Path, "# mine\nextensions: {}\n")
	var lines, notes []string
	how := &How{Print: func(s string) { lines = append(lines, s) }, Note: func(format string, args ...any) { notes = append(notes, format) }}
	if err := gateway.Install([]*Target{to}, how); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "uri: "+gateway.URL) || len(notes) != 1 {
		t.Errorf("%s, %q", text, notes)
	}
	inline := "mcp_servers = {a = {command = \"a\"}}\n"
	to, _ = target(t, "codex", "user")
	put(t, to.Path, inline)
	lines = nil
	if err := gateway.Install([]*Target{to}, how); err != nil {
		t.Fatal(err)
	}
	if now, _ := os.ReadFile(to.Path); string(now) != inline || !strings.Contains(strings.Join(lines, "\n"), gateway.URL) {
		t.Errorf("%s\n%s", now, lines)
	}
	to, _ = target(t, "claude-desktop", "user")
	if err := gateway.Install([]*Target{to}, how); err == nil || !strings.Contains(err.Error(), "Connectors") {
		t.Errorf("Claude Desktop: %v", err)
	}
}
