// Package importer adds the servers of other hosts to an mcp.json.
//
// [Find] and [Read] read the files of hosts, and [Importer.Add] adds the servers of one to a document.
//
// # Guarantees
//
//   - The files of other hosts are only read, at most [MaxBytes] of each.
//   - A server of the document stays as it is. A server with the same name is skipped or, with
//     Rename, added under a new name.
//   - Unknown members of a server are kept, and the inputs that it refers to are added with it.
package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/entry"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/hosts"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/pattern"
)

// File is the file of another host.
type File struct {
	Host    hosts.Host
	Path    string
	Listing *hosts.Listing
}

// MaxBytes bounds the file of another host; some hosts keep much else in it.
const MaxBytes = 64 << 20

// Read reads a file whose host it guesses.
func Read(path string, sys hosts.System) (File, error) {
	data, err := readFile(path)
	if err != nil {
		return File{}, err
	}
	h := hosts.Guess(path, data)
	l, err := h.Read(data, hosts.From{Path: path, Dir: sys.Dir})
	return File{h, path, l}, err
}

// Find reads the files of a host. It passes files that cannot be read to warn, and skips them.
func Find(h hosts.Host, sys hosts.System, warn func(error)) (files []File) {
	for _, p := range h.Places(sys) {
		data, err := readFile(p.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var l *hosts.Listing
		if err == nil {
			l, err = h.Read(data, hosts.From{Path: p.Path, Dir: sys.Dir})
		}
		if err != nil {
			warn(fmt.Errorf("%s: %w", h.Title, err))
			continue
		}
		files = append(files, File{h, p.Path, l})
	}
	return files
}

func readFile(path string) ([]byte, error) {
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
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err == nil && len(data) > MaxBytes {
		err = fmt.Errorf("%s is over %s", path, screen.Bytes(MaxBytes))
	}
	return data, err
}

// Importer adds servers to a document.
type Importer struct {
	Doc    *config.Document
	Path   string                           // of the document
	Names  []string                         // only these servers; empty: all
	Rename bool                             // append the host's name to a name that is taken
	Note   func(format string, args ...any) // receives the remarks on a file

	Outcomes []Outcome
	Seen     map[string]bool // names in the files
	Added    []string        // names in the document
	Secrets  int             // values of env and headers that may be secrets
}

// Outcome is the outcome for one server.
type Outcome struct {
	Text  string // a line for people
	Added []byte // the server as it was added; nil: it was not
}

// Add adds the servers of a file.
func (in *Importer) Add(f File) error {
	if same(f.Path, in.Path) {
		in.Note("skipped %s, the file to import into", entry.Here(f.Path))
		return nil
	}
	for _, note := range f.Listing.Notes {
		in.Note("%s: %s", entry.Here(f.Path), note)
	}
	for _, e := range f.Listing.Servers {
		if in.Seen == nil {
			in.Seen = make(map[string]bool)
		}
		in.Seen[e.Name] = true
		if len(in.Names) > 0 && !slices.Contains(in.Names, e.Name) {
			continue
		}
		if err := in.server(f, e); err != nil {
			return err
		}
	}
	return nil
}

func (in *Importer) server(f File, e config.Entry) error {
	say := func(text string, added []byte) {
		in.Outcomes = append(in.Outcomes, Outcome{text + " (" + f.Host.Title + ", " + entry.Here(f.Path) + ")", added})
	}
	original := e.Name
	if there, ok := in.Doc.Entry(e.Name); ok {
		if bytes.Equal(jsonx.Canonical(there.Object), jsonx.Canonical(e.Object)) {
			say("same     "+screen.OneLine(e.Name)+" is already there", nil)
			return nil
		}
		if !in.Rename {
			say("skipped  "+screen.OneLine(e.Name)+": another server has that name; --rename adds it under a new name", nil)
			return nil
		}
		e.Name = in.free(e.Name + "-" + f.Host.Name)
	}
	inputs, clash := in.inputs(f, e)
	if clash != "" {
		say("skipped  "+screen.OneLine(original)+": the file has another input "+fmt.Sprintf("%q", clash), nil)
		return nil
	}
	for _, raw := range inputs {
		if err := in.Doc.AddInput(raw); err != nil {
			return err
		}
	}
	if err := in.Doc.Add(e); err != nil {
		return err
	}
	in.Added = append(in.Added, e.Name)
	_, n := hosts.Redact(e)
	in.Secrets += n
	text := "added    " + screen.OneLine(e.Name)
	if e.Name != original {
		text += ", formerly " + screen.OneLine(original)
	}
	say(text, e.Object)
	return nil
}

// free returns a name that is not in use.
func (in *Importer) free(name string) string {
	for n := 1; ; n++ {
		try := name
		if n > 1 {
			try = fmt.Sprintf("%s-%d", name, n)
		}
		if _, taken := in.Doc.Entry(try); !taken {
			return try
		}
	}
}

var inputRef = pattern.Lazy(`\$\{input:([^}]*)\}`)

// inputs returns the inputs of a file that a server needs and the document lacks, or the id of one
// that the document defines differently.
func (in *Importer) inputs(f File, e config.Entry) (add []json.RawMessage, clash string) {
	idOf := func(raw json.RawMessage) string {
		v, _ := jsonx.Lookup(raw, "id")
		id, err := jsonx.Unquote(v)
		if err != nil {
			return ""
		}
		return id
	}
	var done []string
	for _, m := range inputRef().FindAllSubmatch(e.Object, -1) {
		id, err := jsonx.Unquote(append(append([]byte{'"'}, m[1]...), '"'))
		if err != nil || slices.Contains(done, id) {
			continue
		}
		done = append(done, id)
		is := func(raw json.RawMessage) bool { return idOf(raw) == id }
		theirs := slices.IndexFunc(f.Listing.Inputs, is)
		ours := slices.IndexFunc(in.Doc.Inputs(), is)
		switch {
		case theirs < 0:
		case ours < 0:
			add = append(add, f.Listing.Inputs[theirs])
		case !bytes.Equal(jsonx.Canonical(f.Listing.Inputs[theirs]), jsonx.Canonical(in.Doc.Inputs()[ours])):
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
