package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

type treeInput struct {
	Path  string `json:"path,omitempty" doc:"a folder; empty: the root, or all roots"`
	Depth int    `json:"depth,omitempty" doc:"levels to show" default:"3" min:"1" max:"64"`
	Limit int    `json:"limit,omitempty" doc:"maximum number of entries" default:"500" min:"1" max:"5000"`
	All   bool   `json:"all,omitempty" doc:"include .git, node_modules and the like"`
}

// tree is a list of entries in the order of a drawing.
type tree struct {
	Path    string      `json:"path"`
	Entries []treeEntry `json:"entries" doc:"each folder before its entries"`
	Note    string      `json:"note,omitempty" doc:"what is left out, and how to get it"`
}

type treeEntry struct {
	Path  string `json:"path"`
	Type  string `json:"type" enum:"file,folder,symlink,other"`
	Depth int    `json:"depth" doc:"from 1"`
	Size  *int64 `json:"size,omitempty" doc:"bytes, of a file"`
}

// treeType is the shape of the structured result of the tool tree.
var treeType = must(schema.ForOutput[*tree]())

// must is for calls that cannot fail at run time.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (s *server) addTree() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "tree", Title: "Draw a tree", Description: "Shows a folder and everything below it.",
		OutputSchema: treeType.JSON(), Annotations: reads,
	}, inArea(s, s.tree))
}

func (s *server) tree(ctx context.Context, a *area, in treeInput) (*mcp.ToolResult, error) {
	ts, err := a.all(in.Path)
	if err != nil {
		return nil, err
	}
	out := &tree{Path: ".", Entries: []treeEntry{}}
	if len(ts) == 1 {
		out.Path = ts[0].shown
	}
	bytes, below := 0, 0
	add := func(t target, kind string, size *int64, depth int) error {
		if len(out.Entries) == in.Limit || bytes > maxAnswer {
			return errEnough
		}
		bytes += len(t.shown) + 60
		out.Entries = append(out.Entries, treeEntry{t.shown, kind, depth, size})
		return nil
	}
	w := &walk{all: in.All, depth: in.Depth, visit: func(t target, _ *os.Root, _ string, info fs.FileInfo, depth int) error {
		e := entryOf(t, info)
		return add(t, e.Type, e.Size, depth+below)
	}}
	if len(ts) > 1 { // the roots themselves are the first level
		below, w.depth = 1, in.Depth-1
	}
	for _, t := range ts {
		if below > 0 {
			if err = add(t, "folder", nil, 1); err != nil || in.Depth == 1 {
				continue
			}
		}
		if err = w.run(ctx, t); err != nil {
			break
		}
	}
	notes := w.notes()
	if errors.Is(err, errEnough) && !w.cut {
		notes = append(notes, "there are more entries; narrow the path, the depth, or raise the limit")
	} else if note, ok := timedOut(err); ok {
		notes = append(notes, note)
	} else if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	out.Note = strings.Join(notes, "; ")
	raw, err := treeType.Encode(out)
	if err != nil {
		return nil, err
	}
	return &mcp.ToolResult{Content: []mcp.Content{mcp.Text(out.draw())}, Structured: raw}, nil
}

// draw draws the tree as text.
func (o *tree) draw() string {
	var b strings.Builder
	b.WriteString(o.Path + "\n")
	// last reports for each entry whether it is the last of its folder.
	last := make([]bool, len(o.Entries))
	open := map[int]bool{} // by depth: another entry follows in that folder
	for i := len(o.Entries) - 1; i >= 0; i-- {
		d := o.Entries[i].Depth
		last[i] = !open[d]
		open[d] = true
		for deeper := d + 1; open[deeper]; deeper++ {
			delete(open, deeper)
		}
	}
	var lines []string // of the folders that the entry is in
	for i, e := range o.Entries {
		lines = lines[:e.Depth-1]
		b.WriteString(strings.Join(lines, ""))
		branch, line := "├── ", "│   "
		if last[i] {
			branch, line = "└── ", "    "
		}
		b.WriteString(branch + printable(path.Base(e.Path)))
		switch e.Type {
		case "folder":
			b.WriteString("/")
		case "symlink":
			b.WriteString(" (link)")
		case "other":
			b.WriteString(" (no file)")
		}
		b.WriteString("\n")
		lines = append(lines, line)
	}
	if o.Note != "" {
		b.WriteString("(" + o.Note + ")\n")
	}
	return b.String()
}

// printable quotes a name that would break a drawing.
func printable(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}
