package config

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// Entry is one server or model as it is in a file: nothing is replaced or left out.
type Entry struct {
	Name   string
	Object json.RawMessage // its members, in their order
}

// Document is the text of a configuration file: [Open] reads one, [Edit] changes one. Unchanged
// parts keep their comments, order and layout.
type Document struct {
	path string
	was  []byte // nil: there is no file yet
	data []byte
	root *node
}

// Open reads a file; use [Edit] to change one. A missing file counts as empty. The error is
// [Problems] if the file as a whole is wrong, or a server has no name or that of another one; other
// faults of single servers are not errors.
func Open(path string) (*Document, error) {
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		d := &Document{path: path}
		return d, d.set([]byte("{}\n"))
	}
	if err != nil {
		return nil, err
	}
	d := &Document{path: path, was: data}
	if len(bytes.TrimSpace(bytes.TrimPrefix(data, utf8BOM))) == 0 {
		data = []byte("{}\n")
	}
	return d, d.set(data)
}

// set replaces the text, if the new one is valid as a whole.
func (d *Document) set(data []byte) error {
	l, err := newLoader(d.path, data, nil)
	if err != nil {
		return err
	}
	l.unfinished = true
	l.load()
	if whole := slices.DeleteFunc(l.problems, func(p Problem) bool { return !p.unnamed && (p.Server != "" || p.Model != "") }); len(whole) > 0 {
		return whole
	}
	root, err := parseTree(strip(data))
	if err != nil {
		return err
	}
	d.data, d.root = data, root
	return nil
}

// Bytes returns the current text.
func (d *Document) Bytes() []byte { return bytes.Clone(d.data) }

// lists returns the objects that list servers.
func (d *Document) lists() []*node {
	var out []*node
	for _, name := range []string{"mcpServers", "servers"} {
		if n := homeOf(d.root).member(name); n != nil {
			out = append(out, n)
		}
	}
	if own := d.root.member("patchbay"); own != nil {
		if n := own.member("servers"); n != nil {
			out = append(out, n)
		}
	}
	return out
}

// Entries returns the servers of the file unchanged. Those only under "patchbay" come last;
// settings there for other servers are not included.
func (d *Document) Entries() []Entry {
	var out []Entry
	text, seen := strip(d.data), make(map[string]bool)
	for _, list := range d.lists() {
		for _, m := range list.members {
			if !seen[m.name] && m.value.kind == '{' {
				seen[m.name] = true
				out = append(out, Entry{m.name, compact(text[m.value.pos:m.value.end])})
			}
		}
	}
	return out
}

// Entries returns the servers of the file unchanged, also those with faults, as [Document.Entries]
// does. Of several with one name it returns the first.
func (f *File) Entries() []Entry {
	root, err := parseTree(strip(f.Text))
	if err != nil || root.kind != '{' {
		return nil
	}
	return (&Document{data: f.Text, root: root}).Entries()
}

func compact(raw []byte) json.RawMessage { return jsonx.Compact(nil, raw) }

// Entry returns one server of the file.
func (d *Document) Entry(name string) (Entry, bool) {
	for _, e := range d.Entries() {
		if e.Name == name {
			return e, true
		}
	}
	return Entry{}, false
}

// Inputs returns the inputs of the file unchanged.
func (d *Document) Inputs() []json.RawMessage {
	var out []json.RawMessage
	if n := homeOf(d.root).member("inputs"); n != nil {
		text := strip(d.data)
		for _, item := range n.items {
			out = append(out, compact(text[item.pos:item.end]))
		}
	}
	return out
}

