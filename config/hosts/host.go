package hosts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Host is a program that starts servers.
type Host struct {
	Name  string // for command lines, such as "claude-code"
	Title string // for people

	places func(System) []Place
	read   func(h Host, data []byte, from From) (*Listing, error)
	write  func(h Host, l *Listing) ([]byte, error)

	// For hosts whose file is JSON.
	list  []string                         // members that list servers
	take  func(*object, func(string))      // converts a server to mcp.json
	give  func(*object, func(string)) bool // converts it to the host's form, if possible
	spell spelling                         // how the host writes variables
	shuns bool                             // it starts every server in its file
}

// System holds the folders in which to look for files. All are absolute.
type System struct {
	OS     string // as runtime.GOOS
	Home   string
	Config string // %APPDATA%, ~/Library/Application Support or $XDG_CONFIG_HOME; see os.UserConfigDir
	Dir    string // of the project
}

// Place is a path where a host may have a file.
type Place struct {
	Path  string
	Scope string // "user" or "project"
}

// From describes the file that is read.
type From struct {
	Path string // for errors
	Dir  string // the folder of the project, whose servers Claude Code keeps in the user's file
}

// Listing is the content of one file.
type Listing struct {
	Servers []config.Entry    // in the form of mcp.json
	Inputs  []json.RawMessage // in the form of VS Code
	OS      string            // for Write: of the machine that will use the file, as runtime.GOOS
	Notes   []string          // remarks for people
}

func (l *Listing) note(format string, args ...any) {
	l.Notes = append(l.Notes, fmt.Sprintf(format, args...))
}

// about returns a function that notes something about a server.
func (l *Listing) about(name string) func(string) {
	return func(text string) { l.note("%q: %s", name, text) }
}

// All returns the hosts in the order for display.
func All() []Host {
	all := []Host{
		{Name: "claude-desktop", Title: "Claude Desktop", places: claudeDesktop, list: []string{"mcpServers"}, spell: verbatim, give: plainTypes, shuns: true},
		{Name: "claude-code", Title: "Claude Code", places: claudeCode, list: []string{"mcpServers"}, spell: shellStyle, take: takeCmd, give: claudeTypes, shuns: true},
		{Name: "cursor", Title: "Cursor", places: homely(".cursor/mcp.json"), list: []string{"mcpServers"}, spell: envStyle},
		{Name: "vscode", Title: "VS Code", places: vscode, list: []string{"servers"}, spell: inputStyle, give: vscodeTypes, shuns: true},
		{Name: "windsurf", Title: "Windsurf", places: windsurf, list: []string{"mcpServers"}, spell: envStyle, take: takeWindsurf, give: giveWindsurf},
		{Name: "zed", Title: "Zed", places: zed, list: []string{"context_servers"}, spell: verbatim, take: takeZed, give: giveZed},
		{Name: "goose", Title: "goose", places: goose, read: readGoose, write: writeGoose},
		{Name: "codex", Title: "Codex", places: homely(".codex/config.toml"), read: readCodex, write: writeCodex},
		{Name: "gemini", Title: "Gemini CLI", places: homely(".gemini/settings.json"), list: []string{"mcpServers"}, spell: dollarStyle, take: takeGemini, give: giveGemini, shuns: true},
	}
	for i := range all {
		if all[i].read == nil {
			all[i].read, all[i].write = readJSON, writeJSON
		}
	}
	return all
}

// Named returns the host called name.
func Named(name string) (Host, bool) {
	all := All()
	i := slices.IndexFunc(all, func(h Host) bool { return h.Name == name })
	if i < 0 {
		return Host{}, false
	}
	return all[i], true
}

// Guess returns the host of a file, by its path and content.
func Guess(path string, data []byte) Host {
	path = filepath.ToSlash(path)
	name := "claude-code"
	text, err := config.Standardize(path, data)
	has := func(member string) bool {
		_, ok := jsonx.Lookup(text, member)
		return err == nil && ok
	}
	switch {
	case strings.HasSuffix(path, ".toml"):
		name = "codex"
	case strings.HasSuffix(path, ".yaml"), strings.HasSuffix(path, ".yml"):
		name = "goose"
	case strings.HasSuffix(path, "/claude_desktop_config.json"):
		name = "claude-desktop"
	case strings.HasSuffix(path, ".cursor/mcp.json"):
		name = "cursor"
	case has("context_servers"):
		name = "zed"
	case has("servers"), has("mcp") && !has("mcpServers"):
		name = "vscode"
	case bytes.Contains(text, []byte(`"serverUrl"`)):
		name = "windsurf"
	case strings.HasSuffix(path, ".gemini/settings.json"), bytes.Contains(text, []byte(`"httpUrl"`)):
		name = "gemini"
	}
	h, _ := Named(name)
	return h
}

// Places returns the places of the host's files on a system, those of the user first.
func (h Host) Places(sys System) []Place { return h.places(sys) }

// Read reads the servers of a file. A file without servers is not an error.
func (h Host) Read(data []byte, from From) (*Listing, error) { return h.read(h, data, from) }

// Write returns a file of the host with only the servers, for people to use as the file or to
// merge into it. Features that the host does not have are noted in l.
func (h Host) Write(l *Listing) ([]byte, error) { return h.write(h, l) }

// homely returns the places of hosts that have the same path in the home folder and in a project.
func homely(path string) func(System) []Place {
	return func(sys System) []Place {
		return []Place{{filepath.Join(sys.Home, path), "user"}, {filepath.Join(sys.Dir, path), "project"}}
	}
}

func claudeDesktop(sys System) []Place {
	return []Place{{filepath.Join(sys.Config, "Claude", "claude_desktop_config.json"), "user"}}
}

func claudeCode(sys System) []Place {
	return []Place{{filepath.Join(sys.Home, ".claude.json"), "user"}, {filepath.Join(sys.Dir, ".mcp.json"), "project"}}
}

func vscode(sys System) []Place {
	user, project := filepath.Join(sys.Config, "Code", "User"), filepath.Join(sys.Dir, ".vscode")
	return []Place{
		{filepath.Join(user, "mcp.json"), "user"}, {filepath.Join(user, "settings.json"), "user"},
		{filepath.Join(project, "mcp.json"), "project"}, {filepath.Join(project, "settings.json"), "project"},
	}
}

func windsurf(sys System) []Place {
	return []Place{{filepath.Join(sys.Home, ".codeium", "windsurf", "mcp_config.json"), "user"}}
}

func zed(sys System) []Place {
	user := filepath.Join(sys.xdg(), "zed")
	if sys.OS == "windows" {
		user = filepath.Join(sys.Config, "Zed")
	}
	return []Place{{filepath.Join(user, "settings.json"), "user"}, {filepath.Join(sys.Dir, ".zed", "settings.json"), "project"}}
}

func goose(sys System) []Place {
	user := filepath.Join(sys.xdg(), "goose")
	if sys.OS == "windows" {
		user = filepath.Join(sys.Config, "Block", "goose", "config")
	}
	return []Place{{filepath.Join(user, "config.yaml"), "user"}}
}

// xdg returns the configuration folder of programs that use the same one on macOS as on other
// Unix systems.
func (sys System) xdg() string {
	if sys.OS == "darwin" {
		return filepath.Join(sys.Home, ".config")
	}
	return sys.Config
}
