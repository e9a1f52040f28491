package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/mcp"
)

const (
	// maxFolder bounds the entries of a folder that are looked at.
	maxFolder = 100_000

	// maxAnswer bounds, in bytes and roughly, what lists, trees and searches answer.
	maxAnswer = 512 << 10
)

// entry is a file or folder in an answer.
type entry struct {
	Path     string    `json:"path"`
	Type     string    `json:"type" enum:"file,folder,symlink,other"`
	Size     *int64    `json:"size,omitempty" doc:"bytes, of a file"`
	Modified time.Time `json:"modified,omitzero"`
}

func entryOf(t target, info fs.FileInfo) entry {
	e := entry{Path: t.shown, Type: kind(info.Mode()), Modified: info.ModTime().UTC().Truncate(time.Second)}
	if e.Type == "file" {
		e.Size = new(info.Size())
	}
	return e
}

type listInput struct {
	Path   string `json:"path,omitempty" doc:"a folder; empty: the root, or all roots"`
	Offset int    `json:"offset,omitempty" doc:"leave out so many entries" min:"0"`
	Limit  int    `json:"limit,omitempty" doc:"at most so many entries" default:"500" min:"1" max:"5000"`
}

type listing struct {
	Path    string  `json:"path"`
	Entries []entry `json:"entries" doc:"by name"`
	Total   int     `json:"total" doc:"number of entries that the folder has"`
	Note    string  `json:"note,omitempty" doc:"what is left out, and how to get it"`
}

type rootList struct {
	Roots    []rootEntry `json:"roots"`
	ReadOnly bool        `json:"read_only" doc:"whether nothing can be changed"`
}

type rootEntry struct {
	Name   string `json:"name" doc:"how a path below it begins, if there are several roots"`
	Folder string `json:"folder" doc:"its absolute path"`
	URI    string `json:"uri"`
}

func (s *server) addLooking() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "roots", Title: "List the roots", Description: "Tells which folders can be used, and whether they can be changed.",
		Annotations: reads,
	}, s.listRoots)
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "list", Title: "List a folder", Description: "Lists what is in a folder, hidden files too, with types, sizes and times.",
		Annotations: reads,
	}, s.list)
	s.addTree()
	s.addSearch()
	s.addInfo()
}

func (s *server) listRoots(ctx context.Context, _ struct{}) (*rootList, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	a, err := s.area(ctx)
	if err != nil {
		return nil, err
	}
	defer a.close()
	out := &rootList{Roots: []rootEntry{}, ReadOnly: s.options.ReadOnly}
	for i, p := range a.places {
		out.Roots = append(out.Roots, rootEntry{p.folder.name, filepath.FromSlash(p.spellings[0]), a.target(located{i, "."}).uri()})
	}
	return out, nil
}

func (s *server) list(ctx context.Context, in listInput) (*listing, error) {
	ctx, cancel := s.bound(ctx)
	defer cancel()
	a, err := s.area(ctx)
	if err != nil {
		return nil, err
	}
	defer a.close()
	ts, err := a.all(in.Path)
	if err != nil {
		return nil, err
	}
	out := &listing{Path: ".", Entries: []entry{}}
	if len(ts) > 1 {
		for _, t := range ts {
			out.Entries = append(out.Entries, entry{Path: t.shown, Type: "folder"})
		}
		out.Total = len(ts)
		return out, nil
	}
	t := ts[0]
	out.Path = t.shown
	dir, err := t.openDir()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, more, err := namesIn(dir)
	if err != nil {
		return nil, t.fault(err)
	}
	names, back := t.place.shown(names)
	out.Total = len(names)
	bytes, unreadable := 0, 0
	i := min(in.Offset, len(names))
	for ; i < len(names) && len(out.Entries) < in.Limit && bytes < maxAnswer; i++ {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		info, err := dir.Lstat(names[i])
		if err != nil {
			continue // gone meanwhile
		}
		e := entryOf(t.child(names[i]), info)
		if !utf8.ValidString(e.Path) {
			e.Path, unreadable = strings.ToValidUTF8(e.Path, "\uFFFD"), unreadable+1
		}
		bytes += len(e.Path) + 100
		out.Entries = append(out.Entries, e)
	}
	var notes []string
	if i < len(names) {
		notes = append(notes, fmt.Sprintf("there are more; go on with offset %d", i))
	}
	if back > 0 {
		notes = append(notes, backNote(back))
	}
	if more {
		notes = append(notes, fmt.Sprintf("the folder has more than %d entries; the rest is not shown", maxFolder))
	}
	if unreadable > 0 {
		notes = append(notes, fmt.Sprintf("%s no UTF-8 and cannot be used", plural(unreadable, "name is", "names are")))
	}
	out.Note = strings.Join(notes, "; ")
	return out, nil
}

// namesIn returns the names in a folder, sorted, and whether there are more.
func namesIn(dir *os.Root) (names []string, more bool, err error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	names, err = f.Readdirnames(maxFolder + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if more = len(names) > maxFolder; more {
		names = names[:maxFolder]
	}
	slices.Sort(names)
	return names, more, nil
}

// plural is a number with the words for one or for several.
func plural(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}
