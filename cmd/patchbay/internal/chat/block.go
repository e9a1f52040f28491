package chat

import (
	"fmt"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
)

// block is a part of the chat: a message, a thought, a call or a note. It stays in the frame until
// it is complete, and then moves above it.
type block struct {
	kind   blockKind
	number int // by which a person opens it; 0: everything is shown already
	over   bool
	began  time.Time
	took   time.Duration // set when it is complete

	text  string         // of all kinds but called
	call  host.CallEvent // its last state
	state callState
	says  string   // the last progress message, or the reason for a retry; of a summary: the line about it
	log   []string // log messages from the server, at most maxLog

	stream screen.Stream // of an answer: the part that has moved above the frame
}

type blockKind int

const (
	said    blockKind = iota // by the person
	answer                   // of the model
	thought                  // of the model
	called                   // a tool call
	summary                  // of the conversation, by the model
	noted                    // by the host
	shown                    // lines printed by a command
)

type callState int

const (
	wanted  callState = iota // by the model
	waiting                  // for the person
	running
	finished
)

const (
	maxLog   = 50
	preview  = 3         // lines of a result below its call
	maxText  = 256 << 10 // of a kept block, in bytes
	maxKept  = 300       // blocks that can be opened
	tailSize = 3         // lines shown of a growing thought
)

// look holds the settings of the display.
type look struct {
	width, height int
	color         bool
	thoughts      bool // shown, not folded
	lines         bool // without a terminal: texts from the model are unchanged
	tick          int  // of the spinner
	now           time.Time
}

func (l *look) paper() screen.Paper {
	return screen.Paper{Width: l.width, Color: l.color, Plain: l.lines}
}

func (l *look) paint(s, style string) string { return screen.Paint(s, style, l.color) }

// Styles of the terminal's own colours.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	blue   = "34"
	cyan   = "36"
)

