package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// Calls that a person makes by hand need no approval.

// callTool calls a tool: /call SERVER/TOOL key=value ...
func (u *ui) callTool(_ string, words []string) tea.Cmd {
	if len(words) == 0 {
		u.note("which tool? /call SERVER/TOOL key=value; /tools lists them")
		return nil
	}
	server, tool, ok := strings.Cut(words[0], "/")
	if !ok {
		u.note("%q is not SERVER/TOOL", screen.Cut(words[0], 60))
		return nil
	}
	t := u.talk
	u.run("calling "+words[0], func(ctx context.Context) error { return u.c.call(ctx, t, server, tool, words[1:]) })
	return nil
}

// call makes a call, and reports the same events as a conversation.
func (c *Chat) call(ctx context.Context, t *talk, server, tool string, words []string) error {
	listed, err := c.tool(ctx, server, tool)
	if err != nil {
		return err
	}
	args, err := c.arguments(words, listed)
	if err != nil {
		return err
	}
	e := &host.CallEvent{ID: fmt.Sprintf("by hand %d", time.Now().UnixNano()), Server: server, Tool: tool, Arguments: args, By: "person"}
	tell := func(kind host.EventKind, text string, e host.CallEvent) {
		c.mail.put(happened{t, host.Event{Kind: kind, Time: time.Now(), Text: text, Call: &e}})
	}
	tell(host.Started, "", *e)
	began := time.Now()
	var res *mcp.ToolResult
	err = c.h.Use(ctx, server, func(s *mcp.Session) error {
		var err error
		res, err = s.CallTool(ctx, tool, args,
			mcp.OnProgress(func(done, total float64, message string) {
				moved := *e
				moved.Done, moved.Total = done, total
				tell(host.Progress, message, moved)
			}),
			mcp.OnLog(func(m mcp.LogMessage) { tell(host.Logged, screen.Plain(m.Data), *e) }))
		return err
	})
	e.Took, e.Outcome = host.Millis(time.Since(began)), host.Succeeded
	switch {
	case ctx.Err() != nil:
		e.Outcome = host.Cancelled
	case err != nil:
		e.Outcome, e.Parts = host.Broken, []model.Part{{Text: err.Error()}}
	default:
		if res.IsError {
			e.Outcome = host.Failed
		}
		e.Parts = parts(res)
	}
	tell(host.Resulted, "", *e)
	c.mail.put(func(u *ui) { u.inFull(e.Parts) })
	return nil
}

// tool returns a tool of a server.
func (c *Chat) tool(ctx context.Context, server, name string) (*mcp.Tool, error) {
	var found *mcp.Tool
	err := c.h.Use(ctx, server, func(s *mcp.Session) error {
		for t, err := range s.Tools(ctx) {
			if err != nil {
				return err
			}
			if t.Name == name {
				found = t
				return nil
			}
		}
		return fmt.Errorf("server %q has no tool %q; /tools lists them", server, name)
	})
	return found, err
}

func (c *Chat) arguments(words []string, tool *mcp.Tool) (json.RawMessage, error) {
	switch {
	case c.o.Arguments != nil:
		return c.o.Arguments(words, tool)
	case len(words) == 0:
		return json.RawMessage("{}"), nil
	case len(words) == 1 && json.Valid([]byte(words[0])):
		return json.RawMessage(words[0]), nil
	}
	return nil, errors.New("the arguments must be a JSON object")
}

// parts converts a result to the parts of a conversation.
func parts(res *mcp.ToolResult) []model.Part {
	var out []model.Part
	text := false
	for _, b := range res.Content {
		switch b := b.(type) {
		case mcp.ImageContent:
			out = append(out, model.Part{Media: &model.Media{MIME: b.MIMEType, Data: b.Data}})
		case mcp.AudioContent:
			out = append(out, model.Part{Media: &model.Media{MIME: b.MIMEType, Data: b.Data}})
		default:
			text = true
			out = append(out, model.Part{Text: screen.Content([]mcp.Content{b})})
		}
	}
	if raw, err := json.Marshal(res.Structured); err == nil && !text && res.Structured != nil {
		out = append(out, model.Part{Text: string(raw)})
	}
	return out
}

// inFull prints a result that is longer than its preview.
func (u *ui) inFull(list []model.Part) {
	text := partsText(list)
	if lines := nonBlank(text); len(lines) <= preview+1 && !screen.IsJSON(text) {
		return
	}
	u.print(append(u.look.text(text), "")...)
}

