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
	// maxFolder bounds the entries of a folder that are read.
	maxFolder = 100_000

	// maxAnswer bounds the answers of lists, trees and searches, roughly, in bytes.
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
	Offset int    `json:"offset,omitempty" doc:"number of entries to skip" min:"0"`
	Limit  int    `json:"limit,omitempty" doc:"maximum number of entries" default:"500" min:"1" max:"5000"`
}

type listing struct {
	Path    string  `json:"path"`
	Entries []entry `json:"entries" doc:"by name"`
	Total   int     `json:"total" doc:"number of entries in the folder"`
	Note    string  `json:"note,omitempty" doc:"what is left out, and how to get it"`
}

type rootList struct {
	Roots    []rootEntry `json:"roots"`
	ReadOnly bool        `json:"read_only" doc:"whether files cannot be changed"`
}

type rootEntry struct {
	Name   string `json:"name" doc:"the beginning of a path below it, if there are several roots"`
	Folder string `json:"folder" doc:"its absolute path"`
	URI    string `json:"uri"`
}

func (s *server) addLooking() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "roots", Title: "List the roots", Description: "Lists the folders that can be used, and whether they are writable.",
		Annotations: reads,
	}, inArea(s, s.listRoots))
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "list", Title: "List a folder", Description: "Lists the entries of a folder, hidden files too, with types, sizes and times.",
		Annotations: reads,
	}, inArea(s, s.list))
	s.addTree()
	s.addSearch()
	s.addInfo()
}

func (s *server) listRoots(ctx context.Context, a *area, _ struct{}) (*rootList, error) {
	out := &rootList{Roots: []rootEntry{}, ReadOnly: s.options.ReadOnly}
	for i, p := range a.places {
		out.Roots = append(out.Roots, rootEntry{p.folder.name, filepath.FromSlash(p.spellings[0]), a.target(located{i, "."}).uri()})
	}
	return out, nil
}

func (s *server) list(ctx context.Context, a *area, in listInput) (*listing, error) {
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
		notes = append(notes, fmt.Sprintf("%s not UTF-8 and cannot be used", plural(unreadable, "name is", "names are")))
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

// plural formats a number with its singular or plural noun.
func plural(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, several)
}
