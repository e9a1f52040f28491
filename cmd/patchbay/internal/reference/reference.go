// Package reference writes down what a server offers, for people who have neither it nor a host: as Markdown, and in
// words for a terminal.
//
// # Guarantees
//
//   - The same server gives the same bytes.
//   - The texts of the server are shown as they are: none of their characters has a meaning in Markdown or HTML, those
//     that are invisible are named, and a text that is cut says how long it is. The descriptions stand in quotes, so that
//     they cannot pass for a part of the document.
//   - A description has at most 16 KiB, a cell of a table 500 bytes, and a schema 200 rows or 16 KiB.
package reference

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/openapi"
)

// Server is what a server offers, as it says itself.
type Server struct {
	Info      *mcp.ServerInfo
	Tools     []mcp.Tool
	Resources []mcp.Resource
	Templates []mcp.ResourceTemplate
	Prompts   []mcp.Prompt

	// Command returns a command of this program for the server, such as call and its words.
	Command func(words ...string) string
}

// OpenAPI returns a description for callers that do not speak MCP, of a program at a URL that serves the tools below a
// path, escaped. Security is that of [openapi.Description].
func (s *Server) OpenAPI(at, path string, security []string) *openapi.Description {
	i := s.Info
	return &openapi.Description{
		Title: cmp.Or(i.Title, i.Name), Version: i.Version, Text: cmp.Or(i.Description, i.Instructions),
		URL: at, Path: path, Security: security, Tools: s.Tools,
	}
}

// Hints returns the annotations of a tool in words, which are the server's own claims.
func Hints(h *mcp.ToolAnnotations) string {
	if h == nil {
		return ""
	}
	var out []string
	for _, hint := range []struct {
		value   *bool
		yes, no string
	}{{h.ReadOnly, "read-only", ""}, {h.Destructive, "destructive", "non-destructive"}, {h.Idempotent, "idempotent", ""}, {h.OpenWorld, "open-world", ""}} {
		switch {
		case hint.value == nil:
		case *hint.value:
			out = append(out, hint.yes)
		case hint.no != "":
			out = append(out, hint.no)
		}
	}
	return strings.Join(out, ", ")
}

// Capabilities returns the capabilities of a server in words: "tools (listChanged), logging".
func Capabilities(c mcp.Capabilities) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		var settings []string
		for setting, v := range jsonx.Members(c[name]) {
			if string(v) != "false" {
				settings = append(settings, string(setting))
			}
		}
		text := screen.OneLine(name)
		if len(settings) > 0 {
			text += " (" + screen.OneLine(strings.Join(settings, ", ")) + ")"
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}
