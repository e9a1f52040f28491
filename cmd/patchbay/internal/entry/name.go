package entry

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
)

// ShortName is what people and models know a server by: the name that it has in mcp.json, or a
// short one made of its URL or command, and no other server's.
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

// runners are commands that say less of a server than what they run.
var runners = []string{"npx", "bunx", "uvx", "pipx", "node", "bun", "deno", "python", "python3", "ruby", "go", "uv", "docker", "podman"}

// Target is the name of a server, and what it is reached by.
func Target(s config.Server) string {
	switch {
	case s.URL != "":
		return s.Name + " " + s.URL
	case s.Builtin != "":
		return s.Name + " built-in " + screen.Shell(append([]string{s.Builtin}, s.Args...)) + " in " + folderOf(s)
	}
	return s.Name + " " + screen.Shell(append([]string{s.Command}, s.Args...)) + " in " + folderOf(s)
}

func folderOf(s config.Server) string {
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return s.Dir
	}
	return dir
}
