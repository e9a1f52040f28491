package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/allow"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/chatmemory"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/control"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/events"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/task"
	"github.com/patchbay-dev/patchbay/gateway"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
)

var runVerb = verb{
	name: "run", summary: "Run a task with a language model and the tools of servers.", usage: "TASK [--model MODEL] [--allow SERVER/TOOL ...] [SERVER ...]",
	examples: []string{
		`patchbay run "which tables are there?" -m openai/gpt-5-mini -s sqlite`,
	},
	server: manyServers,
	details: `Stdin is added to TASK. Calls need --allow or your agreement: docs/host.md.
` + helpServers,
	command: func() command { return new(runCmd) },
}

// runCmd has a model do one task with the tools of servers, for scripts.
type runCmd struct {
	Task []string `arg:"" optional:"" help:"The task; -: read it from standard input."`
	modelFlags
	callRules
	chatmemory.Flags
	control.Options
	Keep          bool          `help:"Store the conversation, to continue it."`
	Allow         []string      `sep:"none" placeholder:"SERVER/TOOL" help:"Skip approval, also \"… if CONDITION\" (repeatable)."`
	Yes           bool          `help:"Never ask for approval: call only tools of --allow."`
	AllowSampling []string      `name:"allow-sampling" sep:"none" placeholder:"SERVER" help:"Answer sampling of this server (repeatable)."`
	OutputSchema  string        `name:"output-schema" placeholder:"FILE|JSON" help:"Require an answer in JSON that fits this schema."`
	MaxSteps      int           `name:"max-steps" default:"50" placeholder:"N" help:"Maximum model turns."`
	MaxTokens     int           `name:"max-tokens" placeholder:"N" help:"Maximum tokens, of requests and answers together."`
	MaxCost       float64       `name:"max-cost" placeholder:"COST" help:"Maximum cost, by the price in mcp.json."`
	MaxTime       time.Duration `name:"max-time" placeholder:"TIME" help:"Time limit of the whole run."`
}

// runSystem is the system prompt without --system.
const runSystem = `You are run once, from a command line, and nobody can answer questions. Do the task with the available tools, then answer with only its result, without commentary.`

func (c *runCmd) Run(a *app) error {
	if err := c.check(a); err != nil {
		return err
	}
	format, err := task.Schema(c.OutputSchema)
	if err != nil {
		return err
	}
	begin, err := c.Begin()
	if err != nil {
		return err
	}
	if err := a.deploy(&c.governed, &c.limits, nil); err != nil {
		return err
	}
	c.priced = c.MaxCost > 0
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
	if c.MaxTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.MaxTime, errMaxTime)
		defer cancel()
	}
	text, parts, err := c.task(ctx, a, m.Info())
	if err != nil {
		return c.explain(a, err)
	}
	var kept chatmemory.Memory
	defer kept.Close()
	talk, err := kept.Chosen(ctx, h.Host, c.Flags, c.Keep)
	if err != nil {
		return err
	}
	begin(talk)
	who, err := a.newPerson(c.Yes, c.AllowSampling)
	if err != nil {
		return err
	}
	h.Model, h.Sampler, h.Person, h.Allow = a.noted(m), a.sampler(m), who, c.Allow
	h.Limits.Steps, h.Limits.Tokens, h.Limits.Cost = c.MaxSteps, int64(c.MaxTokens), c.MaxCost
	if talk.System, err = a.instruct(h, c.modelFlags, runSystem, !c.Yes); err != nil {
		return err
	}
	if err := h.start(plan.servers); err != nil {
		return err
	}
	if err := h.wait(ctx); err != nil {
		return c.explain(a, err)
	}
	c.checkMatches(ctx, a, h)
	told := &events.Teller{Talk: a.talk, Width: a.tty.errWidth, Allowed: c.Allow}
	if a.JSON {
		told.JSON = func(line string) error {
			a.print(a.shown(line))
			return a.out.Flush()
		}
	}
	if a.tty.out && !a.JSON && format == nil {
		told.Out, told.Paper.Width, told.Paper.Color, told.Paper.Plain = a.out, a.tty.width, a.tty.color, a.Plain
	}
	talk.OnEvent, talk.Schema, talk.Forget = told.Event, format, true
	reply, err := talk.Send(ctx, text, parts...)
	told.Sum(reply)
	if id := kept.Current(); id != "" {
		a.talk.Note("stored as %s; patchbay run --resume %s continues it", id, id)
	}
	if told.Err != nil {
		return told.Err
	}
	if reply != nil && !a.JSON && !told.Shown && strings.TrimSpace(reply.Text) != "" && !errors.Is(err, host.ErrSchema) {
		a.showText(reply.Text, "") // also what there is of an answer that broke off
	}
	if err == nil {
		err = told.Fault(reply, a.again)
	}
	return c.explain(a, err)
}

func (c *runCmd) check(a *app) error {
	switch {
	case c.words() == "" && a.tty.in:
		return usagef("missing task").Hint(task.Example)
	case c.Yes && len(c.Allow) == 0:
		return usagef("--yes needs --allow, which names the tools to call").Hint(a.again("--allow", "SERVER/TOOL"))
	case c.MaxSteps < 1:
		return usagef("--max-steps must be at least 1, not %d", c.MaxSteps)
	case c.MaxTime < 0, c.MaxTokens < 0, c.MaxCost < 0:
		return usagef("--max-time, --max-tokens and --max-cost cannot be negative")
	}
	return allow.Check(c.Allow, a.Servers)
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
	for _, warning := range allow.Unmatched(c.Allow, names) {
		a.talk.Note("%s", warning)
	}
}

// words returns the task of the command line; empty: it comes from standard input.
func (c *runCmd) words() string {
	words := strings.TrimSpace(strings.Join(c.Task, " "))
	if words == "-" {
		return ""
	}
	return words
}

// task returns the message for the model.
func (c *runCmd) task(ctx context.Context, a *app, m model.Info) (string, []model.Part, error) {
	if a.tty.in {
		return c.words(), nil, nil
	}
	return task.Read(ctx, c.words(), a.stdin, m, a.talk.Note)
}

var errMaxTime = errors.New("the time limit of --max-time has passed")

// explain finds the exit code for the error of a run, with advice.
func (c *runCmd) explain(a *app, err error) error {
	switch {
	case errors.Is(err, errMaxTime):
		f := &fault{Code: exitBound, Err: fmt.Errorf("not done in %v", c.MaxTime)}
		return f.Hint(a.again("--max-time", (2 * c.MaxTime).String()))
	case errors.Is(err, host.ErrSteps):
		f := &fault{Code: exitBound, Err: fmt.Errorf("not done in %s", quantity(c.MaxSteps, "step"))}
		return f.Hint(a.again("--max-steps", fmt.Sprint(2*c.MaxSteps)))
	case errors.Is(err, host.ErrBudget) && c.MaxCost > 0:
		return &fault{Code: exitBound, Err: errors.New("not done within --max-tokens and --max-cost")}
	case errors.Is(err, host.ErrBudget):
		f := &fault{Code: exitBound, Err: fmt.Errorf("not done with %d tokens", c.MaxTokens)}
		return f.Hint(a.again("--max-tokens", fmt.Sprint(2*c.MaxTokens)))
	case errors.Is(err, host.ErrSchema):
		return &fault{Code: exitFormat, Err: err}
	}
	return err
}
