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

	"golang.org/x/term"

	"github.com/patchbay-dev/patchbay/config"
)

// The inputs of mcp.json are asked for when a server that needs them is started:
// first of the environment, then of the person at the terminal. An answer holds for
// the run of the program and is never shown, written or told to other servers.

// answers remembers what inputs were answered. The zero value is ready.
type answers struct {
	mu    sync.Mutex
	known map[string]answer // guarded by mu, which is held while a person is asked
	mute  bool              // nobody is asked any more; guarded by mu
}

// silence has questions from now on answered by the environment or not at all: the
// terminal is used for other things, or is none.
func (a *answers) silence() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mute = true
}

type answer struct {
	text string
	err  error
}

// input finds the value of an input. It may be called by several goroutines: one
// question is asked after the other, and each once.
func (a *app) input(in config.Input) (string, error) {
	a.answers.mu.Lock()
	defer a.answers.mu.Unlock()
	if got, ok := a.answers.known[in.ID]; ok {
		return got.text, got.err
	}
	var got answer
	got.text, got.err = a.findInput(in)
	if a.answers.known == nil {
		a.answers.known = make(map[string]answer)
	}
	a.answers.known[in.ID] = got
	if in.Password && got.err == nil {
		a.talk.hide(got.text)
	}
	return got.text, got.err
}

func (a *app) findInput(in config.Input) (string, error) {
	name := in.EnvName()
	if text, ok := os.LookupEnv(name); ok {
		if in.Type == "pickString" && len(in.Options) > 0 && !slices.Contains(in.Options, text) {
			return "", fmt.Errorf("%s is none of %s", name, strings.Join(in.Options, ", "))
		}
		return text, nil
	}
	if a.tty.in && a.tty.err && !a.answers.mute {
		return a.askInput(in)
	}
	if in.Default != "" {
		return in.Default, nil
	}
	if a.answers.mute {
		return "", fmt.Errorf("set %s and start patchbay again", name)
	}
	return "", fmt.Errorf("set %s, or run this in a terminal to be asked", name)
}

// askInput asks at the terminal. What is a password is not shown while it is typed.
func (a *app) askInput(in config.Input) (string, error) {
	a.talk.hold()
	defer a.talk.release()
	for {
		text, err := a.readInput(in)
		if err != nil {
			return "", err
		}
		switch {
		case text == "" && in.Default != "":
			return in.Default, nil
		case text == "":
			a.talk.say("  an answer is needed (ctrl-D: none)\n")
		case len(in.Options) > 0 && !slices.Contains(in.Options, text):
			if n := slices.Index(numbers(len(in.Options)), text); n >= 0 {
				return in.Options[n], nil
			}
			a.talk.say("  that is none of the choices\n")
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
func (a *app) readInput(in config.Input) (string, error) {
	for i, option := range in.Options {
		a.talk.say(fmt.Sprintf("  %2d) %s\n", i+1, oneLine(option)))
	}
	prompt := a.talk.paint(oneLine(orName(in.Description, in.ID)), "1")
	switch {
	case in.Password && in.Default != "":
		prompt += " [Enter takes the default]"
	case in.Default != "":
		prompt += " [" + oneLine(in.Default) + "]"
	}
	if in.Password {
		prompt += " (hidden)"
	}
	a.talk.say(prompt + ": ")
	text, err := a.line(in.Password)
	if in.Password || err != nil {
		a.talk.say("\n") // Enter was not shown either
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
		if a.keys == nil {
			a.keys = newKeyboard(a.stdin)
		}
		return a.keys.line(a.ctx)
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
