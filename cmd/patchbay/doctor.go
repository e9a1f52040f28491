package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/doctor"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/models"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/servers"
)

var configDoctorVerb = verb{
	name: "doctor", summary: "Diagnose servers and models that do not work.", usage: "[NAME ... | -- COMMAND]",
	examples: []string{"patchbay config doctor", "patchbay config doctor memory --json", "patchbay config doctor openai/gpt-5-mini"},
	server:   wordsBehindDashes,
	details: `Starts or reaches each server, step by step, and stops it again. For one that
fails, shows the step, the command, its exit code and last lines, and a fix.
Requests a description of each model, with its key. Runs only commands of
mcp.json: read it first if it is not yours. Exit code 1: something failed.`,
	command: func() command { return new(configDoctorCmd) },
}

// configDoctorCmd finds out why servers and models do not work. It takes the steps of every verb to
// a server one by one, up to the first that fails.
type configDoctorCmd struct {
	Names []string `arg:"" optional:"" help:"Only these servers and models."`
}

func (*configDoctorCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	return append(a.configServers(), a.modelNames()...)
}

func (c *configDoctorCmd) Run(a *app) error {
	exams, err := c.exams(a)
	if err != nil {
		return err
	}
	if !a.JSON && a.file.path != "" && slices.ContainsFunc(exams, func(e *doctor.Exam) bool { return e.Model == nil }) {
		a.talk.Note("starting the servers of %s", here(a.file.path))
	}
	if _, _, err := a.recorder(); err != nil { // one recording for all
		return err
	}
	failed := 0
	doctor.RunAll(a.ctx, exams, func(e *doctor.Exam) {
		if e.Failed() != nil {
			failed++
		}
		if !a.JSON {
			e.Print(a.tty.width, a.paint, a.print)
			a.out.Flush()
		}
	})
	if a.JSON {
		reports := []doctor.Report{}
		for _, e := range exams {
			reports = append(reports, e.Report())
		}
		if err := a.printJSON(reports); err != nil {
			return err
		}
	}
	if a.ctx.Err() != nil {
		return context.Cause(a.ctx)
	}
	if failed > 0 {
		what := "server"
		if slices.ContainsFunc(exams, func(e *doctor.Exam) bool { return e.Model != nil }) {
			what = "check"
		}
		return fmt.Errorf("%d of %s failed", failed, quantity(len(exams), what))
	}
	return nil
}

// exams returns the examinations. Questions to the person come before all of them.
func (c *configDoctorCmd) exams(a *app) ([]*doctor.Exam, error) {
	if a.dashed && len(c.Names) > 0 {
		return nil, usagef("both %s and a command after -- are given; keep one", c.Names[0])
	}
	if a.dashed {
		s, err := a.target()
		a.file = new(inspected)
		return []*doctor.Exam{a.exam(s, nil)}, err
	}
	read, err := a.inspectConfig()
	if err != nil {
		return nil, err
	}
	if whole := read.about(""); len(whole) > 0 {
		return nil, whole
	}
	names := slices.Clone(c.Names)
	if len(c.Names) == 0 {
		names = read.names()
		for _, p := range read.unread() {
			if p.Model == "" && !slices.Contains(names, p.Server) { // of the file as a whole, or of a disabled server
				a.talk.Note("warning: %s", p)
			}
		}
	}
	if read.file != nil && (len(c.Names) == 0 || slices.ContainsFunc(c.Names, read.has)) {
		if err := a.mayUse(read.file); err != nil {
			return nil, err
		}
	}
	// If a server and a model have the same name, the server is meant.
	known := append(read.names(), servers.Names()...)
	models, err := c.modelExams(a, func(name string) bool {
		return len(c.Names) == 0 || slices.Contains(c.Names, name) && !slices.Contains(known, name)
	})
	if err != nil {
		return nil, err
	}
	if len(c.Names) == 0 {
		hooks, err := a.hooks()
		if err != nil {
			return nil, err
		}
		for _, h := range hooks {
			models = append(models, doctor.Hook(h))
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return len(c.Names) > 0 && slices.ContainsFunc(models, func(e *doctor.Exam) bool { return e.Model.Name == name })
	})
	if len(names)+len(models) == 0 {
		return nil, usagef("no server to check").Hint("patchbay config add NAME -- COMMAND")
	}
	var out []*doctor.Exam
	for _, name := range names {
		e := a.exam(config.Server{Name: name}, nil)
		out = append(out, e)
		if faults := read.about(name); len(faults) > 0 {
			e.Fail("config", faults.Error(), "correct the file; patchbay config explain "+shell([]string{name})+" shows the place")
			continue
		}
		var s config.Server
		if i := slices.IndexFunc(read.servers, func(s config.Server) bool { return s.Name == name }); i >= 0 {
			s = read.servers[i] // a disabled server too: it was named
		} else if s, err = a.named(name); err != nil {
			return nil, err
		}
		e.Server = s
		e.OK("config", cmp.Or(hereLine(s.Source), "built in"))
		read.nameUnread(e)
		if s, err = a.env.Resolve(s); err != nil {
			e.Fail("inputs", err.Error(), "")
			continue
		}
		e.Server = s
	}
	return append(out, models...), nil
}

