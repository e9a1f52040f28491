package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
	"github.com/patchbay-dev/patchbay/mcp"
)

// person is who a host asks line by line, as run does: one question after the other. What flags
// answer is not asked, and what nobody can answer is refused, and stderr says so.
type person struct {
	a        *app
	keys     *terminal.Keyboard // nil: there is nobody
	turn     chan struct{}      // capacity 1: who has put something in may ask
	elicit   elicitFunc         // of --on-elicit; nil: the person is asked
	sampling []string           // servers whose requests for completions are not asked about, as patterns
}

var _ host.Person = (*person)(nil)

// newPerson finds out who can be asked. Silent: nobody is, whoever sits there.
func (a *app) newPerson(silent bool, sampling []string) (*person, error) {
	p := &person{a: a, turn: make(chan struct{}, 1), sampling: sampling}
	if a.OnElicit != "" {
		var err error
		if p.elicit, err = a.elicitation(); err != nil {
			return nil, err
		}
	}
	if silent || !a.tty.err {
		return p, nil
	}
	if a.tty.in {
		p.keys = a.keyboard()
	} else if tty := terminalBeside(); tty != nil {
		p.keys = terminal.NewKeyboard(tty)
	}
	return p, nil
}

// terminalBeside opens the terminal of a program whose input is something else; nil: there is none.
func terminalBeside() io.Reader {
	name := "/dev/tty"
	if runtime.GOOS == "windows" {
		name = "CONIN$"
	}
	f, err := os.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	return f // until the program ends
}

// take waits for the person, and has the terminal until release.
func (p *person) take(ctx context.Context) (release func(), err error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p.a.talk.Hold()
	return func() {
		p.a.talk.Release()
		<-p.turn
	}, nil
}

func (p *person) dialog(server string) *terminal.Dialog {
	return &terminal.Dialog{Keys: p.keys, Say: p.a.talk.Say, Paint: p.a.talk.Paint, Width: p.a.tty.errWidth, Server: server}
}

// Approve implements host.Person.
func (p *person) Approve(ctx context.Context, ask *host.Approval) (host.Verdict, error) {
	if p.keys == nil {
		return host.Verdict{Reason: "there is nobody to ask"}, nil
	}
	release, err := p.take(ctx)
	if err != nil {
		return host.Verdict{}, err
	}
	defer release()
	d := p.dialog(ask.Server)
	d.Say("\n" + d.Paint("The model wants to call "+oneLine(ask.Server+"/"+ask.Tool.Name), "1;36") + "\n")
	for _, remark := range remarks(ask) {
		d.Say(d.Paint(wrap(visible(remark), d.Width), "33") + "\n")
	}
	d.Say(visible(indented(ask.Arguments)) + "\n")
	for {
		text, err := d.Read(ctx, "Allow it? [y]es, in this [r]un, [a]lways, [n]o, or say why not: ")
		var no terminal.Refusal
		switch {
		case errors.As(err, &no):
			return host.Verdict{}, nil
		case err != nil:
			return host.Verdict{}, err
		}
		switch text = strings.TrimSpace(text); strings.ToLower(text) {
		case "":
		case "y", "yes":
			return host.Verdict{Answer: host.AllowOnce}, nil
		case "r", "run":
			return host.Verdict{Answer: host.AllowConversation}, nil
		case "a", "always":
			return host.Verdict{Answer: host.AllowAlways}, nil
		case "n", "no":
			return host.Verdict{}, nil
		default:
			if len(text) < 4 { // a slip of the finger is no reason
				d.Say("  one of y, r, a and n, or a reason in words\n")
				continue
			}
			return host.Verdict{Reason: text}, nil
		}
	}
}

// remarks are what a person should know of a call besides its arguments.
func remarks(ask *host.Approval) (list []string) {
	if ask.Changed != "" {
		list = append(list, "It was allowed for ever, but has changed since: "+ask.Changed)
	}
	if ask.Doubt != "" {
		list = append(list, "Take care: "+ask.Doubt)
	}
	if ask.ReadOnly {
		list = append(list, "The server says that it only reads.")
	} else if ask.Destructive {
		list = append(list, "It may destroy something.")
	}
	return list
}

// Elicit implements host.Person.
func (p *person) Elicit(ctx context.Context, q *host.Elicitation) (*mcp.ElicitResult, error) {
	if p.elicit == nil && p.keys == nil {
		p.a.talk.Note("declined the question %q of %s, as nobody can be asked without a terminal; --on-elicit @answers.json answers it", oneLine(q.Message), q.Server)
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	release, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if p.elicit != nil {
		return p.elicit(ctx, q.ElicitRequest)
	}
	return p.dialog(q.Server).Ask(ctx, q.ElicitRequest)
}

// preset is a person for whom --on-elicit answers what servers ask.
type preset struct {
	host.Person
	one    sync.Mutex // an answer after the other
	answer elicitFunc
}

// Elicit implements host.Person.
func (p *preset) Elicit(ctx context.Context, q *host.Elicitation) (*mcp.ElicitResult, error) {
	p.one.Lock()
	defer p.one.Unlock()
	return p.answer(ctx, q.ElicitRequest)
}

// ReviewRequest implements host.Person.
func (p *person) ReviewRequest(ctx context.Context, s *host.Sampling) (*mcp.SampleRequest, error) {
	if p.letsSample(s.Server) {
		return s.Request, nil
	}
	if p.keys == nil {
		p.a.talk.Note("refused to have the model complete something for %s; --allow-sampling %s allows it", s.Server, shell([]string{s.Server}))
		return nil, mcp.ErrDeclined
	}
	release, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	d := p.dialog(s.Server)
	d.Say("\n" + d.Paint(oneLine(s.Server)+" wants "+oneLine(s.Model)+" to complete this:", "1;36") + "\n")
	if s.Request.SystemPrompt != "" {
		d.Part("system", s.Request.SystemPrompt)
	}
	for _, m := range s.Request.Messages {
		d.Part(m.Role, screen.Content(m.Content))
	}
	if len(s.Request.Tools) > 0 {
		d.Say(d.Paint(fmt.Sprintf("with %d tools", len(s.Request.Tools)), "2") + "\n")
	}
	switch yes, err := d.Yes(ctx, "Allow it? [y/n] "); {
	case err != nil:
		return nil, err
	case !yes:
		return nil, mcp.ErrDeclined
	}
	return s.Request, nil
}

// ReviewAnswer implements host.Person.
func (p *person) ReviewAnswer(ctx context.Context, s *host.Sampling, r *mcp.SampleResult) (*mcp.SampleResult, error) {
	if p.keys == nil || p.letsSample(s.Server) {
		return r, nil
	}
	release, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	d := p.dialog(s.Server)
	d.Say("\n")
	d.Part("The answer for "+s.Server, screen.Content(r.Content))
	switch yes, err := d.Yes(ctx, "Send it? [y/n] "); {
	case err != nil:
		return nil, err
	case !yes:
		return nil, mcp.ErrDeclined
	}
	return r, nil
}

func (p *person) letsSample(server string) bool {
	return slices.ContainsFunc(p.sampling, func(pattern string) bool { return wildcard.Match(pattern, server) })
}
