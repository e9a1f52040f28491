package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/arguments"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/events"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
	"github.com/patchbay-dev/patchbay/schema"
)

var runVerb = verb{
	name: "run", summary: "Run a task with a language model and the tools of servers.", usage: "TASK [--model MODEL] [--allow SERVER/TOOL ...] [SERVER ...]",
	examples: []string{
		`patchbay run "which tables are there?" -m openai/gpt-5-mini -s sqlite`,
		`patchbay run "order two stoves for Amara" -s shop --allow 'shop/*'`,
		`patchbay run "what does this change?" --json < diff.txt`,
	},
	server: manyServers,
	details: `The answer is on stdout, all else on stderr. Text on stdin is added to the task;
with TASK "-" it is the task. A tool is called if --allow names it, if it is
read-only and its server trusted (built-in ones are), if you allowed it
permanently, or if you agree at the terminal. Keys are OPENAI_API_KEY and
ANTHROPIC_API_KEY, or those of models in mcp.json. docs/host.md has the rest.

` + helpServers,
	command: func() command { return new(runCmd) },
}

// runCmd has a model do one task with the tools of servers, for scripts.
type runCmd struct {
	Task []string `arg:"" optional:"" help:"The task; -: read it from standard input."`
	modelFlags
	callRules
	Allow         []string      `sep:"none" placeholder:"SERVER/TOOL" help:"Skip approval; * matches any text (repeatable)."`
	Yes           bool          `help:"Never ask for approval: call only tools of --allow."`
	AllowSampling []string      `name:"allow-sampling" sep:"none" placeholder:"SERVER" help:"Answer sampling of this server (repeatable)."`
	OutputSchema  string        `name:"output-schema" placeholder:"FILE|JSON" help:"Require an answer in JSON that fits this schema."`
	MaxSteps      int           `name:"max-steps" default:"50" placeholder:"N" help:"Maximum model turns."`
	Within        time.Duration `placeholder:"TIME" help:"Time limit of the whole run."`
}

// runSystem is the system prompt without --system.
const runSystem = `You are run once, from a command line, and nobody can answer questions. Do the task with the available tools, then answer with only its result, without commentary.`

func (c *runCmd) Run(a *app) error {
	if err := c.check(a); err != nil {
		return err
	}
	format, err := c.format()
	if err != nil {
		return err
	}
	if err := a.deploy(&c.governed, &c.limits, nil); err != nil {
		return err
	}
	m, err := a.model(c.modelFlags)
	if err != nil {
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
	ctx := a.ctx
	if c.Within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Within, errWithin)
		defer cancel()
	}
	task, parts, err := c.task(ctx, a)
	if err != nil {
		return c.explain(a, err)
	}
	who, err := a.newPerson(c.Yes, c.AllowSampling)
	if err != nil {
		return err
	}
	h.Model, h.Sampler, h.Person, h.Allow, h.Limits.Steps = a.noted(m), a.sampler(m), who, c.Allow, c.MaxSteps
	if err := h.start(plan.servers); err != nil {
		return err
	}
	if err := h.wait(ctx); err != nil {
		return c.explain(a, err)
	}
	c.checkMatches(ctx, a, h)
	talk := h.NewConversation()
	if talk.System, err = a.system(c.modelFlags, runSystem); err != nil {
		return err
	}
	told := &events.Teller{Talk: a.talk, Width: a.tty.errWidth, Nobody: who.Keys == nil}
	if a.JSON {
		told.JSON = func(line string) error {
			a.print(a.shown(line))
			return a.out.Flush()
		}
	}
	talk.OnEvent, talk.Schema = told.Event, format
	began := time.Now()
	reply, err := talk.Send(ctx, task, parts...)
	a.talk.EndProgress()
	if reply != nil {
		told.Sum(reply, time.Since(began))
	}
	if told.Err != nil {
		return told.Err
	}
	if err != nil {
		return c.explain(a, err)
	}
	if !a.JSON {
		a.showText(reply.Text, "")
	}
	switch {
	case reply.Early == host.TooManySteps:
		return c.explain(a, host.ErrSteps)
	case reply.Early != "":
		return &fault{Code: exitBound, Err: errors.New("stopped: the model repeated the same call; the answer uses the results until then")}
	case len(told.Refused) > 0:
		return c.refused(a, told.Refused)
	}
	return nil
}

func (c *runCmd) check(a *app) error {
	switch {
	case c.words() == "" && a.tty.in:
		return usagef("missing task").Hint(`patchbay run "list the tables" -s sqlite`)
	case c.Yes && len(c.Allow) == 0:
		return usagef("--yes needs --allow, which names the tools to call").Hint(a.again("--allow", "SERVER/TOOL"))
	case c.MaxSteps < 1:
		return usagef("--max-steps must be at least 1, not %d", c.MaxSteps)
	case c.Within < 0:
		return usagef("--within %v is negative", c.Within)
	}
	return a.checkAllow(c.Allow)
}

