// Package install writes a gateway into the files in which other hosts list their servers, and takes it
// out again.
//
// [Find] finds the files, [Target.Plan] makes the changes, [Change.Write] writes one, and [Undo] takes
// one back.
//
// # Guarantees
//
//   - Comments, order and layout of a file stay. A file that cannot be changed so is not written: the error
//     wraps hosts.ErrByHand.
//   - A file is replaced atomically, and only if no other program has changed it since it was read.
//   - The file from before is kept in the folder of the program's data, readable by its owner alone.
//     Undo restores it byte for byte, or removes only the server if the file has been changed since.
package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/advice"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config/hosts"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// maxBytes bounds the file of a host, which may hold much else.
const maxBytes = 64 << 20

// Target is the file of a host.
type Target struct {
	Host  hosts.Host
	Path  string
	Scope string // "user" or "project"
}

// Find returns the file of a host in a scope: the first one that exists, else the first place for one.
func Find(h hosts.Host, sys hosts.System, scope string) (*Target, error) {
	var first *Target
	for _, p := range h.Places(sys) {
		if p.Scope != scope {
			continue
		}
		t := &Target{h, p.Path, scope}
		if _, err := os.Stat(p.Path); err == nil {
			return t, nil
		}
		if first == nil {
			first = t
		}
	}
	if first == nil {
		return nil, advice.Usagef("%s has no file in a %s", h.Title, scope)
	}
	return first, nil
}

// Change is a change of the file of a host.
type Change struct {
	*Target
	Name   string
	Notes  []string // for people
	Before []byte   // nil: there is no file
	After  []byte
}

// read reads the file; nil: there is none.
func (t *Target) read() ([]byte, error) {
	data, err := ownfile.ReadNow(t.Path, maxBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && len(data) > maxBytes:
		return nil, fmt.Errorf("%s is larger than %d bytes", t.Path, maxBytes)
	}
	return data, err
}

// Plan adds a server to the file. An entry of that name that differs is an error, unless force is set.
func (t *Target) Plan(g *Gateway, force bool) (*Change, error) {
	before, err := t.read()
	if err != nil {
		return nil, err
	}
	l, err := g.listing(t)
	if err != nil {
		return nil, err
	}
	c := &Change{Target: t, Name: g.Name, Before: before}
	old, there, err := t.Host.Entry(t.Path, before, g.Name)
	if err != nil {
		return nil, err
	}
	c.After, err = t.Host.Put(t.Path, before, l)
	c.Notes = l.Notes
	if there && (err == nil || errors.Is(err, hosts.ErrByHand)) {
		whole, failed := t.Host.Write(l)
		if failed != nil {
			return nil, failed
		}
		if now, _, _ := t.Host.Entry(t.Path, whole, g.Name); bytes.Equal(old, now) {
			c.After = before
			return c, nil
		}
		if !force {
			f := advice.Usagef("%s has another server %q", t.Path, g.Name)
			return nil, f.Hint("--name gives it another name; --force replaces it")
		}
	}
	if errors.Is(err, hosts.ErrLeftOut) && len(l.Notes) > 0 {
		f := advice.Usagef("%s", strings.Join(l.Notes, "; "))
		return nil, f.Hint("as a command, the line with --stdio that patchbay up prints can be added to " + t.Path)
	}
	if errors.Is(err, hosts.ErrByHand) {
		whole, failed := t.Host.Write(l)
		if failed != nil {
			return nil, failed
		}
		return nil, &ByHand{t, string(whole), err}
	}
	return c, err
}

// ByHand is the error for a file that a person has to change.
type ByHand struct {
	*Target
	Lines string // to add to the file
	Err   error
}

func (e *ByHand) Error() string {
	return strings.Replace(e.Err.Error(), "hosts: ", "", 1) // the package of ErrByHand says nothing to people
}

// Unwrap returns Err.
func (e *ByHand) Unwrap() error { return e.Err }

