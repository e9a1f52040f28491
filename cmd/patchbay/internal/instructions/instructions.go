// Package instructions reads AGENTS.md and skills: instructions for a language model that a project or a
// person keeps in files.
//
// The files are those of the working folder and of the folders above it, up to the root of its
// repository; without a repository, that of the working folder alone. Somebody else may have written
// them, so that each is used only after the person has agreed to its current content. The person's own
// file is beside their mcp.json and needs no agreement.
//
// The model gets exactly what the person is shown: characters that a terminal hides or obeys are made
// visible. Of skills of a project the person sees the names, descriptions and sizes.
package instructions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/agree"
	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/config/trust"
	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

// Name is the name of the files.
const Name = "AGENTS.md"

const (
	maxFile = 32 << 10 // bytes of a file
	maxAll  = 64 << 10 // of all together
	maxUp   = 64       // folders up to the root of the repository
)

// file is one AGENTS.md.
type file struct {
	path string // absolute
	name string // for people and the model
	own  bool   // of the person
	text string // as it is shown; empty: it is not used
	data []byte // as it is stored
}

// Reader reads the instructions for the work in a folder.
type Reader struct {
	*agree.Asker
	Asks bool                             // the person can be asked
	Note func(format string, args ...any) // prints a line for the person
}

// Add returns a system prompt with the instructions for the working folder. It notes what it has read,
// and what not.
func (r *Reader) Add(ctx context.Context, system string) (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return system, nil // a folder that was removed has none
	}
	own := ""
	if user, ok := config.UserFile(); ok {
		own = filepath.Join(filepath.Dir(user), Name)
	}
	store, err := trust.Open("")
	if err != nil {
		return "", err
	}
	var names []string
	var b strings.Builder
	for _, f := range r.find(ownfile.RealPath(here), own) {
		if yes, err := r.agreed(ctx, store, f); err != nil {
			return "", err
		} else if !yes {
			continue
		}
		if b.Len()+len(f.text) > maxAll {
			r.Note("%s is left out: all %s together have more than %s", f.name, Name, screen.Bytes(maxAll))
			continue
		}
		names = append(names, f.name)
		fmt.Fprintf(&b, "\n\nFrom %q:\n%s", f.name, f.text)
	}
	if names == nil {
		return system, nil
	}
	r.Note("instructions for the model: %s, %s", strings.Join(names, ", "), screen.Bytes(b.Len()))
	text := "The person has agreed to these instructions for work in this folder. If they contradict each other, the last one counts." + b.String()
	return strings.TrimPrefix(system+"\n\n"+text, "\n\n"), nil
}

// find returns the files for a folder that can be used, the nearest last. The path of the person's own
// file may be empty.
func (r *Reader) find(dir, own string) []*file {
	var all []*file
	add := func(root, name string, f *file) {
		var err error
		if f.data, err = read(root, name); errors.Is(err, os.ErrNotExist) {
			return
		} else if err != nil {
			r.Note("%s is not used: %v", f.name, err)
			return
		}
		if f.text = screen.Visible(strings.TrimSpace(string(f.data))); f.text != "" {
			all = append(all, f)
		}
	}
	if own != "" {
		add(filepath.Dir(own), Name, &file{path: own, name: screen.OneLine(own), own: true})
	}
	folders := upToRoot(dir)
	root := folders[0]
	for _, folder := range folders {
		path := filepath.Join(folder, Name)
		name, err := filepath.Rel(root, path)
		if err != nil || path == own {
			continue
		}
		add(root, name, &file{path: path, name: screen.OneLine(filepath.ToSlash(name))})
	}
	return all
}

// upToRoot returns the folders from the root of the repository of a folder down to it.
func upToRoot(dir string) []string {
	var all []string
	for at := dir; len(all) < maxUp; at = filepath.Dir(at) {
		all = append(all, at)
		if slices.ContainsFunc([]string{".git", ".hg", ".jj", ".svn"}, func(mark string) bool {
			_, err := os.Lstat(filepath.Join(at, mark))
			return err == nil
		}) {
			slices.Reverse(all)
			return all
		}
		if filepath.Dir(at) == at {
			break
		}
	}
	return []string{dir}
}

// read reads a file below a root. It follows no link out of the root, which could make another file of
// the person's instructions for the model.
func read(root, name string) ([]byte, error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	is, err := dir.Stat(name)
	switch {
	case err != nil && !errors.Is(err, os.ErrNotExist):
		if link, e := dir.Lstat(name); e == nil && link.Mode()&os.ModeSymlink != 0 {
			return nil, errors.New("it is a link out of the project")
		}
		return nil, err
	case err != nil:
		return nil, err
	case !is.Mode().IsRegular(): // opening a pipe may block
		return nil, errors.New("it is not a file")
	}
	f, err := dir.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFile:
		return nil, fmt.Errorf("it has more than %s", screen.Bytes(maxFile))
	case !utf8.Valid(data):
		return nil, errors.New("it is not UTF-8 text")
	}
	return data, nil
}

// agreed reports whether the person has agreed to a file. If they can be asked, they are.
func (r *Reader) agreed(ctx context.Context, store *trust.Store, f *file) (bool, error) {
	if f.own {
		return true, nil
	}
	yes, err := store.Trusts(f.path, f.data)
	if yes || err != nil {
		return yes, err
	}
	known, err := store.Knows(f.path)
	if err != nil {
		return false, err
	}
	why := "is not trusted yet"
	if known {
		why = "has changed since you trusted it"
	}
	if !r.Asks {
		r.Note("%s %s, so the model does not get it; patchbay config trust %s", f.name, why, screen.Shell([]string{f.path}))
		return false, nil
	}
	if yes, err = r.Confirm(ctx, f.name+" "+why+". It tells the model:", f.lines(), f.name+": use it from now on? [y/N] "); err != nil || !yes {
		return false, err
	}
	return true, store.Trust(ctx, f.path, f.data)
}

func (f *file) lines() []string { return strings.Split(f.text, "\n") }

// Is reports whether a path is that of instructions or of the skills of a project.
func Is(path string) bool { return filepath.Base(path) == Name || isSkills(path) }

func isSkills(path string) bool {
	return strings.HasSuffix(filepath.ToSlash(ownfile.InRealFolder(path)), "/"+projectSkills)
}

// Trust stores that the person agrees to a file, which print shows, or to the skills of a project, which it
// lists, or, with forget, that they no longer do.
func Trust(ctx context.Context, path string, forget bool, print func(line string)) error {
	path = ownfile.InRealFolder(path)
	var f file
	switch {
	case forget:
	case isSkills(path):
		r := &Reader{Note: func(format string, args ...any) { print(fmt.Sprintf(format, args...)) }}
		set := r.readSkills(filepath.Dir(filepath.Dir(path)), projectSkills)
		if set == nil {
			return fmt.Errorf("%s has no skills", path)
		}
		return agree.Store(ctx, path, set.digests(), set.lines(), false, print)
	default:
		root := upToRoot(filepath.Dir(path))[0]
		name, err := filepath.Rel(root, path)
		if err == nil {
			f.data, err = read(root, name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		f.text = screen.Visible(strings.TrimSpace(string(f.data)))
	}
	return agree.Store(ctx, path, f.data, f.lines(), forget, print)
}
