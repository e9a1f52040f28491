package doctor

import (
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// indent is the column at which the text of a line begins.
const indent = 23

// Print prints the examination for people, a line at a time. The argument width is that of the
// terminal in columns, 0 if lines are not wrapped; paint colours a text.
func (e *Exam) Print(width int, paint func(text, style string) string, print func(string)) {
	r := e.Report()
	title := paint(screen.OneLine(r.Name), "1") + "  "
	if e.Model != nil && e.Model.Model != "" {
		title += screen.OneLine(r.Model) + " at "
	}
	print(title + screen.OneLine(r.Where))
	styles := map[string]string{"ok": "32", "warning": "33", "failed": "31"}
	line := func(label, text, style string) {
		room := 0
		if width > 0 {
			room = max(30, width-indent)
		}
		text = strings.ReplaceAll(screen.Wrap(screen.Visible(text), room), "\n", "\n"+strings.Repeat(" ", indent))
		print(strings.TrimRight(paint(label, style)+strings.Repeat(" ", max(0, indent-screen.Columns(label)))+text, " "))
	}
	for _, s := range r.Steps {
		line("  "+screen.Pad(s.State, 8)+" "+s.Name, s.Detail, styles[s.State])
	}
	if r.ExitCode != nil {
		line("           exit code", strconv.Itoa(*r.ExitCode), "")
	}
	for i, l := range r.Stderr {
		if r.OK {
			break
		}
		label := ""
		if i == 0 {
			label = "           stderr"
		}
		line(label, l, "")
	}
	if len(r.Wanted) > 0 {
		line("           environment", PassOn(r.Wanted, r.Name, r.Source), "33")
	}
	if r.Next != "" {
		line("           next", r.Next, "36")
	}
}
