package attach

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// Bounds of the listing of a folder.
const (
	maxListed = 1000            // files and folders of it
	maxIn     = 300             // of one folder in it
	maxDepth  = 8               // folders within folders
	listTime  = 2 * time.Second // after which no further folder is read
)

// generated are folders that are named in a listing, and not listed: they hold what programs wrote.
var generated = []string{".git", ".hg", ".jj", ".svn", "node_modules", ".venv", "__pycache__", ".cache", ".direnv"}

// listed is a file or folder of a listing.
type listed struct {
	name     string // as the model reads it; of folders with a slash at the end
	path     string
	note     string
	children []*listed
}

// list returns the names below a folder, and how many there are, for the model. Upper levels come first
// when there is not room for all. It follows no symbolic links, so that it stays in the folder.
func list(dir string) (text string, n int, err error) {
	root := &listed{path: dir}
	until := time.Now().Add(listTime)
	for level, depth := []*listed{root}, 0; len(level) > 0; depth++ {
		var next []*listed
		for _, f := range level {
			if depth == maxDepth || n >= maxListed || time.Now().After(until) {
				f.note = "  (not listed)"
				continue
			}
			folders, err := f.read(min(maxIn, maxListed-n))
			if err != nil && f == root {
				return "", 0, err
			} else if err != nil {
				f.note = "  (cannot be read)"
			}
			n += len(f.children)
			next = append(next, folders...)
		}
		level = next
	}
	var b strings.Builder
	root.write(&b, "")
	b.WriteString(strings.TrimSpace(root.note))
	return b.String(), n, nil
}

// read reads at most most names of a folder, and returns the folders among them to list.
func (f *listed) read(most int) (folders []*listed, err error) {
	dir, err := os.Open(f.path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(most + 1)
	if err != nil && !errors.Is(err, io.EOF) && len(entries) == 0 {
		return nil, err
	}
	if len(entries) > most {
		entries = entries[:most]
		f.note = "  (there is more)"
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		child := &listed{name: shownName(e.Name()), path: filepath.Join(f.path, e.Name())}
		f.children = append(f.children, child)
		switch {
		case e.Type()&os.ModeSymlink != 0:
			child.note = "  (link)"
		case e.IsDir():
			if child.name += "/"; slices.Contains(generated, e.Name()) {
				child.note = "  (not listed)"
			} else {
				folders = append(folders, child)
			}
		case !e.Type().IsRegular():
			child.note = "  (not a file)"
		default:
			if info, err := e.Info(); err == nil {
				child.note = "  " + screen.Bytes(int(info.Size()))
			}
		}
	}
	return folders, nil
}

func (f *listed) write(b *strings.Builder, indent string) {
	for _, c := range f.children {
		fmt.Fprintf(b, "%s%s%s\n", indent, c.name, c.note)
		c.write(b, indent+"  ")
	}
}

// shownName quotes a name that could be taken for something else, such as one with a line break.
func shownName(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsGraphic(r) || r == '"' }) || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}
