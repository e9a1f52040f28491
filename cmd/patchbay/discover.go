package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/mcp"
)

var discoverVerb = verb{
	name: "discover", summary: "Show the name, revision and features of a server.", usage: "[SERVER]",
	examples: []string{"patchbay discover -s everything", "patchbay discover --json -- npx -y @modelcontextprotocol/server-everything"},
	server:   oneServer | wordIsServer | programIsServer,
	details:  `Shows the revision in use, how it was negotiated, and the server's capabilities.`,
	command:  func() command { return new(discoverCmd) },
}

type discoverCmd struct{}

func (*discoverCmd) Run(a *app) error {
	p, err := a.open()
	if err != nil {
		return err
	}
	info := p.Server()
	if a.JSON {
		return a.printJSON(struct {
			Revision     mcp.Revision       `json:"revision"`
			How          string             `json:"how"`
			Revisions    []mcp.Revision     `json:"revisions"`
			Server       mcp.Implementation `json:"server"`
			Capabilities mcp.Capabilities   `json:"capabilities"`
			Instructions string             `json:"instructions,omitempty"`
		}{p.Revision(), p.Negotiation(), info.Revisions, info.Implementation, info.Capabilities, info.Instructions})
	}
	line := func(label, text string) {
		if text != "" {
			const indent = 14
			room := 0
			if a.tty.width > 0 {
				room = max(20, a.tty.width-indent)
			}
			text = strings.ReplaceAll(a.prose(text, room), "\n", "\n"+strings.Repeat(" ", indent))
			a.print(a.paint(pad(label, indent), "1") + text)
		}
	}
	name := oneLine(info.Name + " " + info.Version)
	if info.Title != "" && info.Title != info.Name {
		name += "  " + oneLine(info.Title)
	}
	line("server", name)
	line("about", info.Description)
	line("website", oneLine(info.WebsiteURL))
	line("protocol", string(p.Revision())+", found by "+oneLine(p.Negotiation()))
	if len(info.Revisions) > 1 {
		line("speaks", join(info.Revisions, ", "))
	}
	line("capabilities", capabilities(info.Capabilities))
	line("instructions", strings.TrimSpace(info.Instructions))
	return nil
}

// capabilities formats the capabilities of a server: "tools (listChanged), logging".
func capabilities(c mcp.Capabilities) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		var settings []string
		for setting, v := range jsonx.Members(c[name]) {
			if string(v) != "false" {
				settings = append(settings, string(setting))
			}
		}
		text := oneLine(name)
		if len(settings) > 0 {
			text += " (" + oneLine(strings.Join(settings, ", ")) + ")"
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}
