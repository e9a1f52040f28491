package entry

import (
	"testing"

	"github.com/patchbay-dev/patchbay/config"
)

func TestShortName(t *testing.T) {
	var names []string
	for _, tt := range []struct {
		server config.Server
		want   string
	}{
		{config.Server{Name: "my files", Source: "mcp.json:3"}, "my files"},
		{config.Server{Name: "http://127.0.0.1:7420/mcp", URL: "http://127.0.0.1:7420/mcp"}, "127-0-0-1"},
		{config.Server{Name: "http://127.0.0.1:7421/mcp", URL: "http://127.0.0.1:7421/mcp"}, "127-0-0-1-2"},
		{config.Server{Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-memory"}}, "server-memory"},
		{config.Server{Command: "/opt/my server", Args: []string{"--token", "secret"}}, "my-server"},
		{config.Server{Command: "日本"}, "server"},
	} {
		name := ShortName(tt.server, names)
		if names = append(names, name); name != tt.want {
			t.Errorf("ShortName(%q) = %q, want %q", tt.server.CommandLine(), name, tt.want)
		}
	}
}
