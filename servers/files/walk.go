package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/mcp"
)

// skipped are the folders that walks leave out: internal folders of tools.
var skipped = []string{".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv"}

const (
	// maxDepth bounds the depth of a walk. Each level holds an open file.
	maxDepth = 64

	// maxWalk bounds the entries of one walk.
	maxWalk = 1_000_000
)

// walk visits the entries of folders and below, by name, without following links.
type walk struct {
	all   bool // nothing is left out
	depth int  // levels to show; 0: all

	// visit is called with each entry, its folder, its name there and its depth, from
	// 1. It returns errEnough to end the walk.
	visit func(t target, dir *os.Root, name string, info fs.FileInfo, depth int) error

	seen    int
	skipped int  // folders left out
	back    int  // entries withheld
	closed  int  // folders that cannot be read
	cut     bool // the limit of entries was reached
}

// errEnough ends a walk early.
var errEnough = errors.New("enough")

// run walks a folder. When ctx ends it returns the cause.
func (w *walk) run(ctx context.Context, t target) error {
	dir, err := t.openDir()
	if err != nil {
		return err
	}
	defer dir.Close()
	return w.folder(ctx, t, dir, 1)
}

func (w *walk) folder(ctx context.Context, t target, dir *os.Root, depth int) error {
	names, more, err := namesIn(dir)
	if err != nil {
		w.closed++
		return nil
	}
	w.cut = w.cut || more
	names, back := t.place.shown(names)
	w.back += back
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if w.seen++; w.seen > maxWalk {
			w.cut = true
			return errEnough
		}
		if w.seen%1000 == 0 {
			mcp.Progress(ctx, float64(w.seen), 0, "files and folders visited")
		}
		info, err := dir.Lstat(name)
		if err != nil || !utf8.ValidString(name) {
			continue // removed meanwhile, or its name is not valid UTF-8
		}
		if info.IsDir() && !w.all && slices.ContainsFunc(skipped, func(s string) bool { return strings.EqualFold(s, name) }) {
			w.skipped++
			continue
		}
		child := t.child(name)
		if err := w.visit(child, dir, name, info, depth); err != nil {
			return err
		}
		if !info.IsDir() || depth == w.depth {
			continue
		}
		if depth == maxDepth {
			w.cut = true
			continue
		}
		if err := w.below(ctx, child, dir, name, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// below walks a folder within an open one.
func (w *walk) below(ctx context.Context, t target, dir *os.Root, name string, depth int) error {
	sub, err := dir.OpenRoot(name)
	if err != nil {
		w.closed++
		return nil
	}
	defer sub.Close()
	return w.folder(ctx, t, sub, depth)
}

// notes says what the walk left out.
func (w *walk) notes() (notes []string) {
	if w.skipped > 0 {
		notes = append(notes, plural(w.skipped, "folder", "folders")+" such as node_modules left out; set all to include them")
	}
	if w.back > 0 {
		notes = append(notes, backNote(w.back))
	}
	if w.closed > 0 {
		notes = append(notes, plural(w.closed, "folder", "folders")+" could not be read")
	}
	if w.cut {
		notes = append(notes, "the limit of entries was reached, so the result is incomplete; narrow the path")
	}
	return notes
}

// timedOut returns a note if err says that a call has timed out, so that the call
// returns its results so far.
func timedOut(err error) (string, bool) {
	var up *timeUp
	if errors.As(err, &up) {
		return up.Error(), true
	}
	return "", false
}
