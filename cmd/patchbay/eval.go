package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/eval"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
	"github.com/patchbay-dev/patchbay/launch"
)

var evalVerb = verb{
	name: "eval", summary: "Test servers and prompts with language models.", usage: "FILE [--model MODEL ...] [SERVER ...]",
	examples: []string{"patchbay eval shop.yaml", "patchbay eval shop.yaml -m openai/gpt-5-mini -n 10 --junit report.xml"},
	server:   manyServers,
	details: `FILE lists tasks and the expected behaviour of models (see docs/host.md):
  servers: [shop]
  models: [openai/gpt-5-mini]
  tasks:
    - name: stoves
      prompt: Put two stoves into a cart.
      expect:
        calls: [{tool: shop/add-to-cart, arguments: {quantity: 2}}]
        never: [shop/place-order]
        answer: {contains: [Ember Stove], judge: It names a price.}
Exit code 1: a run failed.`,
	command: func() command { return new(evalCmd) },
}

// evalCmd gives models tasks and checks the results.
type evalCmd struct {
	File     string   `arg:"" help:"Tasks and expectations, in YAML or JSON."`
	Models   []string `name:"model" short:"m" sep:"none" placeholder:"MODEL" help:"Replace the models of the file (repeatable)."`
	Judge    string   `placeholder:"MODEL" help:"Judge answers with this model."`
	Runs     int      `short:"n" placeholder:"N" help:"Repetitions of each task with each model; 0: as in FILE."`
	Parallel int      `placeholder:"N" help:"Number of parallel runs [4]."`
	Task     []string `sep:"none" placeholder:"NAME" help:"Run only this task; * matches any text (repeatable)."`
	JUnit    string   `name:"junit" placeholder:"FILE" help:"Write a JUnit report."`
}

func (c *evalCmd) Run(a *app) error {
	s, err := eval.Load(c.File)
	if err != nil {
		return err
	}
	if err := c.choose(s); err != nil {
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
	if c.JUnit != "" {
		if err := c.writeJUnit(report); err != nil {
			return err
		}
	}
	if err := c.print(a, report); err != nil {
		return err
	}
	if err == nil && report.Err() != nil {
		return errFailed
	}
	return err
}

// choose lets flags override the file.
func (c *evalCmd) choose(s *eval.Suite) error {
	if len(c.Models) > 0 {
		s.Models = c.Models
	}
	if c.Judge != "" {
		s.Judge = c.Judge
	}
	if c.Runs < 0 || c.Parallel < 0 {
		return usagef("--runs and --parallel must not be negative")
	}
	if c.Parallel > 0 {
		s.Parallel = c.Parallel
	}
	if c.Runs > 0 {
		s.Runs = c.Runs
		for _, t := range s.Tasks {
			t.Runs = 0
		}
	}
	if len(c.Task) == 0 {
		return nil
	}
	var names []string
	s.Tasks = slices.DeleteFunc(s.Tasks, func(t *eval.Task) bool {
		names = append(names, t.Name)
		return !slices.ContainsFunc(c.Task, func(pattern string) bool { return wildcard.Match(pattern, t.Name) })
	})
	if len(s.Tasks) == 0 {
		return usagef("no task %s; tasks: %s", strings.Join(c.Task, ", "), strings.Join(names, ", "))
	}
	return nil
}

// servers returns the servers of the command line, else of the file, else of mcp.json.
func (c *evalCmd) servers(a *app, s *eval.Suite) ([]config.Server, error) {
	switch {
	case a.dashed || len(a.Servers) > 0:
	case s.Inline != nil:
		path, err := filepath.Abs(c.File)
		if err != nil {
			return nil, err
		}
		file, faults, err := config.Parse(path, s.Inline, nil)
		if err != nil {
			return nil, err
		}
		if len(faults) > 0 {
			return nil, faults
		}
		return launch.Enabled(file), nil
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
	what := a.talk.Paint("ok", "32")
	switch {
	case r.Error != "":
		what = a.talk.Paint("error", "31")
	case !r.Passed:
		what = a.talk.Paint("failed", "31")
	}
	if a.talk.Quiet {
		return
	}
	a.talk.Always(fmt.Sprintf("%s  %s, %s, run %d: %s", what, oneLine(r.Task), oneLine(r.Model), r.Run, quantity(r.Steps, "step")))
	for _, f := range r.Faults {
		a.talk.Always("  " + visible(clip(f)))
	}
	if r.Error != "" {
		a.talk.Always("  " + visible(clip(r.Error)))
	}
}

// print prints the report: a table or JSON.
func (c *evalCmd) print(a *app, report *eval.Report) error {
	if a.JSON {
		data, err := json.MarshalIndent(struct {
			*eval.Report
			Rows []eval.Row `json:"rows"`
		}{report, report.Rows()}, "", "  ")
		if err == nil {
			a.print(a.shown(string(data)))
		}
		return err
	}
	g := &screen.Grid{Right: []bool{false, false, true, true, true, true, true}}
	g.Add("TASK", "MODEL", "PASSED", "STEPS", "TOKENS", "COST", "TIME")
	for _, r := range report.Rows() {
		cost := "-"
		if r.Cost > 0 {
			cost = fmt.Sprintf("%.4f", r.Cost)
		}
		g.Add(r.Task, r.Model, fmt.Sprintf("%d/%d", r.Passed, r.Runs), fmt.Sprintf("%.1f", r.Steps), fmt.Sprint(r.Tokens), cost, shortTime(r.Median))
	}
	a.printGrid(g)
	return nil
}

func (c *evalCmd) writeJUnit(report *eval.Report) (err error) {
	var w io.WriteCloser
	if w, err = ownfile.Sink(c.JUnit, os.O_TRUNC, 0o644, nil); err != nil {
		return usagef("--junit: %w", err)
	}
	defer func() {
		if closed := w.Close(); err == nil {
			err = closed
		}
	}()
	return report.WriteJUnit(w)
}
