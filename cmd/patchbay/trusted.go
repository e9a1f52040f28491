package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/trust"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
	"github.com/patchbay-dev/patchbay/launch"
)

// An mcp.json runs commands as the person who starts this program beside it, and that person may
// only just have cloned or unpacked the folder. So a file that the command line does not name, and
// that is not the person's own, is used only after they have agreed to its current content.

var configTrustVerb = verb{
	name: "trust", summary: "Trust the mcp.json of a folder, or revoke the trust.", usage: "[FILE] [--forget]",
	examples: []string{"patchbay config trust", "patchbay config trust .mcp.json --forget"},
	details: `The servers of a folder's mcp.json start only after you trust it, here or when
up asks. A change of their commands or addresses needs new trust.`,
	command: func() command { return new(configTrustCmd) },
}

// configTrustCmd trusts a file.
type configTrustCmd struct {
	File   string `arg:"" optional:"" help:"The file; default: the one found from here."`
	Forget bool   `help:"Revoke the trust."`
}

func (c *configTrustCmd) Run(a *app) error {
	if c.File != "" {
		a.Config = c.File
	}
	store, err := trust.Open("")
	if err != nil {
		return err
	}
	read, err := a.inspectConfig()
	switch {
	case err != nil:
		return err
	case read.file == nil:
		return usagef("no mcp.json here").hint("patchbay config trust FILE")
	case c.Forget:
		was, err := store.Forget(a.ctx, read.path)
		if err == nil && was {
			a.print("no longer trusted: " + here(read.path))
		} else if err == nil {
			a.print("was not trusted: " + here(read.path))
		}
		return err
	}
	for _, line := range entry.Starts(read.file, read.faults) {
		a.print(visible(line))
	}
	if err := store.Trust(a.ctx, read.path, entry.Agreement(read.file)); err != nil {
		return err
	}
	a.print("trusted: " + here(read.path))
	return nil
}

// foreign reports whether somebody else may have written a file: the program found it in a folder,
// and the command line does not name it.
func (a *app) foreign(path string) bool {
	if a.Config != "" {
		return false
	}
	if user, ok := config.UserFile(); ok && sameFilePath(user, path) {
		return false
	}
	return true
}

// agreed reports whether a file is the person's own or they have agreed to its current content.
func (a *app) agreed(file *config.File) (bool, error) {
	if !a.foreign(file.Path) {
		return true, nil
	}
	store, err := trust.Open("")
	if err != nil {
		return false, err
	}
	return store.Trusts(file.Path, entry.Agreement(file))
}

// mayUse returns an error if the person has not agreed to a file. At a terminal they are asked,
// once.
func (a *app) mayUse(file *config.File) error {
	yes, err := a.agreed(file)
	if err != nil {
		return err
	}
	if !yes && a.tty.in && a.tty.err && !a.served {
		if yes, err = a.asksTrust(a.ctx, file, a.faultsOf(file), "is not trusted yet"); yes && err == nil {
			err = remember(a.ctx, file)
		}
		if now, e := ownfile.ReadNow(file.Path, config.MaxBytes); yes && err == nil && (e != nil || !bytes.Equal(now, file.Text)) {
			return fmt.Errorf("%s changed while you were asked; run this again", here(file.Path))
		}
	}
	if err != nil || yes {
		return err
	}
	path := here(file.Path)
	if a.served { // nobody knows in which folder a host starts this
		path = ownfile.InRealFolder(file.Path)
	}
	named := shell([]string{path})
	f := usagef("%s is not trusted yet, so its servers and models are not used", path)
	return f.hint("patchbay config trust " + named + " shows and trusts it; --config " + named + " trusts it for this run, edits included")
}

// remember stores that the person has agreed to a file.
func remember(ctx context.Context, file *config.File) error {
	store, err := trust.Open("")
	if err != nil {
		return err
	}
	return store.Trust(ctx, file.Path, entry.Agreement(file))
}