// checkMatches warns of patterns of --allow that match no tool, once all servers are ready.
func (c *runCmd) checkMatches(ctx context.Context, a *app, h *hosting) {
	if len(c.Allow) == 0 || slices.ContainsFunc(h.Servers(), func(s host.ServerStatus) bool { return s.State != gateway.Ready && s.State != gateway.Idle }) {
		return
	}
	var names []string
	for _, t := range h.AllTools(ctx) {
		names = append(names, t.Server+"/"+t.Tool.Name)
	}
	for _, pattern := range c.Allow {
		if !slices.ContainsFunc(names, func(name string) bool { return wildcard.Match(pattern, name) }) {
			a.talk.Note("warning: --allow %s matches no tool%s", pattern, didYouMean(pattern, names))
		}
	}
}

// checkAllow refuses patterns without a server or a tool.
func (a *app) checkAllow(patterns []string) error {
	for _, pattern := range patterns {
		if !strings.Contains(pattern, "/") && pattern != "*" {
			full := pattern + "/*"
			if len(a.Servers) == 1 && pattern != a.Servers[0] {
				full = a.Servers[0] + "/" + pattern
			}
			return usagef("--allow %s is not SERVER/TOOL", pattern).Hint("--allow " + shell([]string{full}))
		}
	}
	return nil
}

// format reads --output-schema.
func (c *runCmd) format() (json.RawMessage, error) {
	text := []byte(strings.TrimSpace(c.OutputSchema))
	if len(text) == 0 {
		return nil, nil
	}
	if text[0] != '{' {
		var err error
		if text, err = arguments.ReadFile(strings.TrimPrefix(c.OutputSchema, "@")); err != nil {
			return nil, usagef("--output-schema: %w", err)
		}
	}
	text = bytes.TrimSpace(text)
	if err := jsonx.Valid(text, 0); err != nil {
		return nil, usagef("--output-schema is not JSON: %v", err)
	}
	if _, err := schema.Compile(text); err != nil {
		return nil, usagef("--output-schema: %w", err)
	}
	return text, nil
}

// slowInput is the time without standard input after which a line says that the program waits for
// it.
const slowInput = 3 * time.Second

// words returns the task of the command line; empty: it comes from standard input.
func (c *runCmd) words() string {
	words := strings.TrimSpace(strings.Join(c.Task, " "))
	if words == "-" {
		return ""
	}
	return words
}

// task returns the message for the model: the words of the command line, followed by standard input
// if it is not a terminal.
func (c *runCmd) task(ctx context.Context, a *app) (string, []model.Part, error) {
	task := c.words()
	if a.tty.in {
		return task, nil, nil
	}
	slow := time.AfterFunc(slowInput, func() {
		a.talk.Note("waiting for the end of standard input; < /dev/null skips it")
	})
	defer slow.Stop()
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() { // a read cannot be interrupted: after ctrl-C it lives as long as the program
		data, err := arguments.ReadAll(a.stdin)
		done <- read{data, err}
	}()
	var in read
	select {
	case in = <-done:
	case <-ctx.Done():
		return "", nil, context.Cause(ctx)
	}
	if in.err != nil {
		return "", nil, fmt.Errorf("standard input: %w", in.err)
	}
	text := strings.TrimSpace(string(in.data))
	alone := task == ""
	switch {
	case text == "" && alone:
		return "", nil, usagef("missing task: standard input is empty").Hint(`patchbay run "list the tables" -s sqlite`)
	case text == "":
		return task, nil, nil
	case utf8.ValidString(text) && alone:
		return "", []model.Part{{Text: text}}, nil // no person wrote it: mentions in it are not attached
	case utf8.ValidString(text):
		return task, []model.Part{{Text: "\n\n<stdin>\n" + text + "\n</stdin>"}}, nil
	}
	kind, _, _ := strings.Cut(http.DetectContentType(in.data), ";")
	switch {
	case alone:
		return "", nil, usagef("missing task: standard input is not text (%s)", kind)
	case strings.HasPrefix(kind, "image/"), strings.HasPrefix(kind, "audio/"), kind == "application/pdf":
		return task, []model.Part{{Media: &model.Media{MIME: kind, Data: in.data, Name: "stdin"}}}, nil
	}
	return "", nil, usagef("standard input is neither UTF-8 text nor a picture, sound or PDF")
}

var errWithin = errors.New("the time limit of --within has passed")

// explain finds the exit code for the error of a run, with advice.
func (c *runCmd) explain(a *app, err error) error {
	var of *model.Error
	switch {
	case errors.Is(err, errWithin):
		f := &fault{Code: exitBound, Err: fmt.Errorf("not done in %v", c.Within)}
		return f.Hint(a.again("--within", (2 * c.Within).String()))
	case errors.Is(err, host.ErrSteps):
		f := &fault{Code: exitBound, Err: fmt.Errorf("not done in %s", quantity(c.MaxSteps, "step"))}
		return f.Hint(a.again("--max-steps", fmt.Sprint(2*c.MaxSteps)))
	case errors.Is(err, host.ErrSchema):
		return &fault{Code: exitFormat, Err: err}
	case errors.As(err, &of):
		return a.modelFault(of)
	}
	return err
}

// refused returns the error for tools that the model called and nobody could approve.
func (c *runCmd) refused(a *app, tools []string) error {
	f := &fault{Code: exitDenied, Err: fmt.Errorf("not allowed, so not called: %s", strings.Join(tools, ", "))}
	var flags []string
	for _, t := range tools {
		flags = append(flags, "--allow", t)
	}
	return f.Hint(a.again(flags...))
}
