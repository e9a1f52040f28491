package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/term"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/config"
)

// The inputs of mcp.json are asked for when a server that needs them is started: first of
// the environment, then of the vault, then of the person at the terminal, whose answer is
// kept in the vault (inputkept.go). An answer is never shown, and told to no server but those
// it was given for.

// answers remembers what inputs were answered. The zero value is ready.
type answers struct {
	mu    sync.Mutex
	known map[string]answer // by id; guarded by mu, which is held while a person is asked
	mute  bool              // nobody is asked any more; guarded by mu
	told  bool              // it was said where answers are kept; guarded by mu
}

// silence has questions from now on answered by the environment or not at all: the
// terminal is used for other things, or is none.
func (a *answers) silence() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mute = true
}

// answer is what became of the question for one input.
type answer struct {
	text auth.Secret
	err  error
	from answered
	uses []string // servers that it is kept for, see [useOf]
}

// answered is who has answered.
type answered int

const (
	bySetting answered = iota // the environment, or the default
	byPerson                  // at the terminal, in this run
	byVault                   // a person, in an earlier run
)

// input finds the value of an input for a server.
func (a *app) input(s config.Server, in config.Input) answer {
	a.answers.mu.Lock()
	defer a.answers.mu.Unlock()
	use := useOf(s)
	got, ok := a.answers.known[in.ID]
	switch {
	case ok && (got.err != nil || got.from == bySetting || slices.Contains(got.uses, use)):
		return got
	case ok && got.from == byPerson: // asked for with another server of this run
		a.keepAnswer(s, in, &got)
	default:
		got = a.findInput(s, in)
	}
	if got.err == nil || !a.answers.mute { // what another process is told may be there at the next try
		a.know(in, got)
	}
	return got
}

// know remembers an answer. It is called with the lock of answers held.
func (a *app) know(in config.Input, got answer) {
	if a.answers.known == nil {
		a.answers.known = make(map[string]answer)
	}
	a.answers.known[in.ID] = got
	if in.Password && got.err == nil {
		a.secrets.Learn(string(got.text))
	}
}

func (a *app) findInput(s config.Server, in config.Input) answer {
	name := in.EnvName()
	if text, ok := os.LookupEnv(name); ok {
		if in.Type == "pickString" && len(in.Options) > 0 && !slices.Contains(in.Options, text) {
			return answer{err: fmt.Errorf("%s is none of %s", name, strings.Join(in.Options, ", "))}
		}
		return answer{text: auth.Secret(text)}
	}
	kept, lost := a.keptAnswer(s, in)
	if kept != nil && slices.Contains(kept.For, useOf(s)) {
		return answer{text: kept.Text, from: byVault, uses: kept.For}
	}
	if a.tty.in && a.tty.err && !a.answers.mute {
		if lost != nil {
			a.talk.Note("warning: kept answers cannot be read: %v", lost)
		}
		return a.askToKeep(s, in, kept)
	}
	set := "set " + name + ", or run this in a terminal to be asked"
	if a.answers.mute {
		set = "set " + name + " and start patchbay again, or be asked by patchbay ping -s " + shell([]string{s.Name}) + " in a terminal"
	}
	switch {
	case kept != nil:
		return answer{err: errors.New("the kept answer is for another server, or for this one as it was written before; " + set)}
	case lost != nil:
		return answer{err: fmt.Errorf("kept answers cannot be read: %w; %s", lost, set)}
	case in.Default != "":
		return answer{text: auth.Secret(in.Default)}
	}
	return answer{err: errors.New(set)}
}

// askToKeep asks at the terminal, and keeps the answer. Kept, which may be nil, is one that
// another server was given: a person decides whether this one gets it.
func (a *app) askToKeep(s config.Server, in config.Input, kept *keptAnswer) answer {
	if kept != nil {
		a.talk.Note("%s was not given to %s before, as that is written now: %s", oneLine(in.ID), s.Name, where(&s))
	}
	text, err := a.askInput(s.Name, in, kept != nil)
	if err != nil {
		return answer{err: err}
	}
	got := answer{text: auth.Secret(text), from: byPerson}
	if text == "" && kept != nil {
		got.text, got.uses = kept.Text, kept.For
	}
	a.keepAnswer(s, in, &got)
	return got
}

// askInput asks at the terminal for what the server asker needs; empty: it is for the program
// itself. What is a password is not shown while it is typed. If there is
// an answer already, an empty one stands for that.
func (a *app) askInput(asker string, in config.Input, there bool) (string, error) {
	a.talk.Hold()
	defer a.talk.Release()
	a.keyboard().Drop()
	for {
		text, err := a.readInput(asker, in, there)
		if err != nil {
			return "", err
		}
		switch {
		case text == "" && there:
			return "", nil
		case text == "" && in.Default != "":
			return in.Default, nil
		case text == "":
			a.talk.Say("  an answer is needed (ctrl-D: none)\n")
		case strings.ContainsFunc(text, unicode.IsControl): // of a paste gone wrong, or an arrow key
			a.talk.Say("  that has control characters in it; once more\n")
		case len(in.Options) > 0 && !slices.Contains(in.Options, text):
			if n := slices.Index(numbers(len(in.Options)), text); n >= 0 {
				return in.Options[n], nil
			}
			a.talk.Say("  that is none of the choices\n")
		default:
			return text, nil
		}
	}
}

// numbers returns "1" to n.
func numbers(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(i + 1)
	}
	return out
}

// readInput shows the question and reads one line.
func (a *app) readInput(asker string, in config.Input, there bool) (string, error) {
	if asker != "" {
		a.talk.Say(a.talk.Paint(oneLine(asker)+" needs:", "1;36") + "\n")
	}
	for i, option := range in.Options {
		a.talk.Say(fmt.Sprintf("  %2d) %s\n", i+1, oneLine(option)))
	}
	prompt := a.talk.Paint(oneLine(orName(in.Description, in.ID)), "1")
	switch {
	case there:
		prompt += " [Enter gives it what is kept]"
	case in.Password && in.Default != "":
		prompt += " [Enter takes the default]"
	case in.Default != "":
		prompt += " [" + oneLine(in.Default) + "]"
	}
	if in.Password {
		prompt += " (hidden)"
	}
	a.talk.Say(prompt + ": ")
	text, err := a.line(in.Password)
	if in.Password || err != nil {
		a.talk.Say("\n") // Enter was not shown either
	}
	if errors.Is(err, io.EOF) {
		return "", fmt.Errorf("no answer was given; %s answers it too", in.EnvName())
	}
	return text, err
}

// line reads a line of the terminal.
func (a *app) line(hidden bool) (string, error) {
	stdin, ok := a.stdin.(*os.File)
	if !hidden || !ok {
		return a.keyboard().Line(a.ctx)
	}
	fd := int(stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type read struct {
		text []byte
		err  error
	}
	done := make(chan read, 1)
	go func() { // a read of a terminal cannot be ended: after ctrl-C it lives as long as the program
		text, err := term.ReadPassword(fd)
		done <- read{text, err}
	}()
	select {
	case r := <-done:
		return string(r.text), r.err
	case <-a.ctx.Done():
		term.Restore(fd, before) // what is typed is to be seen again
		return "", context.Cause(a.ctx)
	}
}
