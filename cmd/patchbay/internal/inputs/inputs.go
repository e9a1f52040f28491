// Package inputs resolves the inputs of an mcp.json.
//
// The value of an input comes from the environment, then from the answers kept in the vault. If
// neither has it, a person at the terminal is asked, and the answer is kept; without a person the
// default counts.
//
// # Guarantees
//
//   - An answer is never shown, and goes only to the servers that a person gave it to: a file that
//     changes, as those of repositories do, does not get it for another server without a question.
//   - Questions come one at a time, each once per run.
//   - A password is passed to Learn before it is returned.
package inputs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/patchbay-dev/patchbay/auth"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/config"
)

// Answers resolves inputs and remembers the answers of this run. Its exported fields are set before
// it is used; then it may be used by several goroutines.
type Answers struct {
	Context func() context.Context // returns the context of the run
	Talk    *terminal.Talk
	Keys    func() *terminal.Keyboard // the keyboard of the person at the terminal; nil: there is no person
	Learn   func(secrets ...string)

	mu    sync.Mutex
	known map[string]answer // by id; guarded by mu, which is held while a person is asked
	mute  bool              // no more questions; guarded by mu
	told  bool              // a line said where answers are kept; guarded by mu
}

// Silence ends the questions: from now on inputs resolve only from the environment, kept answers
// and defaults. It is for a terminal that is used for something else, or is not there.
func (a *Answers) Silence() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mute = true
}

// answer is the result for one input, a value or an error.
type answer struct {
	text auth.Secret
	err  error
	from answered
	uses []string // servers that may have it, see [Use]
}

// answered is the source of an answer.
type answered int

const (
	bySetting answered = iota // the environment, or the default
	byPerson                  // a person at the terminal, in this run
	byVault                   // a person, in an earlier run
)

// Answer returns the value of an input for a server.
func (a *Answers) Answer(s config.Server, in config.Input) (string, error) {
	got := a.input(s, in)
	return string(got.text), got.err
}

func (a *Answers) input(s config.Server, in config.Input) answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	use := Use(s)
	got, ok := a.known[in.ID]
	switch {
	case ok && (got.err != nil || got.from == bySetting || slices.Contains(got.uses, use)):
		return got
	case ok && got.from == byPerson: // asked for with another server of this run
		a.keepAnswer(s, in, &got)
	default:
		got = a.findInput(s, in)
	}
	if got.err == nil || !a.mute { // another process may keep an answer before the next attempt
		a.know(in, got)
	}
	return got
}

// know remembers an answer. The caller holds mu.
func (a *Answers) know(in config.Input, got answer) {
	if a.known == nil {
		a.known = make(map[string]answer)
	}
	a.known[in.ID] = got
	if in.Password && got.err == nil {
		a.Learn(string(got.text))
	}
}

func (a *Answers) findInput(s config.Server, in config.Input) answer {
	name := in.EnvName()
	if text, ok := os.LookupEnv(name); ok {
		if in.Type == "pickString" && len(in.Options) > 0 && !slices.Contains(in.Options, text) {
			return answer{err: fmt.Errorf("%s must be one of %s", name, strings.Join(in.Options, ", "))}
		}
		return answer{text: auth.Secret(text)}
	}
	kept, lost := a.Kept(s, in)
	if kept != nil && slices.Contains(kept.For, Use(s)) {
		return answer{text: kept.Text, from: byVault, uses: kept.For}
	}
	if !a.mute && a.Keys() != nil {
		if lost != nil {
			a.Talk.Note("warning: cannot read stored answers: %v", lost)
		}
		return a.askToKeep(s, in, kept)
	}
	set := "set " + name + ", or run this in a terminal to be asked"
	if a.mute {
		set = "set " + name + " and restart patchbay, or run patchbay ping -s " + screen.Shell([]string{s.Name}) + " in a terminal to be asked"
	}
	switch {
	case kept != nil:
		return answer{err: errors.New("the stored answer is for another server, or an earlier version of this one; " + set)}
	case lost != nil:
		return answer{err: fmt.Errorf("cannot read stored answers: %w; %s", lost, set)}
	case in.Default != "":
		return answer{text: auth.Secret(in.Default)}
	}
	return answer{err: errors.New(set)}
}

// askToKeep asks at the terminal and keeps the answer. If kept is not nil, another server was given
// that answer, and the person decides whether this server gets it too.
func (a *Answers) askToKeep(s config.Server, in config.Input, kept *Kept) answer {
	if kept != nil {
		a.Talk.Note("%s was not given to this version of %s before: %s", screen.OneLine(in.ID), s.Name, entry.Where(&s))
	}
	text, err := a.Ask(s.Name, in, kept != nil)
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

// Ask asks at the terminal on behalf of the server asker; empty: the program itself. A password is
// not shown while it is typed. If there is set, a kept answer exists, and an empty line stands for
// it.
func (a *Answers) Ask(asker string, in config.Input, there bool) (string, error) {
	a.Talk.Hold()
	defer a.Talk.Release()
	a.Keys().Drop()
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
			a.Talk.Say("  an answer is required (ctrl-D: none)\n")
		case strings.ContainsFunc(text, unicode.IsControl): // of a paste gone wrong, or an arrow key
			a.Talk.Say("  control characters are not allowed; try again\n")
		case len(in.Options) > 0 && !slices.Contains(in.Options, text):
			if n := slices.Index(numbers(len(in.Options)), text); n >= 0 {
				return in.Options[n], nil
			}
			a.Talk.Say("  not one of the choices\n")
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
func (a *Answers) readInput(asker string, in config.Input, there bool) (string, error) {
	if asker != "" {
		a.Talk.Say(a.Talk.Paint(screen.OneLine(asker)+" needs:", "1;36") + "\n")
	}
	for i, option := range in.Options {
		a.Talk.Say(fmt.Sprintf("  %2d) %s\n", i+1, screen.OneLine(option)))
	}
	prompt := a.Talk.Paint(screen.OneLine(cmp.Or(in.Description, in.ID)), "1")
	switch {
	case there:
		prompt += " [Enter: the stored answer]"
	case in.Password && in.Default != "":
		prompt += " [Enter: the default]"
	case in.Default != "":
		prompt += " [" + screen.OneLine(in.Default) + "]"
	}
	if in.Password {
		prompt += " (hidden)"
	}
	a.Talk.Say(prompt + ": ")
	read := a.Keys().Line
	if in.Password {
		read = a.Keys().Hidden
	}
	text, err := read(a.Context())
	if in.Password || err != nil {
		a.Talk.Say("\n") // the Enter that ended it was not shown either
	}
	if errors.Is(err, io.EOF) {
		return "", fmt.Errorf("no answer; or set %s", in.EnvName())
	}
	return text, err
}
