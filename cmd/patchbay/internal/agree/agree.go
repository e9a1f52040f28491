// Package agree asks a person whether to use an mcp.json that somebody else may have written.
package agree

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/trust"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/launch"
)

// Asker asks the person at a terminal.
type Asker struct {
	Talk *terminal.Talk
	Keys func() *terminal.Keyboard
}

// Ask shows what a file starts and asks whether to use it. It drops input from before a
// person can have read that, which may answer another question.
func (k *Asker) Ask(ctx context.Context, file *config.File, faults config.Problems, why string) (bool, error) {
	lines := entry.Starts(file, faults)
	models := 0
	for _, m := range file.Models {
		if m.BaseURL != "" {
			models++
		}
	}
	amount := screen.Quantity(len(lines)-models-len(file.Hooks), "server")
	if n := len(file.Hooks); n > 0 {
		amount += ", " + screen.Quantity(n, "hook")
	}
	if models > 0 {
		amount += ", " + screen.Quantity(models, "model")
	}
	name := entry.Here(file.Path)
	return k.Confirm(ctx, name+" "+why+". It starts these, as you:", lines, fmt.Sprintf("%s: trust it from now on (%s)? [y/N] ", screen.Visible(name), amount))
}

// Confirm shows lines and asks a question that the person answers with yes or no. It drops input like
// Ask.
func (k *Asker) Confirm(ctx context.Context, intro string, lines []string, question string) (bool, error) {
	k.Talk.Hold()
	defer k.Talk.Release()
	k.Talk.Say(screen.Visible(intro) + "\n")
	for _, line := range lines {
		k.Talk.Say("  " + screen.Visible(line) + "\n")
	}
	keys := k.Keys()
	dropped, err := keys.Settle(ctx)
	switch {
	case errors.Is(err, terminal.ErrNeverQuiet):
		k.Talk.Say("cannot ask: the input never pauses\n")
		return false, nil
	case err != nil:
		return false, err
	case dropped:
		k.Talk.Say("earlier input is ignored\n")
	}
	k.Talk.Prompt(question)
	answer, err := keys.Line(ctx)
	if err != nil && ctx.Err() != nil {
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (answer == "y" || answer == "yes"), nil
}

// Store stores that the person agrees to the content of a file, of which print shows lines, or, with
// forget, that they no longer agree to the file.
func Store(ctx context.Context, path string, content []byte, lines []string, forget bool, print func(line string)) error {
	store, err := trust.Open("")
	switch {
	case err != nil:
		return err
	case forget:
		was, err := store.Forget(ctx, path)
		if err == nil {
			print(map[bool]string{true: "no longer trusted: ", false: "was not trusted: "}[was] + entry.Here(path))
		}
		return err
	}
	for _, line := range lines {
		print(line)
	}
	if err := store.Trust(ctx, path, content); err != nil {
		return err
	}
	print("trusted: " + entry.Here(path))
	return nil
}

// question is an open question whether to use the current content of a file. It owns a
// goroutine, which ends with the answer, and at the latest in Changes.Withdraw.
type question struct {
	text   string // the content in question
	cancel context.CancelFunc
	done   chan struct{} // closed when there is an answer
	err    error         // set before done closes; nil: yes or no
}

// Changes decides about the changes of a file. Only one goroutine uses it.
type Changes struct {
	*Asker
	Foreign func(path string) bool // reports whether somebody else may have written the file
	Asks    bool                   // the person can be asked

	question *question // open at the terminal
	refused  string    // content of the file that the person has refused
}

// Takes decides whether up uses a file that has changed, with the fault to print if it does not:
// the file is foreign, and the person has not agreed to its current content. At a terminal they are
// asked, once for each content, while up goes on serving and following files.
func (c *Changes) Takes(ctx context.Context, file *config.File, faults config.Problems) launch.Decision {
	text := string(entry.Agreement(file))
	if !c.Foreign(file.Path) {
		return launch.Decision{Take: true}
	}
	s, err := trust.Open("")
	if err != nil {
		return launch.Decision{Fault: err.Error() + "; the servers are unchanged"}
	}
	d := launch.Decision{Files: []string{s.Path()}}
	changed := "has changed"
	yes, err := s.Trusts(file.Path, entry.Agreement(file))
	if !yes && c.question != nil && c.question.text != text {
		c.Withdraw()
		changed = "has changed again"
	}
	if err == nil && yes {
		if c.Withdraw() {
			c.Talk.Note("the question is withdrawn: %s is trusted", file.Path)
		}
		d.Take = true
		return d
	}
	if q := c.question; q != nil {
		select {
		case <-q.done:
			err, c.refused, c.question = q.err, text, nil
		default:
			d.Later = q.done
			return d
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
	case err != nil:
		d.Fault = err.Error() + "; the servers are unchanged"
	case c.Asks && text != c.refused:
		ctx, cancel := context.WithCancel(ctx)
		q := &question{text: text, cancel: cancel, done: make(chan struct{})}
		c.question, d.Later = q, q.done
		go func() {
			defer close(q.done)
			defer cancel()
			yes, err := c.Ask(ctx, file, faults, changed)
			if err == nil && yes {
				err = s.Trust(ctx, file.Path, entry.Agreement(file))
			}
			q.err = err
		}()
	default:
		d.Fault = fmt.Sprintf("%s has changed and is not trusted yet; the servers are unchanged\npatchbay: hint: patchbay config trust %s",
			file.Path, screen.Shell([]string{ownfile.InRealFolder(file.Path)}))
	}
	return d
}

// Withdraw withdraws an open question, and reports whether there was one.
func (c *Changes) Withdraw() bool {
	q := c.question
	if c.question = nil; q == nil {
		return false
	}
	select {
	case <-q.done:
		return false
	default:
	}
	q.cancel()
	<-q.done
	c.Talk.Say("\n")
	return true
}