// Nothing reports whether the file has the server already.
func (c *Change) Nothing() bool { return c.Before != nil && bytes.Equal(c.Before, c.After) }

// version is that of the format of records.
const version = 1

// record is what is kept of a change.
type record struct {
	Version int    `json:"version"`
	Path    string `json:"path"`
	Name    string `json:"name"`
	New     bool   `json:"new,omitempty"` // there was no file
	Before  []byte `json:"before"`
	After   string `json:"after"` // SHA-256 of the file as it was written
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// place returns the path of the record of a change.
func (t *Target) place(name string) (string, error) {
	return ownfile.Data(filepath.Join("installed", digest([]byte(ownfile.RealPath(t.Path) + "\x00" + name))[:24]+".json"))
}

// Write keeps the file from before, and replaces it.
func (c *Change) Write() error {
	if c.Nothing() {
		return nil
	}
	place, err := c.place(c.Name)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(record{version, c.Path, c.Name, c.Before == nil, c.Before, digest(c.After)})
	if err != nil {
		return err
	}
	if err := ownfile.Replace(place, raw); err != nil {
		return fmt.Errorf("keep the file from before: %w", err)
	}
	return c.replace(c.Before, c.After)
}

// replace replaces the file, unless another program has changed it.
func (t *Target) replace(before, after []byte) error {
	now, err := t.read()
	if err != nil {
		return err
	}
	if !bytes.Equal(now, before) || (now == nil) != (before == nil) {
		return fmt.Errorf("another program has changed %s in the meantime; try again", t.Path)
	}
	if before == nil {
		return ownfile.Replace(t.Path, after)
	}
	path, err := filepath.EvalSymlinks(t.Path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	return ownfile.ReplaceMode(path, after, info.Mode().Perm())
}

// Undo takes the server out of the file again, and reports whether the file is as it was before, byte for
// byte. Without a record, or if the file was changed since, it removes only the server.
func Undo(t *Target, name string) (exact bool, err error) {
	now, err := t.read()
	if err != nil {
		return false, err
	}
	_, there, err := t.Host.Entry(t.Path, now, name)
	if err != nil {
		return false, err
	}
	if !there {
		return false, advice.Usagef("%s has no server %q", t.Path, name)
	}
	place, err := t.place(name)
	if err != nil {
		return false, err
	}
	var was record
	kept, err := ownfile.Read(place, 2*maxBytes)
	if err == nil {
		err = ownfile.Newer(place, kept, version)
	}
	if err != nil {
		return false, err
	}
	if kept != nil && json.Unmarshal(kept, &was) == nil && was.After == digest(now) {
		if was.New {
			err = os.Remove(t.Path)
		} else {
			err = t.replace(now, was.Before)
		}
		exact = true
	} else {
		var after []byte
		if after, err = t.Host.Drop(t.Path, now, name); err == nil {
			err = t.replace(now, after)
		}
	}
	if err == nil && kept != nil {
		err = os.Remove(place)
	}
	return exact, err
}

// Lines shows the change: the lines that are removed, with "-", and those that are added, with "+".
func (c *Change) Lines() (lines []string) {
	before, after := split(c.Before), split(c.After)
	head := 0
	for head < len(before) && head < len(after) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < len(before)-head && tail < len(after)-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	for _, line := range before[head : len(before)-tail] {
		lines = append(lines, "- "+line)
	}
	for _, line := range after[head : len(after)-tail] {
		lines = append(lines, "+ "+line)
	}
	return lines
}

func split(data []byte) []string {
	if len(data) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n"), "\n")
}

// UndoCommand returns the command that takes a change back.
func (c *Change) UndoCommand() string {
	words := []string{"patchbay", "up", "uninstall", c.Host.Name, "--name", c.Name}
	if c.Scope == "project" {
		words = append(words, "--project")
	}
	return screen.Shell(words)
}
