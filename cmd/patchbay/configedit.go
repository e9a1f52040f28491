package main

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/servers"
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

// configAddCmd adds a server. Its variables and headers are those of --env and
// --header, which other verbs have too.
type configAddCmd struct {
	Name string `arg:"" help:"Name of the server."`
	URL  string `arg:"" optional:"" help:"URL of the server, or the name of a built-in server."`
	Type string `placeholder:"TYPE" help:"Transport of a URL: http or sse."`
	Cwd  string `name:"cwd" placeholder:"DIR" help:"Working directory of the command."`
	User bool   `help:"Change your own file, which applies everywhere."`
}

func (c *configAddCmd) Run(a *app) error {
	entry, err := c.entry(a)
	if err != nil {
		return err
	}
	path, err := a.edit(c.User, func(doc *config.Document, path string) error {
		if _, there := doc.Entry(c.Name); there {
			return usagef("%s already has a server %q", path, c.Name).hint(a.beside("config", "remove", c.Name))
		}
		return doc.Add(entry)
	})
	if err != nil {
		return err
	}
	a.print(fmt.Sprintf("added %s to %s", c.Name, path))
	if plain := c.plainSecrets(a); len(plain) > 0 {
		a.talk.Note("warning: %s now holds a secret as plain text (%s); write ${VARIABLE} instead and set that variable", path, strings.Join(plain, ", "))
		a.talk.Note("hint: patchbay config remove %s, then add it with single quotes around ${VARIABLE}", shell([]string{c.Name}))
	}
	a.afterEdit(path, []string{c.Name})
	return nil
}

// plainSecrets returns the names of values that the command line gives in plain text though they
// are named like secrets: variables, headers, arguments and parts of the URL.
func (c *configAddCmd) plainSecrets(a *app) []string {
	var out []string
	plain := func(value string) bool { return value != "" && !strings.Contains(value, "${") }
	for _, e := range a.Env {
		if name, value, _ := strings.Cut(e, "="); secrets.Name(name) && plain(value) {
			out = append(out, name)
		}
	}
	for _, h := range a.Header {
		if name, value, _ := strings.Cut(h, ":"); secrets.Header(name) && plain(strings.TrimSpace(value)) {
			out = append(out, strings.TrimSpace(name))
		}
	}
	before := ""
	for i, arg := range a.command {
		if i > 0 && (secrets.Part(before, arg) != "" || slices.ContainsFunc(secrets.URL(arg), plain)) {
			out = append(out, fmt.Sprintf("argument %d", i))
		}
		before = arg
	}
	if slices.ContainsFunc(secrets.URL(c.URL), plain) {
		out = append(out, "the URL")
	}
	return out
}

// entry returns the server that the command line describes.
func (c *configAddCmd) entry(a *app) (config.Entry, error) {
	var none config.Entry
	o := struct {
		Type    string            `json:"type,omitempty"`
		Command string            `json:"command,omitempty"`
		Args    []string          `json:"args,omitempty"`
		Env     map[string]string `json:"env,omitempty"`
		Cwd     string            `json:"cwd,omitempty"`
		URL     string            `json:"url,omitempty"`
		Headers map[string]string `json:"headers,omitempty"`
		Builtin string            `json:"builtin,omitempty"`
	}{Type: c.Type, Cwd: c.Cwd, URL: c.URL}
	switch {
	case strings.TrimSpace(c.Name) == "":
		return none, usagef("missing server name")
	case slices.Contains(servers.Names(), c.URL):
		if c.Type != "" || c.Cwd != "" || len(a.Header)+len(a.Env) > 0 {
			return none, usagef("--type, --cwd, --env and --header do not apply to a built-in server; its flags go after --").
				hint("patchbay help serve " + c.URL)
		}
		if _, err := newBuiltin(c.URL, a.command, nil); err != nil {
			return none, err
		}
		o.Builtin, o.URL, o.Args = c.URL, "", a.command
	case a.dashed && c.URL != "":
		return none, usagef("both %s and a command after -- are given; keep one", c.URL)
	case a.dashed:
		if c.Type != "" && c.Type != "stdio" || len(a.Header) > 0 {
			return none, usagef("--type and --header apply only to a URL")
		}
		o.Command, o.Args = a.command[0], a.command[1:]
	case c.URL == "":
		return none, usagef("missing URL or command of %q; a command goes after --", c.Name).
			hint(shell([]string{"patchbay", "config", "add", c.Name, "--", "COMMAND"}))
	default:
		u, err := url.Parse(c.URL)
		if !strings.Contains(c.URL, "${") && (err != nil || !isServerURL(c.URL) || u.Host == "") {
			if guess := asURL(c.URL); guess != "" {
				return none, usagef("%q is not a URL; did you mean %s?", c.URL, guess).hint(a.beside("config", "add", c.Name, guess))
			}
			if strings.Contains(c.URL, "://") {
				return none, usagef("%q is not an http, https, ws or wss URL with a host", c.URL).hint("patchbay help config add")
			}
			return none, usagef("%q is not an http, https, ws or wss URL, nor a built-in server; a command goes after --", c.URL).
				hint(shell([]string{"patchbay", "config", "add", c.Name, "--", c.URL}))
		}
		if c.Type != "" && c.Type != "http" && c.Type != "sse" {
			return none, usagef("--type %q is not http or sse", c.Type)
		}
		if len(a.Env) > 0 || c.Cwd != "" {
			return none, usagef("--env and --cwd apply only to a command")
		}
		if o.Type == "" && !strings.HasPrefix(c.URL, "ws") {
			o.Type = "http" // several hosts need the type
		}
	}
	for _, e := range a.Env {
		name, value, ok := strings.Cut(e, "=")
		if !ok || name == "" {
			return none, usagef("--env must be NAME=VALUE").hint("--env LOG_LEVEL=debug") // the value may be a secret
		}
		if o.Env == nil {
			o.Env = map[string]string{}
		}
		o.Env[name] = value
	}
	for _, h := range a.Header {
		name, value, ok := strings.Cut(h, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return none, usagef("--header must be NAME: VALUE").hint("--header 'Authorization: Bearer ${TOKEN}'")
		}
		if o.Headers == nil {
			o.Headers = map[string]string{}
		}
		o.Headers[name] = strings.TrimSpace(value)
	}
	raw, err := jsonx.Marshal(o)
	return config.Entry{Name: c.Name, Object: raw}, err
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
		return usagef("no mcp.json was found; looked for %s", strings.Join(a.places(), ", ")).hint("patchbay config add NAME -- COMMAND")
	}
	path, err := a.edit(c.User, func(doc *config.Document, path string) error {
		if names := namesOf(doc.Entries()); !slices.Contains(names, c.Name) {
			return usagef("%s has no server %q%s", path, c.Name, didYouMean(c.Name, names)).hint(a.beside("config", "list"))
		}
		return doc.Remove(c.Name)
	})
	if err != nil {
		return err
	}
	a.print(fmt.Sprintf("removed %s from %s", c.Name, path))
	return nil
}
