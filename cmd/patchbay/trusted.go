package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/agree"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/instructions"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/trust"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// An mcp.json runs commands as the person who starts this program beside it, and that person may
// only just have cloned or unpacked the folder. So a file that the command line does not name, and
// that is not the person's own, is used only after they have agreed to its current content.

var configTrustVerb = verb{
	name: "trust", summary: "Trust the mcp.json or AGENTS.md of a folder, or revoke it.", usage: "[FILE] [--forget]",
	examples: []string{"patchbay config trust", "patchbay config trust .mcp.json --forget"},
	details: `The servers of a folder's mcp.json start only after you trust it, here or when
up asks. A change of their commands or addresses needs new trust. The text of an
AGENTS.md, and the skills in .agents/skills, reach models after the same.`,
	command: func() command { return new(configTrustCmd) },
}

// configTrustCmd trusts a file.
type configTrustCmd struct {
	File   string `arg:"" optional:"" help:"The file; default: the one found from here."`
	Forget bool   `help:"Revoke the trust."`
}

func (c *configTrustCmd) Run(a *app) error {
	if instructions.Is(c.File) {
		return instructions.Trust(a.ctx, c.File, c.Forget, a.show)
	}
	if c.File != "" {
		a.Config = c.File
	}
	read, err := a.inspectConfig()
	switch {
	case err != nil:
		return err
	case read.file == nil:
		return usagef("no mcp.json here").Hint("patchbay config trust FILE")
	}
	return agree.Store(a.ctx, read.path, entry.Agreement(read.file), entry.Starts(read.file, read.faults), c.Forget, a.show)
}

// show prints a line of text from elsewhere.
func (a *app) show(line string) { a.print(visible(line)) }

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
		if yes, err = a.asker().Ask(a.ctx, file, a.faultsOf(file), "is not trusted yet"); yes && err == nil {
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
	return f.Hint("patchbay config trust " + named + " shows and trusts it; --config " + named + " trusts it for this run, edits included")
}

// instruct has the host start servers of the skills that the person trusts, and returns the system prompt, with the instructions of AGENTS.md that the person trusts. If
// asks is set and they are at a terminal, they are asked.
func (a *app) instruct(h *hosting, f modelFlags, otherwise string, asks bool) (string, error) {
	system, err := a.system(f, otherwise)
	if err != nil {
		return "", err
	}
	r := &instructions.Reader{Asker: a.asker(), Asks: asks && a.tty.in && a.tty.err, Note: a.talk.Note}
	if h.skills, err = r.Skills(a.ctx); err != nil {
		return "", err
	}
	return r.Add(a.ctx, system)
}

// remember stores that the person has agreed to a file.
func remember(ctx context.Context, file *config.File) error {
	store, err := trust.Open("")
	if err != nil {
		return err
	}
	return store.Trust(ctx, file.Path, entry.Agreement(file))
}

// asker returns what asks the person at the terminal.
func (a *app) asker() *agree.Asker { return &agree.Asker{Talk: a.talk, Keys: a.keyboard} }

// faultsOf returns the faults of the file that was read.
func (a *app) faultsOf(file *config.File) config.Problems {
	if a.file == nil || a.file.file != file {
		return nil
	}
	return a.file.faults
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
