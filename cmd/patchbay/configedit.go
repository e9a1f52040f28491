package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/config"
)

var configAddVerb = verb{
	name: "add", summary: "Add a server to mcp.json.", usage: "NAME URL|BUILTIN, or config add NAME -- COMMAND",
	examples: []string{
		"patchbay config add memory -- npx -y @modelcontextprotocol/server-memory",
		"patchbay config add web https://example.com/mcp --header 'X-Key: ${KEY}'",
		"patchbay config add files --user --env LOG=1 -- mcp-server-filesystem .",
	},
	server: wordsBehindDashes,
	details: `Adds the server to mcp.json, or to a new one here. Nothing else in the file
changes. Values may use ${NAME}, ${NAME:-default} and ${input:ID}.`,
	command: func() command { return new(configAddCmd) },
}

// configAddCmd adds a server.
type configAddCmd struct{ entry.Add }

func (c *configAddCmd) Run(a *app) error {
	line := &entry.Line{Env: a.Env, Header: a.Header, Command: a.command, Dashed: a.dashed, Beside: a.beside, Builtin: func(name string, args []string) error {
		_, err := newBuiltin(name, args, nil)
		return err
	}}
	added, err := c.Entry(line)
	if err != nil {
		return err
	}
	path, err := a.edit(c.User, func(doc *config.Document, path string) error {
		if _, there := doc.Entry(c.Name); there {
			return usagef("%s already has a server %q", path, c.Name).Hint(a.beside("config", "remove", c.Name))
		}
		return doc.Add(added)
	})
	if err != nil {
		return err
	}
	a.print(fmt.Sprintf("added %s to %s", c.Name, path))
	if plain := c.PlainSecrets(line); len(plain) > 0 {
		a.talk.Note("warning: %s now holds a secret as plain text (%s); write ${VARIABLE} instead and set that variable", path, strings.Join(plain, ", "))
		a.talk.Note("hint: patchbay config remove %s, then add it with single quotes around ${VARIABLE}", shell([]string{c.Name}))
	}
	a.afterEdit(path, []string{c.Name})
	return nil
}

// afterEdit prints the faults of servers that were just written, such as a variable that is not set
// yet.
func (a *app) afterEdit(path string, names []string) {
	_, faults, err := config.Inspect(path, nil)
	if err != nil {
		return // the file was just written; the next reader gets the error
	}
	for _, p := range faults {
		for _, name := range names {
			if p.Server == name {
				a.talk.Note("warning: %s", p)
			}
		}
	}
}

var configRemoveVerb = verb{
	name: "remove", summary: "Remove a server from mcp.json.", usage: "NAME",
	examples: []string{"patchbay config remove memory"},
	details:  `Nothing else in the file changes. A comment above the server stays.`,
	command:  func() command { return new(configRemoveCmd) },
}

// configRemoveCmd removes a server.
type configRemoveCmd struct {
	Name string `arg:"" help:"The server."`
	User bool   `help:"Change your own file, which applies everywhere."`
}

func (*configRemoveCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	return a.configServers()
}

func (c *configRemoveCmd) Run(a *app) error {
	if found, err := a.configPath(); err == nil && found == "" && !c.User {
		return usagef("no mcp.json was found; looked for %s", strings.Join(a.places(), ", ")).Hint("patchbay config add NAME -- COMMAND")
	}
	path, err := a.edit(c.User, func(doc *config.Document, path string) error {
		if names := namesOf(doc.Entries()); !slices.Contains(names, c.Name) {
			return usagef("%s has no server %q%s", path, c.Name, didYouMean(c.Name, names)).Hint(a.beside("config", "list"))
		}
		return doc.Remove(c.Name)
	})
	if err != nil {
		return err
	}
	a.print(fmt.Sprintf("removed %s from %s", c.Name, path))
	return nil
}
