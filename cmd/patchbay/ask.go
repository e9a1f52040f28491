package main

import (
	"context"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/answers"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/person"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/mcp"
)

// The flags --on-elicit and --on-sample answer the questions from a server, else a person at the
// terminal. A question that neither can answer is declined, with a line on stderr.

// answerQuestions sets the functions of the client that answer questions.
func (a *app) answerQuestions(c *mcp.Client) error {
	var one sync.Mutex // a person answers one question at a time
	answer, err := a.elicitation()
	if err != nil {
		return err
	}
	c.OnElicit = func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		one.Lock()
		defer one.Unlock()
		return answer(ctx, r)
	}
	if c.OnSample, err = a.sampled(); err != nil {
		return err
	}
	if len(a.Root) > 0 {
		roots, err := rootsOf(a.Root)
		if err != nil {
			return err
		}
		c.Roots = func(context.Context) ([]mcp.Root, error) { return roots, nil }
	}
	c.LogLevel = a.logLevel()
	// Up to 2025-11-25 a log message need not belong to a call.
	c.OnEvent = func(_ *mcp.Session, e mcp.Event) {
		if e.Log != nil {
			a.talk.Log(*e.Log)
		}
	}
	return nil
}

type elicitFunc = func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)

// elicitation returns the function that answers elicitation requests.
func (a *app) elicitation() (elicitFunc, error) {
	file, isFile := strings.CutPrefix(a.OnElicit, "@")
	switch {
	case a.OnElicit == "decline" || a.OnElicit == "cancel":
		return func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: a.OnElicit}, nil
		}, nil
	case isFile:
		answer, err := answers.File(file, a.talk.Note)
		if err != nil {
			return nil, usagef("--on-elicit: %w", err)
		}
		return answer, nil
	case a.OnElicit != "":
		return nil, usagef("--on-elicit %q is not decline, cancel or @FILE", a.OnElicit)
	case a.tty.in && a.tty.err:
		return a.askPerson, nil
	}
	return func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		a.talk.Note("declined the question %q: no terminal to ask at; --on-elicit @answers.json answers it", oneLine(r.Message))
		return &mcp.ElicitResult{Action: "decline"}, nil
	}, nil
}

// askPerson asks the person at the terminal.
func (a *app) askPerson(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	a.talk.Hold()
	defer a.talk.Release()
	d := &terminal.Dialog{Talk: a.talk, Keys: a.keyboard(), Width: a.tty.errWidth, Server: a.serverName()}
	return d.Ask(ctx, r)
}

// sampled returns the function that answers sampling requests; nil without --on-sample.
func (a *app) sampled() (func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error), error) {
	if a.OnSample == "" {
		return nil, nil
	}
	path, ok := strings.CutPrefix(a.OnSample, "@")
	if !ok {
		return nil, usagef("--on-sample takes @FILE, got %q", a.OnSample)
	}
	res, err := answers.Sample(path)
	if err != nil {
		return nil, usagef("--on-sample: %w", err)
	}
	return func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) { return res, nil }, nil
}

// rootsOf returns a root for each folder.
func rootsOf(dirs []string) ([]mcp.Root, error) {
	roots, err := answers.Roots(dirs)
	if err != nil {
		return nil, usagef("--root %w", err)
	}
	return roots, nil
}

// newPerson returns the person of a host. If silent is set, nobody is asked, even at a terminal.
func (a *app) newPerson(silent bool, sampling []string) (*person.Person, error) {
	p := person.New(a.talk, a.tty.errWidth)
	p.Sampling = sampling
	if a.OnElicit != "" {
		var err error
		if p.Answers, err = a.elicitation(); err != nil {
			return nil, err
		}
	}
	if silent || !a.tty.err {
		return p, nil
	}
	if a.tty.in {
		p.Keys = a.keyboard()
	} else if tty := person.Beside(); tty != nil {
		p.Keys = terminal.NewKeyboard(tty)
	}
	return p, nil
}

// preset is a person whose elicitation requests --on-elicit answers.
type preset struct {
	host.Person
	one    sync.Mutex // one answer at a time
	answer elicitFunc
}

// Elicit implements host.Person.
func (p *preset) Elicit(ctx context.Context, q *host.Elicitation) (*mcp.ElicitResult, error) {
	p.one.Lock()
	defer p.one.Unlock()
	return p.answer(ctx, q.ElicitRequest)
}
