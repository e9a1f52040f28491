package entry

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/serverid"
)

// ShortName returns the name of a server for people and models: its name in mcp.json, or a short
// one made from its URL or command. The name is none of taken.
func ShortName(s config.Server, taken []string) string {
	name := s.Name
	switch {
	case s.Source != "" || s.Builtin != "":
		return name
	case s.URL != "":
		if u, err := url.Parse(s.URL); err == nil {
			name = u.Hostname()
		}
	default:
		name = strings.TrimSuffix(filepath.Base(s.Command), ".exe")
		// "npx -y @modelcontextprotocol/server-memory", "node server.js", "go run ./x"
		if i := slices.IndexFunc(s.Args, func(arg string) bool { return !strings.HasPrefix(arg, "-") && arg != "run" }); i >= 0 && slices.Contains(runners, name) {
			name = filepath.Base(filepath.FromSlash(s.Args[i]))
		}
	}
	name = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, name[:min(len(name), 30)]), "-_")
	if name == "" {
		name = "server"
	}
	free := name
	for i := 2; slices.Contains(taken, free); i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	return free
}

// Short returns a server with its short name.
func Short(s config.Server) config.Server {
	s.Name = ShortName(s, nil)
	return s
}

// runners are commands that say less about a server than their arguments.
var runners = []string{"npx", "bunx", "uvx", "pipx", "node", "bun", "deno", "python", "python3", "ruby", "go", "uv", "docker", "podman"}

// Shown returns the name of a server, and its URL or command without secrets.
func Shown(s config.Server) string { return serverid.Shown(s) }
