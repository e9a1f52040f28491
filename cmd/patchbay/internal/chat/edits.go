package chat

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Bounds of the edits that an approval shows.
const (
	maxEditLines = 300
	maxEditDepth = 8 // of the arguments
	editContext  = 2 // equal lines before and after an edit
)

// edited texts of arguments, as tools for files name them: the old one, and the new one.
var editPairs = [][2]string{{"oldText", "newText"}, {"old_text", "new_text"}, {"old_string", "new_string"}, {"old_str", "new_str"}, {"search", "replace"}}

// editsOf returns how arguments change texts, line by line: unified diffs, and pairs of an old and a new
// text. The line after the last of a long edit says how many more there are.
func editsOf(raw json.RawMessage) []string {
	var args any
	if json.Unmarshal(raw, &args) != nil {
		return nil
	}
	lines := editsIn(args, 0)
	if more := len(lines) - maxEditLines; more > 0 {
		lines = append(slices.Clone(lines[:maxEditLines]), fmt.Sprintf("(%d more lines)", more))
	}
	return lines
}

// edits shows the lines of editsOf. They only repeat what is in the arguments, which are shown before them
// as they are sent.
func (l *look) edits(lines []string) (out []string) {
	if len(lines) == 0 {
		return nil
	}
	out = []string{"", l.paint("The edits in it:", bold)}
	for _, line := range lines {
		style := ""
		switch {
		case strings.HasPrefix(line, "+"):
			style = green
		case strings.HasPrefix(line, "-"):
			style = red
		case strings.HasPrefix(line, "@@"):
			style = cyan
		}
		shown := strings.ReplaceAll(screen.Visible(line), "\t", "    ")
		for n, part := range screen.Fold(shown, max(4, l.width-2)) {
			if n > 0 {
				part = "  " + part // no sign: it belongs to the line above
			}
			out = append(out, l.paint(part, style))
		}
	}
	return out
}

// editsIn returns the lines of the edits in a value, in the order of the names.
func editsIn(value any, depth int) (lines []string) {
	if depth > maxEditDepth {
		return nil
	}
	switch v := value.(type) {
	case string:
		if strings.HasPrefix(v, "@@ ") || strings.Contains(v, "\n@@ ") {
			return strings.Split(strings.TrimRight(v, "\n"), "\n")
		}
	case []any:
		for _, e := range v {
			lines = append(lines, editsIn(e, depth+1)...)
		}
	case map[string]any:
		for _, pair := range editPairs {
			old, isOld := v[pair[0]].(string)
			now, isNew := v[pair[1]].(string)
			if isOld && isNew {
				return lineEdit(old, now)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			lines = append(lines, editsIn(v[name], depth+1)...)
		}
	}
	return lines
}

// lineEdit returns the lines that an edit removes and adds, and a few equal ones around them.
func lineEdit(old, now string) []string {
	a, b := strings.Split(old, "\n"), strings.Split(now, "\n")
	head, tail := text.CommonEnds(a, b)
	out := []string{"@@"}
	add := func(sign string, lines []string) {
		for _, line := range lines {
			out = append(out, sign+line)
		}
	}
	add(" ", a[max(0, head-editContext):head])
	add("-", a[head:len(a)-tail])
	add("+", b[head:len(b)-tail])
	add(" ", a[len(a)-tail:min(len(a), len(a)-tail+editContext)])
	return out
}
