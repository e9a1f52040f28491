package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/hosts"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
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

// foreign is the file of another host.
type foreign struct {
	host    hosts.Host
	path    string
	listing *hosts.Listing
}

// maxForeign bounds the file of another host, in bytes; some hosts keep much else in it.
const maxForeign = 64 << 20

func (c *configImportCmd) Run(a *app) error {
	files, err := c.files(a)
	if err != nil {
		return err
	}
	if c.From == "" && !c.All {
		a.showForeign(files)
		return nil
	}
	in := &importer{a: a, c: c, seen: make(map[string]bool)}
	path, err := a.edit(c.User, func(doc *config.Document, path string) error {
		in.doc, in.path = doc, path
		for _, f := range files {
			if err := in.file(f); err != nil {
				return err
			}
		}
		for _, name := range c.Names {
			if !in.seen[name] {
				return usagef("%s has no server %q", c.From, name).hint(shell([]string{"patchbay", "config", "import", c.From, "--dry-run"}))
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
	for _, line := range in.said {
		a.print(line)
	}
	switch {
	case len(in.added) == 0:
		a.talk.Note("nothing was added to %s", path)
		return nil
	case c.DryRun:
		a.talk.Note("nothing was written to %s", path)
		return nil
	}
	a.afterEdit(path, in.added)
	if in.secrets > 0 && !filepath.IsAbs(path) {
		a.talk.Note("warning: %s now holds %s of env or headers: check them before you share the file", path, quantity(in.secrets, "value"))
	}
	return nil
}

// files reads the files to import from.
func (c *configImportCmd) files(a *app) ([]foreign, error) {
	sys, err := system()
	if err != nil {
		return nil, err
	}
	if c.From == "" {
		if len(c.Names) > 0 {
			return nil, usagef("missing host; names of servers go after it")
		}
		var all []foreign
		for _, h := range hosts.All() {
			all = append(all, a.filesOf(h, sys)...)
		}
		return all, nil
	}
	if c.All {
		return nil, usagef("both --all and %s are given; keep one", c.From)
	}
	if info, err := os.Stat(c.From); err == nil && info.Mode().IsRegular() {
		data, err := readForeign(c.From)
		if err != nil {
			return nil, err
		}
		h := hosts.Guess(c.From, data)
		l, err := h.Read(data, hosts.From{Path: c.From, Dir: sys.Dir})
		return []foreign{{h, c.From, l}}, err
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

// filesOf reads the files of a host. It reports and skips a file that cannot be read.
func (a *app) filesOf(h hosts.Host, sys hosts.System) []foreign {
	var out []foreign
	for _, p := range h.Places(sys) {
		data, err := readForeign(p.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var l *hosts.Listing
		if err == nil {
			l, err = h.Read(data, hosts.From{Path: p.Path, Dir: sys.Dir})
		}
		if err != nil {
			a.talk.Note("warning: %s: %v", h.Title, err)
			continue
		}
		out = append(out, foreign{h, p.Path, l})
	}
	return out
}

func readForeign(path string) ([]byte, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxForeign+1))
	if err == nil && len(data) > maxForeign {
		err = fmt.Errorf("%s is over %s", path, bytesOf(maxForeign))
	}
	return data, err
}

// showForeign lists the servers that can be imported.
func (a *app) showForeign(files []foreign) {
	var rows [][]string
	for _, f := range files {
		var names []string
		for _, e := range f.listing.Servers {
			names = append(names, e.Name)
		}
		if len(names) > 0 {
			rows = append(rows, []string{f.host.Name, here(f.path), strings.Join(names, ", ")})
		}
	}
	if len(rows) == 0 {
		a.talk.Note("no servers of other hosts here; patchbay config import FILE reads any file")
		return
	}
	a.columns("hosts", []string{"HOST", "FILE", "SERVERS"}, rows)
	a.talk.Note("hint: patchbay config import HOST imports them")
}

// importer adds servers to a document.
type importer struct {
	a       *app
	c       *configImportCmd
	doc     *config.Document
	path    string
	seen    map[string]bool // names in the files
	said    []string        // lines to print once the file is written
	added   []string
	secrets int
}

// errDryRun ends an edit without writing.
var errDryRun = errors.New("dry run")

func (in *importer) file(f foreign) error {
	if same(f.path, in.path) {
		in.a.talk.Note("skipped %s, the file to import into", here(f.path))
		return nil
	}
	for _, note := range f.listing.Notes {
		in.a.talk.Note("%s: %s", here(f.path), note)
	}
	for _, e := range f.listing.Servers {
		in.seen[e.Name] = true
		if len(in.c.Names) > 0 && !slices.Contains(in.c.Names, e.Name) {
			continue
		}
		if err := in.server(f, e); err != nil {
			return err
		}
	}
	return nil
}

func (in *importer) server(f foreign, e config.Entry) error {
	say := func(text string) { in.said = append(in.said, text+" ("+f.host.Title+", "+here(f.path)+")") }
	original := e.Name
	if there, ok := in.doc.Entry(e.Name); ok {
		if bytes.Equal(jsonx.Canonical(there.Object), jsonx.Canonical(e.Object)) {
			say("same     " + oneLine(e.Name) + " is already there")
			return nil
		}
		if !in.c.Rename {
			say("skipped  " + oneLine(e.Name) + ": another server has that name; --rename adds it under a new name")
			return nil
		}
		e.Name = in.free(e.Name + "-" + f.host.Name)
	}
	inputs, clash := in.inputs(f, e)
	if clash != "" {
		say("skipped  " + oneLine(original) + ": the file has another input " + fmt.Sprintf("%q", clash))
		return nil
	}
	for _, raw := range inputs {
		if err := in.doc.AddInput(raw); err != nil {
			return err
		}
	}
	if err := in.doc.Add(e); err != nil {
		return err
	}
	in.added = append(in.added, e.Name)
	_, n := hosts.Redact(e)
	in.secrets += n
	text := "added    " + oneLine(e.Name)
	if e.Name != original {
		text += ", formerly " + oneLine(original)
	}
	say(text)
	if in.c.DryRun {
		in.said = append(in.said, "  "+in.a.shown(string(entry.Masked(e.Object))))
	}
	return nil
}

// free returns a name that is not in use.
func (in *importer) free(name string) string {
	for n := 1; ; n++ {
		try := name
		if n > 1 {
			try = fmt.Sprintf("%s-%d", name, n)
		}
		if _, taken := in.doc.Entry(try); !taken {
			return try
		}
	}
}

var inputRef = regexp.MustCompile(`\$\{input:([^}]*)\}`)

// inputs returns the inputs of a file that a server needs and the document lacks, or the id of one
// that the document defines differently.
func (in *importer) inputs(f foreign, e config.Entry) (add []json.RawMessage, clash string) {
	idOf := func(raw json.RawMessage) string {
		v, _ := jsonx.Lookup(raw, "id")
		id, err := jsonx.Unquote(v)
		if err != nil {
			return ""
		}
		return id
	}
	var done []string
	for _, m := range inputRef.FindAllSubmatch(e.Object, -1) {
		id, err := jsonx.Unquote(append(append([]byte{'"'}, m[1]...), '"'))
		if err != nil || slices.Contains(done, id) {
			continue
		}
		done = append(done, id)
		is := func(raw json.RawMessage) bool { return idOf(raw) == id }
		theirs := slices.IndexFunc(f.listing.Inputs, is)
		ours := slices.IndexFunc(in.doc.Inputs(), is)
		switch {
		case theirs < 0:
		case ours < 0:
			add = append(add, f.listing.Inputs[theirs])
		case !bytes.Equal(jsonx.Canonical(f.listing.Inputs[theirs]), jsonx.Canonical(in.doc.Inputs()[ours])):
			return nil, id
		}
	}
	return add, ""
}

// same reports whether two paths name one file.
func same(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}
