package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/allow"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chat"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chatmemory"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/control"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

var chatVerb = verb{
	name: "chat", summary: "Chat with a language model that can use the tools of servers.", usage: "[MESSAGE] [--model MODEL] [--resume ID] [SERVER ...]",
	examples: []string{"patchbay chat -m openai/gpt-5-mini", "patchbay chat -s shop -s sqlite", "patchbay chat -- npx -y @modelcontextprotocol/server-memory"},
	server:   manyServers | urlIsServer,
	details: `Shows each tool call of the model. A call needs your approval unless --allow
names the tool, the tool is read-only and its server trusted, or you allowed it
before. Servers' questions appear as forms. /help lists the commands; ctrl-C
cancels, and twice quits. Without a model chat is a console: /call, /read and
/prompt. Without a terminal it reads lines. docs/host.md has the rest.

` + helpServers,
	command: func() command { return new(chatCmd) },
}

// chatCmd is a conversation with a language model that has the tools of servers.
type chatCmd struct {
	modelFlags
	callRules
	chatmemory.Flags
	control.Options
	Message  []string `arg:"" optional:"" help:"First message."`
	Allow    []string `sep:"none" placeholder:"SERVER/TOOL" help:"Skip approval, also \"… if CONDITION\" (repeatable)."`
	NoMemory bool     `name:"no-memory" help:"Do not store this conversation."`
}

func (c *chatCmd) Run(a *app) error {
	if a.JSON {
		return usagef("chat has no JSON output").Hint("patchbay help run")
	}
	if c.NoMemory && (c.Resume != "" || c.Continue) {
		return usagef("--no-memory excludes --resume and --continue")
	}
	if err := allow.Check(c.Allow, a.Servers); err != nil {
		return err
	}
	begin, err := c.Begin()
	if err != nil {
		return err
	}
	if err := a.deploy(&c.governed, &c.limits, nil); err != nil {
		return err
	}
	m, err := a.model(c.modelFlags)
	none := errors.Is(err, host.ErrNoModel)
	if err != nil && !none {
		return err
	}
	plan, err := a.upPlan(false)
	if err != nil {
		return err
	}
	h, err := a.newHost(&c.callRules, plan.servers)
	if err != nil {
		return err
	}
	h.Allow = c.Allow
	o := chat.Options{
		Title: "patchbay " + Version, Color: a.tty.color, OpenModel: a.openModel, Offered: a.offered,
		Arguments: a.typed, Visit: login.OpenBrowser, Bell: os.Getenv("PATCHBAY_BELL"),
		Lines: !a.tty.in || !a.tty.out || os.Getenv("TERM") == "dumb",
	}
	o.First, o.Begin = strings.Join(c.Message, " "), begin
	if o.System, err = a.instruct(h, c.modelFlags, "", true); err != nil {
		return err
	}
	set, err := a.models()
	if err != nil {
		return err
	}
	o.Models = set.Names()
	if none {
		f := a.noModel(set)
		o.NoModel = fmt.Sprintf("%s; /call, /read and /prompt work without one.\nTo use a model: %s", advice.Words(f), f.Next)
	} else {
		h.Model, h.Sampler = m, a.sampler(m)
	}
	if !c.NoMemory {
		kept := new(chatmemory.Memory)
		a.atEnd = append([]func(){kept.Close}, a.atEnd...) // after the host, which may still keep entries
		o.Memory, o.History = kept, chatmemory.History()
		if o.Choose = c.Choose() && !o.Lines; !o.Choose {
			if o.Resume, err = kept.ID(a.ctx, c.Flags); err != nil {
				return err
			}
		}
	}
	if o.Lines {
		return c.lines(a, h, plan, o)
	}
	ui := chat.New(h.Host, o)
	if a.OnElicit != "" {
		answer, err := a.elicitation()
		if err != nil {
			return err
		}
		h.Person = &preset{Person: ui, answer: answer}
	}
	if err := h.start(plan.servers); err != nil {
		return err
	}
	// From now on, messages from the program are part of the chat.
	defer a.talk.Divert(ui)()
	ctx, stop := signal.NotifyContext(a.ctx, syscall.SIGHUP)
	defer stop()
	return ui.Run(ctx, a.stdin.(*os.File), a.rawOut.(*os.File))
}

// lines runs the chat without a terminal.
func (c *chatCmd) lines(a *app, h *hosting, plan *plan, o chat.Options) error {
	who, err := a.newPerson(false, nil)
	if err != nil {
		return err
	}
	o.Color, o.Person = false, who
	h.Model = a.noted(h.Model)
	o.OpenModel = func(name string) (model.Model, error) {
		m, err := a.openModel(name)
		return a.noted(m), err
	}
	ui := chat.New(h.Host, o)
	if o.NoModel != "" {
		a.talk.Note("%s", o.NoModel)
	}
	if err := h.start(plan.servers); err != nil {
		return err
	}
	if err := h.wait(a.ctx); err != nil {
		return err
	}
	read := func(ctx context.Context) (string, error) {
		if a.tty.in && a.tty.err {
			a.talk.Say("> ")
		}
		return a.keyboard().Line(ctx)
	}
	return ui.Lines(a.ctx, read, flushing{a.out})
}

// flushing flushes after each write.
type flushing struct{ w *bufio.Writer }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	return n, errors.Join(err, f.w.Flush())
}

// typed converts words that were typed for a tool to arguments, as call does.
func (a *app) typed(words []string, tool *mcp.Tool) (json.RawMessage, error) {
	if slices.Contains(words, "-") {
		return nil, errors.New("chat reads your keys from standard input; use @FILE")
	}
	read, err := a.readArguments(words)
	if err != nil {
		return nil, err
	}
	form, err := schema.FormOf(tool.InputSchema)
	if err != nil {
		form = nil // types are guessed
	}
	args, err := arguments.Build(read, form, tool.InputSchema, "")
	var f *fault
	if errors.As(err, &f) && f.Detail != "" {
		err = fmt.Errorf("%w:\n%s", err, f.Detail)
	}
	return args, err
}