// readResource reads a resource: /read SERVER:URI.
func (u *ui) readResource(rest string, _ []string) tea.Cmd {
	server, uri, ok := strings.Cut(strings.TrimPrefix(rest, "@"), ":")
	if !ok || uri == "" {
		u.note("which resource? /read SERVER:URI; /resources lists them")
		return nil
	}
	if strings.HasPrefix(uri, "//") { // the URI alone
		if servers := u.c.h.Servers(); len(servers) == 1 {
			server, uri = servers[0].Name, server+":"+uri
		} else {
			u.note("which server has it? /read SERVER:%s", screen.OneLine(rest))
			return nil
		}
	}
	u.run("reading "+uri, func(ctx context.Context) error {
		var res *mcp.ReadResult
		err := u.c.h.Use(ctx, server, func(s *mcp.Session) error {
			var err error
			res, err = s.ReadResource(ctx, uri)
			return err
		})
		if err != nil {
			return err
		}
		u.c.mail.put(func(u *ui) {
			for _, c := range res.Contents {
				u.print(u.look.paint(screen.Cut(screen.OneLine(c.URI+"  "+c.MIMEType), u.look.width), dim))
				if c.Blob != nil {
					u.print("  "+mediaWord(&model.Media{MIME: screen.OneLine(c.MIMEType), Data: c.Blob}), "")
					continue
				}
				u.print(append(u.look.text(c.Text), "")...)
			}
		})
		return nil
	})
	return nil
}

// getPrompt shows the messages of a prompt: /prompt SERVER:PROMPT key=value ...
func (u *ui) getPrompt(_ string, words []string) tea.Cmd {
	server, name, ok := "", "", false
	if len(words) > 0 {
		server, name, ok = strings.Cut(strings.TrimPrefix(words[0], "/"), ":")
	}
	if !ok || name == "" {
		u.note("which prompt? /prompt SERVER:PROMPT key=value; /prompts lists them")
		return nil
	}
	args := map[string]string{}
	for _, w := range words[1:] {
		key, value, ok := strings.Cut(w, "=")
		if !ok {
			u.note("%q is not key=value", screen.Cut(w, 60))
			return nil
		}
		args[key] = value
	}
	u.run("getting "+name, func(ctx context.Context) error {
		var res *mcp.PromptResult
		err := u.c.h.Use(ctx, server, func(s *mcp.Session) error {
			var err error
			res, err = s.GetPrompt(ctx, name, args)
			return err
		})
		if err != nil {
			return err
		}
		u.c.mail.put(func(u *ui) {
			for _, m := range res.Messages {
				u.print(u.look.paint(screen.OneLine(m.Role), cyan))
				u.print(append(u.look.text(screen.Content([]mcp.Content{m.Content})), "")...)
			}
		})
		return nil
	})
	return nil
}

// offerCall completes a tool, and then its arguments.
func offerCall(ctx context.Context, c *Chat, words []string) []item {
	if len(words) == 0 {
		return toolItems(ctx, c)
	}
	var out []item
	for _, t := range c.h.AllTools(ctx) {
		if t.Server+"/"+t.Tool.Name != words[0] {
			continue
		}
		form, err := schema.FormOf(t.InputSchema)
		if err != nil {
			return nil
		}
		for _, f := range form.Fields {
			says := f.Description
			if f.Required {
				says = "required " + says
			}
			out = append(out, item{f.Name + "=", says})
		}
	}
	return out
}

func offerResources(ctx context.Context, c *Chat, words []string) []item {
	if len(words) > 0 {
		return nil
	}
	var out []item
	for _, r := range c.h.Resources(ctx) {
		out = append(out, item{r.Server + ":" + r.URI, orTitle(r.Title, r.Name)})
	}
	return out
}

// offerPrompts completes a prompt, and then its arguments.
func offerPrompts(ctx context.Context, c *Chat, words []string) []item {
	var out []item
	for _, p := range c.h.Prompts(ctx) {
		name := p.Server + ":" + p.Name
		switch {
		case len(words) == 0:
			out = append(out, item{name, orTitle(p.Title, p.Description)})
		case name == words[0]:
			for _, a := range p.Arguments {
				out = append(out, item{a.Name + "=", a.Description})
			}
		}
	}
	return out
}
