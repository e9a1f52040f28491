package main

import (
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/mcp"
)

var templatesVerb = verb{
	name: "templates", summary: "List resource templates.", usage: "[SERVER]",
	examples: []string{"patchbay templates -s everything"},
	server:   oneServer | wordIsServer | programIsServer,
	command:  func() command { return new(templatesCmd) },
}

type templatesCmd struct{}

func (*templatesCmd) Run(a *app) error {
	return items(a, feature.Templates, func(t *mcp.ResourceTemplate) row {
		return row{Name: t.URITemplate, About: about("", orName(t.Title, t.Name), t.Description)}
	})
}