// asksTrust shows what a file starts and asks whether to use it. It drops input from before a
// person can have read that, which may answer another question.
func (a *app) asksTrust(ctx context.Context, file *config.File, faults config.Problems, why string) (bool, error) {
	a.talk.Hold()
	defer a.talk.Release()
	a.talk.Say(visible(here(file.Path)) + " " + why + ". It starts these, as you:\n")
	lines := entry.Starts(file, faults)
	for _, line := range lines {
		a.talk.Say("  " + visible(line) + "\n")
	}
	models := 0
	for _, m := range file.Models {
		if m.BaseURL != "" {
			models++
		}
	}
	amount := counted(len(lines)-models, "server")
	if models > 0 {
		amount += ", " + counted(models, "model")
	}
	keys := a.keyboard()
	dropped, err := keys.Settle(ctx)
	switch {
	case errors.Is(err, terminal.ErrNeverQuiet):
		a.talk.Say("cannot ask: the input never pauses\n")
		return false, nil
	case err != nil:
		return false, err
	case dropped:
		a.talk.Say("earlier input is ignored\n")
	}
	a.talk.Prompt(fmt.Sprintf("%s: trust it from now on (%s)? [y/N] ", visible(here(file.Path)), amount))
	answer, err := keys.Line(ctx)
	if err != nil && ctx.Err() != nil {
		return false, err
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return err == nil && (answer == "y" || answer == "yes"), nil
}

// faultsOf returns the faults of the file that was read.
func (a *app) faultsOf(file *config.File) config.Problems {
	if a.file == nil || a.file.file != file {
		return nil
	}
	return a.file.faults
}

// trustQuestion is an open question whether to use the current content of a file. It owns a
// goroutine, which ends with the answer, and at the latest in withdraw.
type trustQuestion struct {
	text   string // the content in question
	cancel context.CancelFunc
	done   chan struct{} // closed when there is an answer
	err    error         // set before done closes; nil: yes or no
}

// takes decides whether up uses a file that has changed, with the fault to print if it does not:
// the file is foreign, and the person has not agreed to its current content. At a terminal they are
// asked, once for each content, while up goes on serving and following files.
func (h *upServer) takes(ctx context.Context, file *config.File, faults config.Problems) launch.Decision {
	a, text := h.a, string(entry.Agreement(file))
	if !a.foreign(file.Path) {
		return launch.Decision{Take: true}
	}
	s, err := trust.Open("")
	if err != nil {
		return launch.Decision{Fault: err.Error() + "; the servers are unchanged"}
	}
	d := launch.Decision{Files: []string{s.Path()}}
	changed := "has changed"
	yes, err := s.Trusts(file.Path, entry.Agreement(file))
	if !yes && h.question != nil && h.question.text != text {
		h.withdraw()
		changed = "has changed again"
	}
	if err == nil && yes {
		if h.withdraw() {
			a.talk.Note("the question is withdrawn: %s is trusted", file.Path)
		}
		d.Take = true
		return d
	}
	if q := h.question; q != nil {
		select {
		case <-q.done:
			err, h.refused, h.question = q.err, text, nil
		default:
			d.Later = q.done
			return d
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
	case err != nil:
		d.Fault = err.Error() + "; the servers are unchanged"
	case a.tty.in && a.tty.err && !a.served && text != h.refused:
		ctx, cancel := context.WithCancel(ctx)
		q := &trustQuestion{text: text, cancel: cancel, done: make(chan struct{})}
		h.question, d.Later = q, q.done
		go func() {
			defer close(q.done)
			defer cancel()
			yes, err := a.asksTrust(ctx, file, faults, changed)
			if err == nil && yes {
				err = s.Trust(ctx, file.Path, entry.Agreement(file))
			}
			q.err = err
		}()
	default:
		d.Fault = fmt.Sprintf("%s has changed and is not trusted yet; the servers are unchanged\npatchbay: hint: patchbay config trust %s",
			file.Path, shell([]string{ownfile.InRealFolder(file.Path)}))
	}
	return d
}

// withdraw withdraws an open question, and reports whether there was one.
func (h *upServer) withdraw() bool {
	q := h.question
	if h.question = nil; q == nil {
		return false
	}
	select {
	case <-q.done:
		return false
	default:
	}
	q.cancel()
	<-q.done
	h.a.talk.Say("\n")
	return true
}

// stillTrusted keeps a file trusted when a subcommand has changed it, and trusts a file that a
// subcommand has created.
func (a *app) stillTrusted(path string, before, after []byte) {
	if !a.foreign(path) && a.Config == "" {
		return
	}
	s, err := trust.Open("")
	if err != nil {
		return // without the store no file can be trusted
	}
	yes, err := s.Trusts(path, before)
	if err == nil && (yes || slices.Contains([]string{"", "{}"}, strings.TrimSpace(string(before)))) {
		err = s.Trust(a.ctx, path, after)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		a.talk.Note("warning: %v", err)
	}
}
