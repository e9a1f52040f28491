package main

import (
	"path/filepath"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/scaffold"
)

var newVerb = verb{
	name: "new", summary: "Write a new server or client in Go, with tests.",
	examples: []string{"patchbay new server weather", "patchbay new client github.com/you/asker"},
	minor:    true,
	verbs:    []*verb{&newServerVerb, &newClientVerb},
}

var newServerVerb = verb{
	name: "server", summary: "Write a new server in Go, with tests.", usage: "NAME [--dir DIR]",
	examples: []string{"patchbay new server weather", "patchbay new server github.com/you/weather --dir ."},
	details: `The server has a tool and a resource, and serves standard streams or HTTP. Its
tests run it on every revision and transport.`,
	command: func() command { return &newCmd{kind: "server"} },
}

var newClientVerb = verb{
	name: "client", summary: "Write a new client in Go, with tests.", usage: "NAME [--dir DIR]",
	examples: []string{"patchbay new client asker"},
	details:  `The client connects to a URL or a command, lists the tools and calls one.`,
	command:  func() command { return &newCmd{kind: "client"} },
}

// newCmd writes a project.
type newCmd struct {
	kind   string
	Name   string `arg:"" help:"Path of the Go module; its last element is the name."`
	Dir    string `placeholder:"DIR" help:"A folder that is absent, or has at most .git; default: ./NAME."`
	Source string `placeholder:"DIR" help:"Use the source of Patchbay in DIR; default: that of this build."`
}

func (c *newCmd) Run(a *app) error {
	if err := scaffold.CheckModule(c.Name); err != nil {
		return usagef("%w", err)
	}
	p, warning := scaffold.New(c.kind, c.Name, c.Dir, c.Source)
	names, err := p.Write()
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.printJSON(struct {
			Folder string   `json:"folder"`
			Files  []string `json:"files"` // in the folder
		}{p.Folder(), names})
	} else {
		for _, name := range names {
			a.print(filepath.Join(p.Folder(), name))
		}
	}
	if warning != "" {
		a.talk.Note("warning: %s", warning)
	}
	a.talk.Note("next: cd %s && %s", shell([]string{p.Folder()}), p.Setup())
	return err
}