// spinner turns while work is in progress.
func (l *look) spinner() string {
	return l.paint(string([]rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")[l.tick%10]), cyan)
}

// wrapped wraps text at words into lines that fit, indented.
func (l *look) wrapped(text, indent, style string) []string {
	room := max(10, l.width-screen.Columns(indent))
	var out []string
	for _, line := range strings.Split(screen.Wrap(text, room), "\n") {
		for _, part := range screen.Fold(line, room) {
			out = append(out, indent+l.paint(part, style))
		}
	}
	return out
}

// render returns the current lines of a block; of an answer, those that have not moved above the
// frame yet.
func (b *block) render(l *look) []string {
	switch b.kind {
	case answer:
		return b.stream.Rest(b.text, l.paper())
	case thought:
		return b.renderThought(l)
	case called:
		return b.renderCall(l)
	case summary:
		return append(l.marked("•", yellow, fmt.Sprintf("%s; ctrl-O opens it, /undo undoes it  #%d", b.says, b.number), yellow), "")
	case noted:
		return append(l.marked("•", yellow, screen.Visible(b.text), yellow), "")
	case said:
		return append(l.marked("❯", cyan+";"+bold, screen.Visible(b.text), bold), "")
	}
	return strings.Split(b.text, "\n")
}

// marked wraps text, with a mark before its first line.
func (l *look) marked(mark, markStyle, text, style string) []string {
	lines := l.wrapped(text, "  ", style)
	lines[0] = l.paint(mark, markStyle) + lines[0][1:]
	return lines
}

func (b *block) renderThought(l *look) []string {
	text := strings.TrimSpace(screen.Visible(b.text))
	if text == "" {
		return nil
	}
	lines := l.wrapped(text, "  ", dim)
	switch {
	case b.over && !l.thoughts:
		return []string{l.paint(fmt.Sprintf("✻ thought for %s  #%d", seconds(b.took), b.number), dim), ""}
	case b.over:
		return append(append([]string{l.paint(fmt.Sprintf("✻ thought for %s", seconds(b.took)), dim)}, lines...), "")
	case !l.thoughts && len(lines) > tailSize:
		lines = lines[len(lines)-tailSize:]
	}
	return append([]string{l.paint("✻ thinking", dim)}, lines...)
}

// name returns the name of a tool for people.
func (b *block) name() string {
	if b.call.Server == "" {
		return screen.OneLine(b.call.Tool)
	}
	return screen.OneLine(b.call.Server) + "/" + screen.OneLine(b.call.Tool)
}

// sign returns the sign before a call: its state or outcome.
func (b *block) sign(l *look) string {
	switch {
	case b.state == waiting:
		return l.paint("?", yellow)
	case b.state != finished:
		return l.spinner()
	}
	switch b.call.Outcome {
	case host.Succeeded:
		return l.paint("✓", green)
	case host.Denied, host.Cancelled:
		return l.paint("⊘", yellow)
	case host.Unknown:
		return l.paint("?", yellow)
	}
	return l.paint("✗", red)
}

// head returns the line of a call: tool, arguments, time.
func (b *block) head(l *look) string {
	var tail string
	switch {
	case b.state == finished:
		if word := outcomeWord(b.call.Outcome); word != "" {
			tail += "  " + word
		}
		if b.call.Cached {
			tail += "  cached"
		}
		tail += fmt.Sprintf("  %s  #%d", seconds(b.took), b.number)
	case b.state == waiting:
		tail = "  waiting for you"
	case !b.began.IsZero():
		tail = "  " + seconds(l.now.Sub(b.began))
	}
	name := screen.Cut(b.name(), max(16, l.width-screen.Columns(tail)-2))
	room := l.width - 3 - screen.Columns(name) - screen.Columns(tail)
	args := ""
	if a := screen.OneLine(string(b.call.Arguments)); room > 4 && a != "{}" && a != "" {
		args = " " + l.paint(screen.Cut(a, room), dim)
	}
	return b.sign(l) + " " + l.paint(name, bold) + args + l.paint(tail, dim)
}

func outcomeWord(o host.Outcome) string {
	switch o {
	case host.Succeeded, "":
		return ""
	case host.Invalid:
		return "not called"
	case host.Unknown:
		return "outcome unknown"
	case host.Broken:
		return "failed"
	}
	return string(o)
}

func (b *block) renderCall(l *look) []string {
	lines := []string{b.head(l)}
	room := max(8, l.width-2)
	if b.state != finished {
		if b.state == running && (b.call.Total > 0 || b.call.Done > 0) || b.says != "" {
			lines = append(lines, "  "+l.paint(screen.Cut(progressLine(b.call.Done, b.call.Total, b.says, room), room), dim))
		}
		if n := len(b.log); n > 0 {
			lines = append(lines, "  "+l.paint(screen.Cut(screen.OneLine(b.log[n-1]), room), dim))
		}
		return lines
	}
	style := dim
	if b.call.Outcome != host.Succeeded {
		style = ""
	}
	text := nonBlank(partsText(b.call.Parts))
	for i, t := range text {
		if i == preview && len(text) > preview+1 {
			lines = append(lines, "  "+l.paint(fmt.Sprintf("… %d more lines (ctrl-O)", len(text)-i), dim))
			break
		}
		lines = append(lines, "  "+l.paint(screen.Cut(screen.OneLine(t), room), style))
	}
	return append(lines, "")
}

// progressLine formats the progress of a call.
func progressLine(done, total float64, says string, room int) string {
	head := ""
	switch {
	case total > 0:
		cells := min(20, max(4, room/3))
		part := min(max(done/total, 0), 1)
		n := int(part*float64(cells) + 0.5)
		head = fmt.Sprintf("%s%s %3d%%  ", strings.Repeat("█", n), strings.Repeat("░", cells-n), int(part*100+0.5))
	case done > 0:
		head = fmt.Sprintf("%g  ", done)
	}
	return strings.TrimRight(head+screen.OneLine(says), " ")
}

// partsText returns the parts of a result as text, as far as they can be shown.
func partsText(parts []model.Part) string {
	var out []string
	for _, p := range parts {
		switch {
		case p.Media != nil:
			out = append(out, mediaWord(p.Media))
		case p.Text != "":
			out = append(out, p.Text)
		}
	}
	return strings.Join(out, "\n")
}

func mediaWord(m *model.Media) string {
	name := m.Name
	if name != "" {
		name = " " + name
	}
	return fmt.Sprintf("[%s%s, %s]", m.MIME, name, screen.Bytes(len(m.Data)))
}

func nonBlank(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if t := strings.TrimSpace(line); t != "" {
			out = append(out, t)
		}
	}
	return out
}

// seconds formats a waiting time.
func seconds(d time.Duration) string {
	switch {
	case d < 0:
		d = 0
		fallthrough
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	}
	return fmt.Sprintf("%d min", int(d.Minutes()))
}

// bounded cuts out the middle of a text that is too long to keep.
func bounded(s string) string {
	if len(s) <= maxText {
		return s
	}
	half := maxText / 2
	return strings.ToValidUTF8(s[:half], "") + fmt.Sprintf("\n… %s omitted …\n", screen.Bytes(len(s)-2*half)) +
		strings.ToValidUTF8(s[len(s)-half:], "")
}
