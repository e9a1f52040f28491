package files

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/patchbay-dev/patchbay/mcp"
)

// maxEdited bounds an edited file, before and after, in bytes.
const maxEdited = 8 << 20

type editInput struct {
	Path   string        `json:"path" doc:"a file of text"`
	Edits  []replacement `json:"edits" doc:"applied in this order, all or none" min:"1" max:"100"`
	DryRun bool          `json:"dry_run,omitempty" doc:"show the diff and change nothing"`
}

type replacement struct {
	OldText    string `json:"old_text" doc:"exactly as in the file, with enough context to occur once" min:"1"`
	NewText    string `json:"new_text" doc:"the replacement"`
	ReplaceAll bool   `json:"replace_all,omitempty" doc:"replace every occurrence"`
}

func (s *server) edit(ctx context.Context, a *area, in editInput) (*mcp.ToolResult, error) {
	t, err := a.find(in.Path)
	if err != nil {
		return nil, err
	}
	release, err := s.change(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	text, how, err := t.readText()
	if err != nil {
		return nil, err
	}
	ends := endsOf(text)
	before := ends.plain(text)
	after, err := replace(before, ends, in.Edits)
	if err != nil {
		return nil, fmt.Errorf("%q: %w; nothing was written", t.shown, err)
	}
	if after == before {
		return nil, fmt.Errorf("%q: the edits change nothing", t.shown)
	}
	res := &mcp.ToolResult{Content: []mcp.Content{mcp.Text(unified(t.shown, before, after))}}
	if in.DryRun {
		res.Content = append(res.Content, mcp.Text("dry run: nothing was written"))
		return res, nil
	}
	if _, err := t.store(ctx, strings.NewReader(ends.restore(after)), how); err != nil {
		return nil, err
	}
	return res, nil
}

// replace applies the edits.
func replace(text string, ends lineEnds, edits []replacement) (string, error) {
	for i, e := range edits {
		old, with := ends.plain(e.OldText), ends.plain(e.NewText)
		n := strings.Count(text, old)
		switch {
		case n == 0:
			return "", fmt.Errorf("edit %d: old_text is not in the file; read it and copy the passage exactly", i+1)
		case n > 1 && !e.ReplaceAll:
			return "", fmt.Errorf("edit %d: old_text is in the file %d times, in lines %s; add context, or set replace_all", i+1, n, placesOf(text, old))
		case len(text)+n*(len(with)-len(old)) > maxEdited:
			return "", fmt.Errorf("edit %d: the file would have more than %d bytes", i+1, maxEdited)
		}
		text = strings.ReplaceAll(text, old, with)
	}
	return text, nil
}

// placesOf names the lines of the first occurrences of a passage.
func placesOf(text, passage string) string {
	const most = 5
	var lines []string
	line := 1
	for {
		i := strings.Index(text, passage)
		if i < 0 {
			return strings.Join(lines, ", ")
		}
		if len(lines) == most {
			return strings.Join(lines, ", ") + " and more"
		}
		line += strings.Count(text[:i], "\n")
		lines = append(lines, fmt.Sprint(line))
		line += strings.Count(passage, "\n")
		text = text[i+len(passage):]
	}
}

// lineEnds is how the lines of a file end.
type lineEnds int

const (
	endsMixed lineEnds = iota // both kinds, or none: text is kept as written
	endsLF
	endsCRLF
)

func endsOf(text string) lineEnds {
	lf, crlf := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	switch {
	case lf > 0 && crlf == lf:
		return endsCRLF
	case lf > 0 && crlf == 0:
		return endsLF
	}
	return endsMixed
}

// plain writes text with the end of lines, unless both kinds are in use.
func (e lineEnds) plain(text string) string {
	if e == endsMixed {
		return text
	}
	return strings.ReplaceAll(text, "\r\n", "\n")
}

// restore is the inverse of plain.
func (e lineEnds) restore(text string) string {
	if e == endsCRLF {
		return strings.ReplaceAll(text, "\n", "\r\n")
	}
	return text
}

// unified is the difference of two texts, as diff -u writes it.
func unified(name, before, after string) string {
	d := diff.Diff("a/"+name, []byte(before), "b/"+name, []byte(after))
	_, d, _ = bytes.Cut(d, []byte("\n")) // its own heading
	if len(d) > maxText {
		d = append(cutRune(d[:maxText]), "\n(the diff goes on)\n"...)
	}
	return string(d)
}