// Add adds a server to the end of the list that the file has, or to a new one:
// "servers" in "mcp" or a folder .vscode, else "mcpServers". A name that is there already is
// an error.
func (d *Document) Add(e Entry) error {
	if _, ok := d.Entry(e.Name); ok {
		return fmt.Errorf("%s has a server %s already", d.path, quote(e.Name))
	}
	if !utf8.ValidString(e.Name) {
		return errors.New("the name of a server is not UTF-8")
	}
	if err := jsonx.Valid(e.Object, 0); err != nil || jsonx.KindOf(e.Object) != '{' {
		return fmt.Errorf("the server %s is not a JSON object", quote(e.Name))
	}
	if homeOf(d.root) != d.root {
		return d.insert(e.Name, e.Object, "mcp", "servers")
	}
	name := "mcpServers"
	if d.root.member(name) == nil && (d.root.member("servers") != nil || filepath.Base(filepath.Dir(d.path)) == ".vscode") {
		name = "servers"
	}
	return d.insert(e.Name, e.Object, name)
}

// insert adds a member to the object at path, and creates missing objects.
func (d *Document) insert(name string, value json.RawMessage, path ...string) error {
	obj := d.root
	for len(path) > 0 {
		below := obj.member(path[0])
		if below == nil {
			break
		}
		obj, path = below, path[1:]
	}
	if obj.kind != '{' {
		return fmt.Errorf("%s has no object to put %s into", d.path, quote(name))
	}
	for i := len(path) - 1; i >= 0; i-- {
		value = json.RawMessage("{" + string(jsonx.AppendString(nil, name)) + ": " + string(value) + "}")
		name = path[i]
	}
	l := layoutOf(d.data, d.root)
	return d.set(insertMember(d.data, obj, l, func(indent string, oneLine bool) string {
		return string(jsonx.AppendString(nil, name)) + ": " + format(value, indent, l, oneLine)
	}))
}

// AddInput adds an input, which servers refer to by its id.
func (d *Document) AddInput(input json.RawMessage) error {
	if err := jsonx.Valid(input, 0); err != nil || jsonx.KindOf(input) != '{' {
		return errors.New("an input is not a JSON object")
	}
	l := layoutOf(d.data, d.root)
	home := homeOf(d.root)
	list := home.member("inputs")
	if list == nil {
		return d.set(insertMember(d.data, home, l, func(indent string, oneLine bool) string {
			return `"inputs": ` + format(json.RawMessage("["+string(input)+"]"), indent, l, oneLine)
		}))
	}
	var places [][2]int
	for _, item := range list.items {
		places = append(places, [2]int{item.pos, item.end})
	}
	return d.set(insertInto(d.data, list, places, l, func(indent string, oneLine bool) string {
		return format(input, indent, l, oneLine)
	}))
}

// Models returns the models of the file unchanged.
func (d *Document) Models() []Entry {
	var out []Entry
	text := strip(d.data)
	if list := d.patchbayMember("models"); list != nil {
		for _, m := range list.members {
			out = append(out, Entry{m.name, compact(text[m.value.pos:m.value.end])})
		}
	}
	return out
}

// patchbayMember returns a member of "patchbay" at the top of the file, or nil.
func (d *Document) patchbayMember(name string) *node {
	if own := d.root.member("patchbay"); own != nil {
		return own.member(name)
	}
	return nil
}

// Model returns the name of the chosen model, or "" if the file has none.
func (d *Document) Model() string {
	if n := d.patchbayMember("model"); n != nil {
		return n.text
	}
	return ""
}

// AddModel adds a model to "models" of "patchbay". An existing name is an error.
func (d *Document) AddModel(e Entry) error {
	if slices.ContainsFunc(d.Models(), func(m Entry) bool { return m.Name == e.Name }) {
		return fmt.Errorf("%s has a model %s already", d.path, quote(e.Name))
	}
	if !utf8.ValidString(e.Name) {
		return errors.New("the name of a model is not UTF-8")
	}
	if err := jsonx.Valid(e.Object, 0); err != nil || jsonx.KindOf(e.Object) != '{' {
		return fmt.Errorf("the model %s is not a JSON object", quote(e.Name))
	}
	return d.insert(e.Name, e.Object, "patchbay", "models")
}

