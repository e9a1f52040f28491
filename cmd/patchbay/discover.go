package main

import (
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/reference"
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
	line("capabilities", reference.Capabilities(info.Capabilities))
	line("instructions", strings.TrimSpace(info.Instructions))
	return nil
}
