package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/reference"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/jsonrpc"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

var toolsVerb = verb{
	name: "tools", summary: "List tools, or show one with its arguments.", usage: "[TOOL] [SERVER]",
	examples: []string{"patchbay tools -s everything", "patchbay tools add -s everything", "patchbay tools -- npx -y @modelcontextprotocol/server-memory"},
	server:   oneServer | urlIsServer | programIsServer,
	details: `Lists a tool per line with its arguments, such as edit(path, edits: {old_text,
new_text}[], dry_run?). With TOOL, shows the members of its arguments and
result, and a call to paste.`,
	command: func() command { return new(toolsCmd) },
}

type toolsCmd struct {
	Name string `arg:"" optional:"" help:"Show this tool with its arguments."`
}

func (*toolsCmd) candidates(a *app, current string) (out []complete.Candidate) {
	if len(a.words) > 0 {
		return nil
	}
	return a.features(current, feature.Tools)
}

func (c *toolsCmd) Run(a *app) error {
	c.Name = a.serverAlone(c.Name)
	if c.Name == "" {
		return items(a, feature.Tools, func(t *mcp.Tool) row {
			return row{Name: arguments.Signature(t.Name, t.InputSchema, a.tty.width), About: about(t.Name, t.Title, t.Description)}
		})
	}
	c.Name = a.slashed(c.Name)
	p, err := a.open()
	if err != nil {
		return err
	}
	l, err := a.listFor(p, feature.Tools, c.Name)
	if err != nil {
		return err
	}
	raw, names := pick(l.items, c.Name)
	if raw == nil {
		return &fault{Code: exitAnswer, Err: fmt.Errorf("%s has no tool %q%s", a.serverName(), c.Name, didYouMean(c.Name, names)), Next: a.other("tools")}
	}
	if a.JSON {
		a.print(a.shown(string(raw)))
		return nil
	}
	t, err := decode[mcp.Tool](raw)
	if err != nil {
		return fmt.Errorf("invalid tool %q: %w", c.Name, err)
	}
	a.head(t.Name, t.Title, t.Description)
	form, err := schema.FormOf(t.InputSchema)
	if err != nil {
		a.print("\narguments (JSON Schema):\n" + a.shownJSON(t.InputSchema))
	} else {
		a.outline("arguments", "no arguments", t.InputSchema, true)
		if t.OutputSchema != nil {
			a.outline("result", "result: an object", t.OutputSchema, false)
		}
		if command := arguments.Call(a.other, t.Name, form, t.InputSchema); command != "" {
			a.print("\nexample:\n  " + command)
		}
	}
	if hints := reference.Hints(t.Annotations); hints != "" {
		a.print("\nhints: " + hints)
	}
	return nil
}

// pick returns the item of a list with a name, and all names.
func pick(items []json.RawMessage, name string) (raw json.RawMessage, names []string) {
	for _, item := range items {
		v, _ := jsonx.Lookup(item, "name")
		if n, err := jsonx.Unquote(v); err == nil && n == name {
			return item, jsonx.Texts(items, "name")
		}
	}
	return nil, jsonx.Texts(items, "name")
}

// head prints the name, title and description of an entry.
func (a *app) head(name, title, description string) {
	if title = oneLine(title); title == "" || screen.SameWords(title, name) {
		title = ""
	} else {
		title = "  " + title
	}
	a.print(a.paint(oneLine(name), "1") + title)
	if description = strings.TrimSpace(description); description != "" {
		a.print(a.prose(description, a.tty.width))
	}
}

// unknown explains the error of a call if the server does not have the tool.
func (a *app) unknown(p *launch.Session, of feature.List, name string, err error) error {
	var rpc *mcp.Error
	if a.toldUnusable[name] || !errors.As(err, &rpc) || (rpc.Code != jsonrpc.CodeInvalidParams && rpc.Code != jsonrpc.CodeMethodNotFound) {
		return err
	}
	l, listErr := a.listOnce(p, of)
	if listErr != nil {
		return err
	}
	raw, names := pick(l.items, name)
	if raw != nil {
		return &fault{Err: err, Next: a.other(of.Member, name)} // report finds the code and the words
	}
	near := didYouMean(strings.TrimPrefix(name, a.serverName()+"/"), names)
	return &fault{Code: exitAnswer, Err: fmt.Errorf("%s has no %s %q%s", a.serverName(), strings.TrimSuffix(of.Member, "s"), name, near), Next: a.other(of.Member)}
}