// UseModel sets the chosen model: one of the file, or "PROVIDER/NAME".
func (d *Document) UseModel(name string) error {
	value := jsonx.AppendString(nil, name)
	if n := d.patchbayMember("model"); n != nil {
		return d.set(apply(d.data, textEdit{n.pos, n.end, string(value)}))
	}
	return d.insert("model", value, "patchbay")
}

// RemoveModel removes a model, and the choice of it. An unknown name is an error.
func (d *Document) RemoveModel(name string) error {
	is := func(name string) func(member) bool { return func(m member) bool { return m.name == name } }
	list := d.patchbayMember("models")
	if list == nil || !slices.ContainsFunc(list.members, is(name)) {
		return fmt.Errorf("%s has no model %s", d.path, quote(name))
	}
	if own := d.root.member("patchbay"); d.Model() == name {
		if err := d.set(removeMember(d.data, own, slices.IndexFunc(own.members, is("model")))); err != nil {
			return err
		}
	}
	list = d.patchbayMember("models") // the text has changed
	return d.set(removeMember(d.data, list, slices.IndexFunc(list.members, is(name))))
}

// Remove removes a server, and its settings under "patchbay". A comment in the lines above it
// stays. An unknown name is an error.
func (d *Document) Remove(name string) error {
	if _, ok := d.Entry(name); !ok {
		return fmt.Errorf("%s has no server %s", d.path, quote(name))
	}
	for i := range d.lists() {
		list := d.lists()[i] // the text changes each time
		at := slices.IndexFunc(list.members, func(m member) bool { return m.name == name })
		if at < 0 {
			continue
		}
		if err := d.set(removeMember(d.data, list, at)); err != nil {
			return err
		}
	}
	return nil
}

// Edit changes a file: it reads the file, calls change with the document, and writes the
// document. If change returns an error, Edit writes nothing and returns it.
//
// Edits of one file by several processes of a user wait for each other, under any of its paths,
// so that none is lost. When another program writes the file between the read and the write, Edit
// writes nothing and returns an error. Edit also returns an error when ctx ends, or 10 seconds
// pass, while other edits hold the file.
//
// The file is replaced atomically. Its mode is kept, and a symbolic link followed. A new file is
// readable only by its owner, because it may hold secrets. An unchanged document is not written.
func Edit(ctx context.Context, path string, change func(*Document) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, editTime, fmt.Errorf("other edits of %s take longer than %v; try again", path, editTime))
	defer cancel()
	unlock, err := lockEdits(ctx, path)
	if err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	defer unlock()
	d, err := Open(path)
	if err != nil {
		return err
	}
	before := d.data
	if err := change(d); err != nil || bytes.Equal(before, d.data) {
		return err
	}
	if err := d.save(); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// editTime bounds the time that an edit waits for others.
const editTime = 10 * time.Second

// lockEdits takes the lock for edits of a file. The lock file is in the folder of the program's
// data, because one beside the file would end up in people's repositories; without such a folder it
// is beside the file.
func lockEdits(ctx context.Context, path string) (unlock func(), err error) {
	name := sha256.Sum256([]byte(strings.ToLower(ownfile.RealPath(path)))) // some file systems ignore case
	if lock, err := ownfile.Data(filepath.Join("edits", hex.EncodeToString(name[:8])+".lock")); err == nil {
		if unlock, err = ownfile.Lock(ctx, lock); err == nil || ctx.Err() != nil {
			return unlock, err
		}
	}
	return ownfile.Lock(ctx, filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".lock"))
}

// save replaces the file, unless it has changed since [Open] read it.
func (d *Document) save() error {
	now, err := readFile(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && d.was == nil:
		return ownfile.Replace(d.path, d.data)
	case err != nil:
		return err
	case d.was == nil || !bytes.Equal(now, d.was):
		return fmt.Errorf("another program has changed %s in the meantime; try again", d.path)
	}
	path, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return ownfile.ReplaceMode(path, d.data, info.Mode().Perm())
}
