package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/internal/feature"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/launch"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

var callVerb = verb{
	name: "call", summary: "Call a tool.", usage: "TOOL [ARGUMENT ...] [SERVER]",
	examples: []string{
		"patchbay call everything/echo message=hi",
		"patchbay call add a=2 b=3 -s http://127.0.0.1:7420/mcp",
		"patchbay call read_text_file path=notes.txt -- mcp-server-filesystem .",
		`patchbay call search '{"query": "cords"}' tags=a tags=b body=@mail.txt`,
	},
	server: oneServer | firstURLIsServer,
	details: `Arguments, merged from left to right:
  key=value    typed by the tool's schema; repeat a key for a list
  key=@FILE    the contents of a file
  key:=JSON    any JSON, not checked
  JSON         an object of all arguments, not checked; @FILE.json; - for stdin

The server's questions are asked here, or answered by --on-elicit, --on-sample
and --root. Prints the text of the result, else its structured content.`,
	command: func() command { return new(callCmd) },
}

type callCmd struct {
	Tool   string   `arg:"" optional:"" help:"Name of the tool, or SERVER/TOOL."`
	Args   []string `arg:"" optional:"" name:"argument" help:"key=value, key:=JSON, key=@FILE, JSON, @FILE or -."`
	Output string   `short:"o" placeholder:"FILE" help:"Save the first image, sound or blob, or else the text."`
}

func (*callCmd) candidates(a *app, current string) (out []complete.Candidate) {
	if len(a.words) == 0 {
		return a.features(current, feature.Tools)
	}
	return a.toolArguments(current)
}

func (c *callCmd) Run(a *app) error {
	if c.Tool == "" {
		return a.which(feature.Tools)
	}
	c.Tool = a.slashed(c.Tool)
	words, err := a.readArguments(c.Args)
	if err != nil {
		return err
	}
	p, err := a.open()
	if err != nil {
		return err
	}
	args, err := c.arguments(a, p, words)
	if err != nil {
		return err
	}
	params := struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}{c.Tool, args}
	raw, err := p.Raw(a.ctx, "tools/call", params, a.listening()...)
	a.talk.EndProgress()
	if err != nil {
		return a.unknown(p, feature.Tools, c.Tool, err)
	}
	failed, _ := jsonx.Lookup(raw, "isError")
	if a.JSON {
		a.print(a.shown(string(raw)))
	} else if err := a.showResult(raw, c.Output); err != nil {
		return err
	}
	if string(failed) == "true" {
		return a.failedTool(p, c.Tool)
	}
	return nil
}

// failedTool returns the error of a failed tool, or of a tool that the server does not have. Some
// servers answer a wrong name with a result.
func (a *app) failedTool(p *launch.Session, name string) error {
	l, err := a.listOnce(p, feature.Tools) // the call has waited for starting servers already
	if err != nil {
		return errTool
	}
	_, partial := jsonx.LookupPath(l.raw, "_meta", "dev.patchbay/starting")
	if raw, names := pick(l.items, name); raw == nil && !partial {
		return &fault{Code: exitAnswer, Err: fmt.Errorf("%s has no tool %q%s", a.serverName(), name, didYouMean(name, names)), Next: a.other("tools")}
	}
	return errTool
}

// arguments converts the words of the command line by the schema of the tool. It fetches the schema
// only if a word or the session needs it.
func (c *callCmd) arguments(a *app, p *launch.Session, words []arguments.Word) (json.RawMessage, error) {
	var form *schema.Form
	var input json.RawMessage
	// With 2026-07-28 over HTTP the schema of a tool (x-mcp-header) says which arguments must also be
	// sent as headers, and bad annotations make the tool unusable. So the tools are listed first.
	needs, headers := arguments.NeedSchema(words), a.server.Command == "" && !p.Revision().Sessions()
	if needs || headers {
		l, err := a.listFor(p, feature.Tools, c.Tool)
		switch {
		case err != nil && needs:
			return nil, err
		case err != nil || !needs:
			return arguments.Build(words, nil, nil, a.other("tools", c.Tool))
		}
		if raw, _ := pick(l.items, c.Tool); raw != nil {
			input, _ = jsonx.Lookup(raw, "inputSchema")
			if form, err = schema.FormOf(input); err != nil {
				a.talk.Note("warning: guessing the types of arguments, as the input schema of %s is unreadable: %v", c.Tool, err)
				form = nil
			}
		}
	}
	return arguments.Build(words, form, input, a.other("tools", c.Tool))
}

// listening returns options that show the progress and log of a call.
func (a *app) listening() []mcp.CallOption {
	if a.Quiet {
		return nil
	}
	return []mcp.CallOption{mcp.OnProgress(a.talk.Progress), mcp.OnLog(a.talk.Log)}
}

// logLevel returns the minimum level of the server's log to show. A verb that only lists sets none,
// because that takes another request up to 2025-11-25.
func (a *app) logLevel() slog.Leveler {
	switch {
	case a.Quiet, slices.Contains([]string{"tools", "resources", "templates", "prompts", "discover"}, a.verb):
		return nil
	case a.Verbose:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}
