package main

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/auth/vault"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/inputs"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

var configInputsVerb = verb{
	name: "inputs", summary: "List the inputs of mcp.json, and delete stored answers.", usage: "[ID ...] [--forget]",
	examples: []string{"patchbay config inputs", "patchbay config inputs --forget token"},
	details: `Answers given at the terminal are stored in the vault, for this file and the
servers that asked. The variable PATCHBAY_INPUT_ID takes precedence.`,
	command: func() command { return new(configInputsCmd) },
}

// configInputsCmd lists the inputs of mcp.json and the sources of their answers, and forgets
// answers.
type configInputsCmd struct {
	IDs    []string `arg:"" optional:"" name:"id" help:"Only these inputs."`
	Forget bool     `help:"Delete stored answers."`
}

func (*configInputsCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	read, err := a.inspectConfig()
	if err != nil || read.path == "" {
		return nil
	}
	doc, err := config.Open(read.path)
	if err != nil {
		return nil
	}
	for _, id := range jsonx.Texts(doc.Inputs(), "id") {
		out = append(out, complete.Candidate{Text: id})
	}
	return out
}

func (c *configInputsCmd) Run(a *app) error {
	path, err := a.configPath()
	if err != nil {
		return err
	}
	if path == "" {
		return usagef("no mcp.json was found").Hint(a.beside("config", "list"))
	}
	// Kept answers can be forgotten even if the file is faulty or missing.
	file, _, err := config.Inspect(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = &config.File{Path: path}, nil
	}
	if err != nil {
		return err
	}
	v, err := vault.Open("", nil)
	if err != nil {
		return err
	}
	kept, err := inputs.AllKept(v, path)
	if err != nil {
		return err
	}
	rows := inputs.Rows(file, kept)
	for _, id := range c.IDs {
		if !slices.ContainsFunc(rows, func(r inputs.Row) bool { return r.ID == id }) {
			var ids []string
			for _, r := range rows {
				ids = append(ids, r.ID)
			}
			return usagef("%s has no input %q%s", here(path), id, didYouMean(id, ids)).Hint(a.beside("config", "inputs"))
		}
	}
	if c.Forget {
		return c.forget(a, path)
	}
	if len(c.IDs) > 0 {
		rows = slices.DeleteFunc(rows, func(r inputs.Row) bool { return !slices.Contains(c.IDs, r.ID) })
	}
	if a.JSON {
		return a.printJSON(rows)
	}
	a.printInputs(rows)
	if len(kept) > 0 {
		a.talk.Note("stored in %s; --forget deletes", v.Where())
	}
	return nil
}

func (c *configInputsCmd) forget(a *app, path string) error {
	gone, err := inputs.Forget(a.ctx, path, c.IDs...)
	if err != nil {
		return err
	}
	if a.JSON {
		return a.printJSON(append([]string{}, gone...))
	}
	for _, id := range gone {
		a.print("deleted " + a.shown(oneLine(id)))
	}
	if len(gone) == 0 {
		a.talk.Note("no stored answers")
	}
	return nil
}

func (a *app) printInputs(rows []inputs.Row) {
	cells := [][]string{}
	for _, r := range rows {
		state := "not answered"
		switch {
		case r.Set:
			state = "from " + r.Variable
		case r.Kept != nil:
			state = "stored for " + age(*r.Kept, time.Now())
		}
		about := r.Description
		if r.Gone {
			about = "(no longer in the file)"
		}
		cells = append(cells, []string{r.ID, state, orName(strings.Join(append(slices.Clone(r.Servers), r.Models...), ", "), "-"), orName(about, "-")})
	}
	a.columns("inputs", []string{"ID", "ANSWER", "SERVERS", "ABOUT"}, cells)
}
