package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/patchbay-dev/patchbay/mcp"
)

const (
	// maxSearched bounds a searched file, in bytes.
	maxSearched = 16 << 20

	// maxLine bounds the part of a line that is searched, maxShown the part that is
	// shown, in bytes.
	maxLine  = 64 << 10
	maxShown = 300
)

type searchInput struct {
	Path       string `json:"path,omitempty" doc:"where to search, a folder or file; empty: the root, or all roots"`
	Glob       string `json:"glob,omitempty" doc:"names to find, such as *.go (in any folder), src/**/*.{ts,tsx} or **/test_?.py; relative to path" max:"300"`
	Text       string `json:"text,omitempty" doc:"lines to find: a regular expression (RE2)" max:"1000"`
	IgnoreCase bool   `json:"ignore_case,omitempty" doc:"ignore the difference of upper and lower case"`
	All        bool   `json:"all,omitempty" doc:"search .git, node_modules and the like too"`
	Limit      int    `json:"limit,omitempty" doc:"maximum number of matches" default:"200" min:"1" max:"2000"`
}

type found struct {
	Matches []match `json:"matches" doc:"by path"`
	Note    string  `json:"note,omitempty" doc:"what is left out, and how to get it"`
}

type match struct {
	Path string `json:"path"`
	Type string `json:"type,omitempty" doc:"of a match by name" enum:"file,folder,symlink,other"`
	Line int    `json:"line,omitempty" doc:"from 1"`
	Text string `json:"text,omitempty" doc:"the line, or the part of it around the match"`
}

func (s *server) addSearch() {
	mcp.AddTool(s.mcp, mcp.Tool{
		Name: "search", Title: "Search",
		Description: "Finds files and folders by name (glob), lines by content (text), or lines in the files of some names (both). Links are not followed; .git, node_modules and the like are left out.",
		Annotations: reads,
	}, inArea(s, s.search))
}

func (s *server) search(ctx context.Context, a *area, in searchInput) (*found, error) {
	q, err := newQuery(in)
	if err != nil {
		return nil, err
	}
	ts, err := a.all(in.Path)
	if err != nil {
		return nil, err
	}
	w := &walk{all: in.All}
	for _, start := range ts {
		w.visit = func(t target, dir *os.Root, name string, info fs.FileInfo, _ int) error {
			rel := t.rel
			if start.rel != "." {
				rel = strings.TrimPrefix(t.rel, start.rel+"/")
			}
			return q.visit(ctx, t, dir, name, rel, info)
		}
		info, statErr := start.place.dir.Stat(start.name())
		switch {
		case statErr != nil:
			err = start.fault(statErr)
		case info.Mode().IsRegular():
			err = w.visit(start, start.place.dir, start.name(), info, 1)
		default:
			err = w.run(ctx, start)
		}
		if err != nil {
			break
		}
	}
	if len(q.matches) > 0 {
		w.skipped = 0 // with matches, the note would only distract
	}
	notes := w.notes()
	if errors.Is(err, errEnough) && !w.cut {
		notes = append(notes, "there may be more matches; narrow the search or raise the limit")
	} else if note, ok := timedOut(err); ok {
		notes = append(notes, note)
	} else if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	if q.large > 0 {
		notes = append(notes, fmt.Sprintf("%s larger than %d MiB not searched", plural(q.large, "file", "files"), maxSearched>>20))
	}
	return &found{q.matches, strings.Join(notes, "; ")}, nil
}

// query is a search in progress.
type query struct {
	glob    string // empty: all names
	base    bool   // the glob matches the last part of a path
	text    *regexp.Regexp
	fold    bool
	limit   int
	matches []match
	bytes   int // of the matches, roughly
	large   int // files that are too large
	in      *bufio.Reader
}

func newQuery(in searchInput) (*query, error) {
	q := &query{fold: in.IgnoreCase, limit: in.Limit, matches: []match{}}
	if in.Glob == "" && in.Text == "" {
		return nil, errors.New("nothing to search for; set glob, text or both")
	}
	if in.Glob != "" {
		q.glob, q.base = strings.TrimPrefix(in.Glob, "./"), !strings.Contains(in.Glob, "/")
		if q.fold {
			q.glob = strings.ToLower(q.glob)
		}
		if !doublestar.ValidatePattern(q.glob) {
			return nil, fmt.Errorf("glob %q is not a valid pattern; a [ or { in it is not closed", in.Glob)
		}
		// Choices multiply.
		if n := strings.Count(q.glob, "{"); n > 3 || n > 1 && strings.Count(q.glob, ",") > 20 {
			return nil, fmt.Errorf("glob %q has too many choices; split it into several searches", in.Glob)
		}
	}
	if in.Text != "" {
		expr := in.Text
		if q.fold {
			expr = "(?i:" + expr + ")"
		}
		var err error
		if q.text, err = regexp.Compile(expr); err != nil {
			return nil, fmt.Errorf("text: %w; write \\ before a literal special character", err)
		}
		q.in = bufio.NewReaderSize(nil, maxLine)
	}
	return q, nil
}

// visit checks one entry of a walk, at the path rel below the start of the search.
func (q *query) visit(ctx context.Context, t target, dir *os.Root, name, rel string, info fs.FileInfo) error {
	if q.glob != "" {
		if q.base {
			rel = path.Base(rel)
		}
		if q.fold {
			rel = strings.ToLower(rel)
		}
		if ok, _ := doublestar.Match(q.glob, rel); !ok {
			return nil
		}
	}
	if q.text == nil {
		return q.add(match{Path: t.shown, Type: kind(info.Mode())})
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	if info.Size() > maxSearched {
		q.large++
		return nil
	}
	f, _, err := t.place.openFile(dir, name)
	if err != nil {
		return nil // removed meanwhile, or not readable
	}
	defer f.Close()
	return q.lines(ctx, t, f)
}

// add appends a match, or returns errEnough if the answer is full.
func (q *query) add(m match) error {
	if len(q.matches) == q.limit || q.bytes > maxAnswer {
		return errEnough
	}
	q.bytes += len(m.Path) + len(m.Text) + 60
	q.matches = append(q.matches, m)
	return nil
}

// lines finds lines in a file, if it is text.
func (q *query) lines(ctx context.Context, t target, r io.Reader) error {
	q.in.Reset(io.LimitReader(r, maxSearched))
	if head, err := q.in.Peek(sniffed); err != nil && !errors.Is(err, io.EOF) || !isText(head) {
		return nil
	}
	begins := true // the next read begins a line
	for number := 1; ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		line, err := q.in.ReadSlice('\n')
		if begins {
			if at := q.text.FindIndex(bytes.TrimRight(line, "\r\n")); at != nil && len(line) > 0 {
				if err := q.add(match{Path: t.shown, Line: number, Text: around(bytes.TrimRight(line, "\r\n"), at[0])}); err != nil {
					return err
				}
			}
		}
		switch {
		case err == nil:
			number, begins = number+1, true
		case errors.Is(err, bufio.ErrBufferFull):
			begins = false // the rest of a very long line
		default:
			return nil
		}
	}
}

// around is the part of a line around a place in it.
func around(line []byte, at int) string {
	if len(line) > maxShown {
		start := max(0, min(at-maxShown/3, len(line)-maxShown))
		part := cutRune(fromRune(line[start : start+maxShown]))
		before, after := "", ""
		if start > 0 {
			before = "…"
		}
		if start+maxShown < len(line) {
			after = "…"
		}
		text, _ := valid(part)
		return before + text + after
	}
	text, _ := valid(line)
	return text
}
