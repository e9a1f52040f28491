package chat

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// viewer is a full-screen page that shows in full what the chat shortens: blocks that can be folded
// and unfolded.
type viewer struct {
	title string
	parts []part
	at    int // the part with the cursor
	top   int // the first visible line

	width int  // for which lines were made
	fresh bool // it was just opened, and must show the part with the cursor
}

// part is a block in the viewer.
type part struct {
	head  func(l *look) string   // nil: it cannot be folded
	body  func(l *look) []string // unfolded
	open  bool
	moves bool     // it is still changing
	lines []string // of the body, cached for a width unless it moves; nil: not yet
}

// open opens the viewer at a block; 0: at the last one.
func (u *ui) open(number int) bool {
	v := &viewer{title: "calls and thoughts"}
	at := -1
	add := func(b *block) {
		if b.kind == called || b.kind == thought || b.kind == summary {
			v.parts = append(v.parts, part{head: b.headLine, body: b.full, moves: !b.over})
			if b.number == number || number == 0 {
				at = len(v.parts) - 1
			}
		}
	}
	for _, b := range u.kept {
		add(b)
	}
	for _, b := range u.blocks {
		if !b.over {
			add(b)
		}
	}
	if at < 0 {
		u.say("nothing to open")
		return false
	}
	v.at, v.fresh = at, true
	v.parts[at].open = true
	u.viewer = v
	return true
}

// pages opens the viewer on lines.
func (u *ui) pages(title string, body func(l *look) []string) {
	u.viewer = &viewer{title: title, parts: []part{{body: body, open: true}}}
	if !u.look.lines {
		u.print("") // after the command
	}
}

func (b *block) headLine(l *look) string {
	switch b.kind {
	case called:
		return b.head(l)
	case summary:
		return l.paint(fmt.Sprintf("• %s  #%d", b.says, b.number), yellow)
	}
	return l.paint(fmt.Sprintf("✻ thought for %s  #%d", seconds(b.took), b.number), dim)
}

// full shows everything that is known of a block.
func (b *block) full(l *look) []string {
	inner := *l
	inner.width = max(8, l.width-2)
	var out []string
	switch b.kind {
	case thought:
		out = inner.wrapped(screen.Visible(b.text), "", "")
	case summary:
		out = inner.text(b.text)
	default:
		out = append(out, inner.paint("arguments", cyan))
		out = append(out, inner.json(b.call.Arguments)...)
		if b.call.By != "" {
			out = append(out, inner.paint("allowed by", cyan)+" "+b.call.By)
		}
		if b.state != finished {
			out = append(out, progressLine(b.call.Done, b.call.Total, b.says, inner.width))
		}
		if len(b.log) > 0 {
			out = append(out, inner.paint("log", cyan))
			for _, line := range b.log {
				out = append(out, inner.wrapped(line, "", dim)...)
			}
		}
		if b.state == finished {
			out = append(out, inner.paint("result", cyan)+" "+outcomeWord(b.call.Outcome))
			out = append(out, inner.text(partsText(b.call.Parts))...)
		}
	}
	for i := range out {
		out[i] = "  " + out[i]
	}
	return append(out, "")
}

// text shows text from a server: JSON indented, Markdown rendered, anything else unchanged.
func (l *look) text(text string) []string {
	text = bounded(text)
	switch {
	case screen.IsJSON(text):
		return l.json([]byte(strings.TrimSpace(text)))
	case screen.IsMarkdown(text):
		text = screen.Markdown(screen.Visible(text), l.width, l.color)
	default:
		text = screen.Visible(text)
	}
	var out []string
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		out = append(out, screen.Fold(strings.ReplaceAll(line, "\t", "    "), l.width)...)
	}
	return out
}

// lay returns all lines, and the indexes of the heads of parts.
func (v *viewer) lay(l *look) (lines []string, heads []int) {
	if v.width != l.width {
		for i := range v.parts {
			v.parts[i].lines = nil
		}
		v.width = l.width
	}
	for i := range v.parts {
		p := &v.parts[i]
		heads = append(heads, len(lines))
		if p.head != nil {
			inner := *l
			inner.width = max(8, l.width-2)
			mark := "  "
			if i == v.at {
				mark = l.paint("› ", cyan)
			}
			lines = append(lines, mark+p.head(&inner))
		}
		if p.open {
			if p.lines == nil || p.moves {
				p.lines = p.body(l)
			}
			lines = append(lines, p.lines...)
		}
	}
	return lines, heads
}

// frame returns the page. The argument questions is the number of questions that wait behind it.
func (v *viewer) frame(l *look, questions int) frame {
	lines, heads := v.lay(l)
	room := max(1, l.height-2)
	v.top = max(0, min(v.top, len(lines)-room))
	if v.fresh {
		v.fresh = false
		if heads[v.at] >= room/2 {
			v.top = min(heads[v.at], max(0, len(lines)-room))
		}
	}
	shown := lines[v.top:min(len(lines), v.top+room)]
	f := frame{alt: true, width: l.width}
	f.lines = append(f.lines, l.paint(screen.Cut(v.title, l.width), bold))
	f.lines = append(f.lines, shown...)
	for len(f.lines) < l.height-1 {
		f.lines = append(f.lines, "")
	}
	keys := "q back · arrows, PgUp, PgDn scroll"
	if v.parts[0].head != nil {
		keys = "q back · n p next, previous · enter folds · arrows, PgUp, PgDn scroll"
	}
	if rest := len(lines) - v.top - len(shown); rest > 0 {
		keys = fmt.Sprintf("↓ %d · ", rest) + keys
	}
	style := dim
	if questions > 0 {
		keys, style = plural(questions, "question")+" for you · "+keys, yellow
	}
	f.lines = append(f.lines, l.paint(screen.Cut(keys, l.width), style))
	for i, line := range f.lines {
		f.lines[i] = screen.Fold(line, l.width)[0]
	}
	return f
}

// key handles a key, and reports whether the viewer closes.
func (v *viewer) key(k tea.KeyPressMsg, l *look) bool {
	room := max(1, l.height-2)
	switch k.String() {
	case "q", "esc", "ctrl+o":
		return true
	case "up", "k":
		v.top--
	case "down", "j":
		v.top++
	case "pgup", "b", "ctrl+b":
		v.top -= room - 1
	case "pgdown", "space", "ctrl+f":
		v.top += room - 1
	case "home", "g":
		v.top = 0
	case "end", "G":
		v.top = 1 << 30
	case "n", "tab":
		v.goTo(min(v.at+1, len(v.parts)-1), l)
	case "p", "shift+tab":
		v.goTo(max(v.at-1, 0), l)
	case "enter":
		if v.parts[v.at].head != nil {
			v.parts[v.at].open = !v.parts[v.at].open
			v.goTo(v.at, l)
		}
	}
	v.top = max(0, v.top)
	return false
}

// goTo moves the cursor to a part, and scrolls it to the top.
func (v *viewer) goTo(at int, l *look) {
	v.at = at
	_, heads := v.lay(l)
	v.top = heads[at]
}
