package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/evals"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/eval"
	"github.com/patchbay-dev/patchbay/host/model"
)

var evalVerb = verb{
	name: "eval", summary: "Test servers and prompts with language models.", usage: "FILE [--model MODEL ...] [SERVER ...]",
	examples: []string{"patchbay eval shop.yaml -m openai/gpt-5-mini -n 10 --junit report.xml", "patchbay eval shop.yaml --replay-model shop.model.jsonl --baseline shop.json"},
	server:   manyServers,
	details: `FILE lists tasks and the expected behaviour of models (see docs/host.md):
  servers: [shop]
  tasks:
    - name: stoves
      prompt: Put two stoves into a cart.
      expect:
        calls: [{tool: shop/add-to-cart, arguments: {quantity: 2}}]
        answer: {contains: [Ember Stove], judge: It names a price.}
Exit code 1: a run failed, or with --baseline more of them than before; 2: FILE
is missing or has faults.`,
	command: func() command { return new(evalCmd) },
}

// evalCmd gives models tasks and checks the results.
type evalCmd struct {
	File string `arg:"" help:"Tasks and expectations, in YAML or JSON."`
	evals.Flags
}

func (c *evalCmd) Run(a *app) error {
	s, err := eval.Load(c.File)
	if err != nil {
		return usagef("%w", err)
	}
	if err := c.Choose(s); err != nil {
		return err
	}
	base, err := c.ReadBaseline(c.File)
	if err != nil {
		return err
	}
	played, err := c.wire(a)
	if err != nil {
		return err
	}
	list, err := c.servers(a, s)
	if err != nil {
		return err
	}
	if len(s.Models) == 0 {
		set, err := a.models()
		if err != nil {
			return err
		}
		if set.Default == "" {
			return a.noModel(set)
		}
		s.Models = []string{set.Default}
	}
	for _, server := range list { // ask questions before anything is started
		a.env.Resolve(server)
	}
	if _, _, err := a.recorder(); err != nil { // open the recording before several runs want it
		return err
	}
	r := &eval.Runner{
		Model: func(name string) (model.Model, error) { return a.openModel(name) },
		Start: func(_ context.Context, base *host.Host) error {
			h, err := a.hosting(base)
			if err != nil {
				return err
			}
			return h.start(list)
		},
	}
	all := 0
	for _, t := range s.Tasks {
		all += len(s.Models) * s.RunsOf(t)
	}
	done := 0
	r.OnResult = func(res *eval.Result) {
		done++
		c.tell(a, res)
		a.talk.Status(fmt.Sprintf("%d of %d", done, all))
	}
	report, err := r.Run(a.ctx, s)
	a.talk.EndProgress()
	if report == nil {
		return err
	}
	if err := c.WriteJUnit(report); err != nil {
		return err
	}
	var compared *eval.Comparison
	if base != nil {
		compared = base.Compare(report, c.Tolerance/100)
	}
	if err := c.print(a, report, compared); err != nil || a.ctx.Err() != nil {
		return cmp.Or(err, context.Cause(a.ctx))
	}
	if err := errors.Join(played(), c.WriteBaseline(report)); err != nil {
		return err
	}
	return c.verdict(a, report, compared)
}

// verdict returns the error of runs that failed, or are worse than a baseline.
func (c *evalCmd) verdict(a *app, report *eval.Report, compared *eval.Comparison) error {
	if compared == nil {
		if report.Err() != nil {
			return errFailed
		}
		return nil
	}
	for _, note := range evals.Notes(report, compared) {
		a.talk.Note("%s", note)
	}
	if worse := compared.Err(); worse != nil {
		a.talk.Always(visible(worse.Error()))
		return errWorse
	}
	return nil
}

// wire lets the models be recorded, or answers from a recording. The function that it returns ends that after the runs.
func (c *evalCmd) wire(a *app) (end func() error, err error) {
	client, err := a.modelClient()
	if err != nil {
		return nil, err
	}
	a.modelWire, end, err = c.Wire(client, a.secrets.Text, a.talk.Note)
	a.replayed = c.Replay != ""
	return end, err
}

// servers returns the servers of the command line, else of the file, else of mcp.json.
func (c *evalCmd) servers(a *app, s *eval.Suite) ([]config.Server, error) {
	switch {
	case a.dashed || len(a.Servers) > 0:
	case s.Inline != nil:
		list, err := evals.Inline(c.File, s.Inline)
		if err != nil {
			return nil, usagef("%w", err)
		}
		return list, nil
	default:
		a.Servers = s.Servers
	}
	plan, err := a.upPlan(false)
	if err != nil {
		return nil, err
	}
	return plan.servers, nil
}

// tell prints the result of one run.
func (c *evalCmd) tell(a *app, r *eval.Result) {
	if a.talk.Quiet {
		return
	}
	for _, line := range evals.Told(r, a.talk.Paint) {
		a.talk.Always(line)
	}
}

// print prints the report: a table or JSON.
func (c *evalCmd) print(a *app, report *eval.Report, compared *eval.Comparison) error {
	if !a.JSON {
		a.printGrid(evals.Table(report, compared))
		return nil
	}
	data, err := evals.JSON(report, compared)
	if err == nil {
		a.print(a.shown(string(data)))
	}
	return err
}
