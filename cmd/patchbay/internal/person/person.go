// Package person implements host.Person for a person who is asked line by line, at a terminal.
package person

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/allow"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/internal/wildcard"
	"github.com/patchbay-dev/patchbay/mcp"
)

// Person asks one question at a time. Questions that were answered in advance are not asked; those
// that cannot be answered are refused, with a note. Make it with [New].
type Person struct {
	Keys *terminal.Keyboard // nil: there is no person

	// Answers answers elicitation requests. If nil, the person is asked.
	Answers func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)

	Sampling []string // patterns of servers whose sampling requests are accepted without a question

	talk  *terminal.Talk
	width int           // of the terminal, in columns
	turn  chan struct{} // capacity 1: a goroutine that has sent may ask
}

var _ host.Person = (*Person)(nil)

// New returns a Person without Keys, who is asked on talk, in lines of width columns.
func New(talk *terminal.Talk, width int) *Person {
	return &Person{talk: talk, width: width, turn: make(chan struct{}, 1)}
}

// Beside opens the terminal of a program whose standard input is something else; nil: there is
// none.
func Beside() io.Reader {
	name := "/dev/tty"
	if runtime.GOOS == "windows" {
		name = "CONIN$"
	}
	f, err := os.OpenFile(name, os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	return f // stays open until the program ends
}

// take waits for its turn, and holds the terminal until release.
func (p *Person) take(ctx context.Context) (release func(), err error) {
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p.talk.Hold()
	return func() {
		p.talk.Release()
		<-p.turn
	}, nil
}

func (p *Person) dialog(server string) *terminal.Dialog {
	return &terminal.Dialog{Talk: p.talk, Keys: p.Keys, Width: p.width, Server: server}
}

// Approve implements host.Person.
func (p *Person) Approve(ctx context.Context, ask *host.Approval) (host.Verdict, error) {
	if p.Keys == nil {
		if ask.Changed != "" {
			p.talk.Note("%s has changed since it was allowed: %s", screen.OneLine(ask.Server+"/"+ask.Tool.Name), screen.OneLine(ask.Changed))
			for _, line := range changes(ask) {
				if !p.talk.Quiet {
					p.talk.Always(p.talk.Paint(screen.Wrap(line.String(), p.width), line.Style()))
				}
			}
		}
		return host.Verdict{}, host.ErrNobody
	}
	release, err := p.take(ctx)
	if err != nil {
		return host.Verdict{}, err
	}
	defer release()
	d := p.dialog(ask.Server)
	d.Say("\n" + d.Paint("The model wants to call "+screen.OneLine(ask.Server+"/"+ask.Tool.Name), "1;36") + "\n")
	for _, remark := range remarks(ask) {
		d.Say(d.Paint(screen.Wrap(screen.Visible(remark), d.Width), "33") + "\n")
	}
	for _, line := range changes(ask) {
		d.Say(d.Paint(screen.Wrap(line.String(), d.Width), line.Style()) + "\n")
	}
	d.Say(screen.Visible(screen.Indented(ask.Arguments)) + "\n")
	v, err := verdict(ctx, d, ask)
	var no terminal.Refusal
	if errors.As(err, &no) {
		return host.Verdict{}, nil
	}
	return v, err
}

// verdict asks until there is a decision.
func verdict(ctx context.Context, d *terminal.Dialog, ask *host.Approval) (host.Verdict, error) {
	for {
		text, err := d.Read(ctx, "Allow it? [y]es, in this [r]un, [a]lways, [m]ore, [n]o, or say why not: ")
		if err != nil {
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
		case "m", "more":
			if v, err := more(ctx, d, ask); v.Answer != host.Deny || err != nil {
				return v, err
			}
		case "n", "no":
			return host.Verdict{}, nil
		default:
			if len(text) < 4 { // too short to be a reason: probably a typing error
				d.Say("  y, r, a, m, n, or a reason in words\n")
				continue
			}
			return host.Verdict{Reason: text}, nil
		}
	}
}

// changes returns what has changed in a tool since it was allowed, if that is known.
func changes(ask *host.Approval) []allow.Line {
	if ask.Before == nil {
		return nil
	}
	return allow.Diff(ask.Before, ask.Tool)
}

// remarks returns what a person should know about a call besides its arguments.
func remarks(ask *host.Approval) (list []string) {
	if ask.Changed != "" {
		list = append(list, "Warning: it has changed since you allowed it: "+ask.Changed)
	}
	if ask.Doubt != "" {
		list = append(list, "Warning: "+ask.Doubt)
	}
	if ask.ReadOnly {
		list = append(list, "Hints: read-only.")
	} else if ask.Destructive {
		list = append(list, "Hints: destructive.")
	}
	return list
}

// Elicit implements host.Person.
func (p *Person) Elicit(ctx context.Context, q *host.Elicitation) (*mcp.ElicitResult, error) {
	if p.Answers == nil && p.Keys == nil {
		p.talk.Note("declined the question %q of %s: no terminal to ask at; --on-elicit @answers.json answers it", screen.OneLine(q.Message), q.Server)
		return &mcp.ElicitResult{Action: "decline"}, nil
	}
	release, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if p.Answers != nil {
		return p.Answers(ctx, q.ElicitRequest)
	}
	return p.dialog(q.Server).Ask(ctx, q.ElicitRequest)
}

// ReviewRequest implements host.Person.
func (p *Person) ReviewRequest(ctx context.Context, s *host.Sampling) (*mcp.SampleRequest, error) {
	if p.letsSample(s.Server) {
		return s.Request, nil
	}
	if p.Keys == nil {
		p.talk.Note("refused sampling for %s; --allow-sampling %s allows it", s.Server, screen.Shell([]string{s.Server}))
		return nil, mcp.ErrDeclined
	}
	release, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	d := p.dialog(s.Server)
	d.Say("\n" + d.Paint(screen.OneLine(s.Server)+" wants "+screen.OneLine(s.Model)+" to answer this:", "1;36") + "\n")
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
func (p *Person) ReviewAnswer(ctx context.Context, s *host.Sampling, r *mcp.SampleResult) (*mcp.SampleResult, error) {
	if p.Keys == nil || p.letsSample(s.Server) {
		return r, nil
	}
	release, err := p.take(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	d := p.dialog(s.Server)
	d.Say("\n")
	d.Part("answer for "+s.Server, screen.Content(r.Content))
	switch yes, err := d.Yes(ctx, "Send it? [y/n] "); {
	case err != nil:
		return nil, err
	case !yes:
		return nil, mcp.ErrDeclined
	}
	return r, nil
}

func (p *Person) letsSample(server string) bool {
	return slices.ContainsFunc(p.Sampling, func(pattern string) bool { return wildcard.Match(pattern, server) })
}