// modelExams returns the examinations of the named models, or of all.
func (c *configDoctorCmd) modelExams(a *app, wanted func(name string) bool) ([]*doctor.Exam, error) {
	set, err := a.models()
	if err != nil {
		return nil, err
	}
	var out []*doctor.Exam
	begin := func(m config.Model, s config.Server) *doctor.Exam {
		e := a.exam(s, &m)
		out = append(out, e)
		return e
	}
	list := slices.Clone(set.List)
	for _, name := range append(slices.Clone(c.Names), set.Default) {
		known := slices.ContainsFunc(list, func(m config.Model) bool { return m.Name == name })
		if of, _, _ := strings.Cut(name, "/"); name != of && slices.Contains(config.Providers, of) && !known {
			list = append(list, models.OfEnvironment(name))
		}
	}
	for _, m := range list {
		if !wanted(m.Name) {
			continue
		}
		e := begin(m, models.AsServer(&m))
		e.OK("config", cmp.Or(hereLine(m.Source), "from the environment"))
		a.file.nameUnread(e)
		if missing := m.Missing(); len(missing) > 0 {
			e.Fail("key", missing[0].Text, missing[0].Fix)
			continue
		}
		resolved, err := a.resolveModel(m)
		if err != nil {
			e.Fail("key", err.Error(), "")
			continue
		}
		e.Model = &resolved
	}
	for _, p := range set.Faults {
		if p.Model != "" && wanted(p.Model) && set.Named(p.Model) == nil {
			begin(config.Model{Name: p.Model}, config.Server{Name: p.Model}).Fail("config", p.String(), "correct the file")
		}
	}
	return out, nil
}

// nameUnread adds the members of a server or model that Patchbay does not read to its examination.
func (r *inspected) nameUnread(e *doctor.Exam) {
	for _, p := range r.unread() {
		if p.Server != "" && e.Model == nil && p.Server == e.Server.Name || p.Model != "" && e.Model != nil && p.Model == e.Model.Name {
			e.Warn("config", p.String())
		}
	}
}

// unread returns the members of the file that Patchbay does not read.
func (r *inspected) unread() []config.Problem {
	if r == nil || r.file == nil {
		return nil
	}
	return r.file.Unread
}

// exam returns the examination of a server or, if m is not nil, of model m, in which case s holds
// the address of the model.
func (a *app) exam(s config.Server, m *config.Model) *doctor.Exam {
	e := &doctor.Exam{Env: a.env, Server: s, Model: m, Client: a.newClient, Bound: a.startContext, TLS: a.modelTLS}
	e.List = func(ctx context.Context) ([]string, error) { return a.listModels(ctx, m) }
	if a.file != nil {
		e.Config = a.file.path
	}
	return e
}
