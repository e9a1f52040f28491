package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/patchbay-dev/patchbay/auth/login"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chat"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/memory"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

var chatVerb = verb{
	name: "chat", summary: "Talk to a language model that has the tools of servers.", usage: "[MESSAGE] [--model MODEL] [--resume ID] [SERVER ...]",
	examples: []string{"patchbay chat -m openai/gpt-5-mini", "patchbay chat -s shop -s sqlite", "patchbay chat -- npx -y @modelcontextprotocol/server-memory"},
	server:   manyServers | urlIsServer,
	details: `Each call of the model is shown. It needs your approval unless --allow names the
tool, it only reads and its server is trusted, or you allowed it before.
Questions of servers appear as forms. /help lists the commands; ctrl-C cancels,
twice it leaves. Without a model chat is a console: /call, /read and /prompt.
Without a terminal it reads lines and prints their results.

` + helpServers + ` docs/host.md has the rest.`,
	command: func() command { return new(chatCmd) },
}

// chatCmd is a conversation with a language model that has the tools of servers.
type chatCmd struct {
	modelFlags
	callRules
	Message  []string `arg:"" optional:"" help:"Begin with this message."`
	Allow    []string `sep:"none" placeholder:"SERVER/TOOL" help:"Call without approval; * is any text (repeatable)."`
	Resume   string   `placeholder:"ID" help:"Continue an earlier conversation."`
	NoMemory bool     `name:"no-memory" help:"Store nothing of this conversation."`
}

func (c *chatCmd) Run(a *app) error {
	if a.JSON {
		return usagef("chat prints no JSON").hint("patchbay help run")
	}
	if c.NoMemory && c.Resume != "" {
		return usagef("--no-memory keeps and finds no conversation to resume")
	}
	if err := checkAllow(c.Allow); err != nil {
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
	h, err := a.newHost()
	if err != nil {
		return err
	}
	if err := c.apply(a, h, plan.servers); err != nil {
		return err
	}
	h.Allow = c.Allow
	o := chat.Options{
		Title: "patchbay " + Version, Color: a.tty.color, OpenModel: a.openModel,
		Arguments: a.typed, Visit: login.OpenBrowser, Resume: c.Resume,
	}
	o.First = strings.Join(c.Message, " ")
	if o.System, err = a.system(c.modelFlags, ""); err != nil {
		return err
	}
	set, err := a.models()
	if err != nil {
		return err
	}
	o.Models = set.names()
	if none {
		f := a.noModel(set)
		o.NoModel = fmt.Sprintf("%v: /call, /read and /prompt work by hand.\nFor a model: %s", f, f.next)
	} else {
		h.Model, h.Sampler = m, a.sampler(m)
	}
	if !c.NoMemory {
		kept := &remembering{}
		a.atEnd = append([]func(){kept.close}, a.atEnd...) // after the host, which may still keep entries
		o.Memory, o.History = kept, historyFile()
	}
	if o.Lines = !a.tty.in || !a.tty.out || os.Getenv("TERM") == "dumb"; o.Lines {
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
		return nil, errors.New("standard input is where you type; @FILE reads a file")
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
	if errors.As(err, &f) && f.detail != "" {
		err = fmt.Errorf("%w:\n%s", err, f.detail)
	}
	return args, err
}

// historyFile returns the file with the input history of chat, beside the conversations.
func historyFile() string {
	path, err := memory.DefaultPath()
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(path), "history.jsonl")
}
