package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/importer"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/hosts"
)

var configImportVerb = verb{
	name: "import", summary: "Import servers of other hosts.", usage: "[HOST | FILE] [NAME ...]",
	examples: []string{"patchbay config import", "patchbay config import claude-desktop", "patchbay config import vscode github --dry-run", "patchbay config import ~/.codex/config.toml"},
	details: `Hosts: claude-desktop, claude-code, cursor, vscode, windsurf, zed, goose, codex,
gemini. Without one, lists those with a file here. Skips servers whose name is
taken; --rename appends the host's name instead. Keeps unknown members of a
server. Never changes the host's own files.`,
	command: func() command { return new(configImportCmd) },
}

// configImportCmd imports servers from the files of other hosts. It never writes these files.
type configImportCmd struct {
	From   string   `arg:"" optional:"" help:"A host, or one of its files."`
	Names  []string `arg:"" optional:"" help:"Only these servers."`
	All    bool     `help:"Import from all hosts with a file here."`
	Rename bool     `help:"Append the host's name to a name that is taken."`
	DryRun bool     `name:"dry-run" help:"Show the result without writing it."`
	User   bool     `help:"Change your own file, which applies everywhere."`
}

func (*configImportCmd) candidates(a *app, _ string) (out []complete.Candidate) {
	if len(a.words) > 0 {
		return nil // servers of the host's file, which completion does not read
	}
	return hostNames()
}

// errDryRun ends an edit without writing.
var errDryRun = errors.New("dry run")

func (c *configImportCmd) Run(a *app) error {
	files, err := c.files(a)
	if err != nil {
		return err
	}
	if c.From == "" && !c.All {
		a.showForeign(files)
		return nil
	}
	in := &importer.Importer{Names: c.Names, Rename: c.Rename, Note: a.talk.Note}
	path, err := a.edit(c.User, func(doc *config.Document, path string) error {
		in.Doc, in.Path = doc, path
		for _, f := range files {
			if err := in.Add(f); err != nil {
				return err
			}
		}
		for _, name := range c.Names {
			if !in.Seen[name] {
				return usagef("%s has no server %q", c.From, name).Hint(shell([]string{"patchbay", "config", "import", c.From, "--dry-run"}))
			}
		}
		if c.DryRun {
			return errDryRun
		}
		return nil
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return err
	}
	for _, o := range in.Outcomes {
		a.print(o.Text)
		if c.DryRun && o.Added != nil {
			a.print("  " + a.shown(string(entry.Masked(o.Added))))
		}
	}
	switch {
	case len(in.Added) == 0:
		a.talk.Note("nothing was added to %s", path)
		return nil
	case c.DryRun:
		a.talk.Note("nothing was written to %s", path)
		return nil
	}
	a.afterEdit(path, in.Added)
	if in.Secrets > 0 && !filepath.IsAbs(path) {
		a.talk.Note("warning: %s now holds %s of env or headers: check them before you share the file", path, quantity(in.Secrets, "value"))
	}
	return nil
}

// files reads the files to import from.
func (c *configImportCmd) files(a *app) ([]importer.File, error) {
	sys, err := system()
	if err != nil {
		return nil, err
	}
	if c.From == "" {
		if len(c.Names) > 0 {
			return nil, usagef("missing host; names of servers go after it")
		}
		var all []importer.File
		for _, h := range hosts.All() {
			all = append(all, a.filesOf(h, sys)...)
		}
		return all, nil
	}
	if c.All {
		return nil, usagef("both --all and %s are given; keep one", c.From)
	}
	if info, err := os.Stat(c.From); err == nil && info.Mode().IsRegular() {
		f, err := importer.Read(c.From, sys)
		if err != nil {
			return nil, err
		}
		return []importer.File{f}, nil
	}
	h, err := hostNamed(c.From)
	if err != nil {
		return nil, err
	}
	files := a.filesOf(h, sys)
	if len(files) == 0 {
		var places []string
		for _, p := range h.Places(sys) {
			places = append(places, p.Path)
		}
		return nil, fmt.Errorf("no file of %s here; looked for %s", h.Title, strings.Join(places, ", "))
	}
	return files, nil
}

// filesOf reads the files of a host, with a warning for each that cannot be read.
func (a *app) filesOf(h hosts.Host, sys hosts.System) []importer.File {
	return importer.Find(h, sys, func(err error) { a.talk.Note("warning: %v", err) })
}

// showForeign lists the servers that can be imported.
func (a *app) showForeign(files []importer.File) {
	var rows [][]string
	for _, f := range files {
		var names []string
		for _, e := range f.Listing.Servers {
			names = append(names, e.Name)
		}
		if len(names) > 0 {
			rows = append(rows, []string{f.Host.Name, here(f.Path), strings.Join(names, ", ")})
		}
	}
	if len(rows) == 0 {
		a.talk.Note("no servers of other hosts here; patchbay config import FILE reads any file")
		return
	}
	a.columns("hosts", []string{"HOST", "FILE", "SERVERS"}, rows)
	a.talk.Note("hint: patchbay config import HOST imports them")
}
