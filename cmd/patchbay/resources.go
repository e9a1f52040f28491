package main

import (
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/mcp"
)

var resourcesVerb = verb{
	name: "resources", summary: "List resources.", usage: "[SERVER]",
	examples: []string{"patchbay resources -s everything"},
	server:   oneServer | wordIsServer | programIsServer,
	command:  func() command { return new(resourcesCmd) },
}

type resourcesCmd struct{}

func (*resourcesCmd) Run(a *app) error {
	return items(a, feature.Resources, func(r *mcp.Resource) row {
		return row{Name: r.URI, About: about("", orName(r.Title, r.Name), r.Description)}
	})
}

func orName(title, name string) string {
	if title == "" {
		return name
	}
	return title
}
