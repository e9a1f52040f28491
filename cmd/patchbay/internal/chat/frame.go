package chat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/gateway"
)

const prompt = "❯ "

func (u *ui) inputWidth() int { return max(4, u.look.width-screen.Columns(prompt)-1) }

// draw repaints the whole UI.
func (u *ui) draw() {
	u.flush()
	above := u.above
	u.above = nil
	l := &u.look
	if u.viewer != nil {
		u.canvas.show(above, u.viewer.frame(l, len(u.questions)))
		return
	}
	f := frame{width: l.width}
	var live []string
	for _, b := range u.blocks {
		live = append(live, b.render(l)...)
	}
	if n := len(live); n > 0 && live[n-1] != "" {
		live = append(live, "")
	}
	rows := max(1, l.height-1) // one row is for the status
	var bottom []string
	asking := u.calmed()
	if len(u.questions) > 0 {
		room := rows - min(len(live), max(0, rows-12))
		if !asking || !u.input.empty() {
			room = max(1, room-1)
		}
		lines, x, y, cursor := u.questions[0].view(l, room, len(u.questions)-1, asking)
		bottom = lines
		if asking && cursor {
			f.x, f.y, f.shown = x, y, true
		}
	}
	if len(u.questions) == 0 || !asking || !u.input.empty() {
		most := max(1, min(10, rows/3))
		if len(u.questions) > 0 {
			most = 1
		}
		lines, x, y := u.showInput(most)
		if !asking {
			f.x, f.y, f.shown = x, len(bottom)+y, true
		}
		bottom = append(bottom, lines...)
		if !asking {
			below, most := &u.menu, 6
			if u.picker != nil {
				below, most = &u.picker.found, 10
			}
			bottom = append(bottom, below.view(l, max(0, min(most, rows-len(bottom)-2)))...)
		}
	}
	if cut := len(bottom) - rows; cut > 0 { // a tiny terminal: the lines with the cursor stay longest
		cut = min(cut, f.y)
		bottom = bottom[cut:]
		f.y -= cut
		bottom = bottom[:min(len(bottom), rows)]
	}
	if over := len(live) + len(bottom) - rows; over > 0 {
		live = live[min(over, len(live)):]
	}
	f.y += len(live)
	f.lines = append(append(live, bottom...), u.statusLine())
	for i, line := range f.lines {
		f.lines[i] = screen.Fold(line, l.width)[0]
	}
	u.canvas.show(above, f)
}

// flush moves finished blocks above the frame, in order.
func (u *ui) flush() {
	l := &u.look
	for len(u.blocks) > 0 {
		b := u.blocks[0]
		switch {
		case b.kind == answer:
			u.above = append(u.above, b.stream.Settled(b.text, b.over, l.paper())...)
		case b.over:
			u.above = append(u.above, b.render(l)...)
		}
		if !b.over {
			return
		}
		if b.kind == answer || b.kind == said || b.kind == shown {
			b.text = "" // it has moved above
		}
		u.blocks = u.blocks[1:]
	}
	u.blocks = nil
}

// showInput shows the input.
func (u *ui) showInput(most int) (lines []string, x, y int) {
	l := &u.look
	if u.picker != nil {
		line, x := u.picker.show(l)
		return []string{line}, x, 0
	}
	mark := l.paint("❯", cyan) + " "
	indent := strings.Repeat(" ", screen.Columns(prompt))
	if u.input.empty() {
		text := "Type a message, or /help"
		switch {
		case u.queued != "":
			text = "1 message waits for the turn to end"
		case u.turn != nil:
			text = ""
		case u.model() == nil:
			text = "No model: /call SERVER/TOOL, or /help"
		}
		return []string{mark + l.paint(screen.Cut(text, u.inputWidth()), dim)}, len(indent), 0
	}
	lines, x, y = u.input.view(u.inputWidth(), most)
	for i := range lines {
		if i == 0 {
			lines[i] = mark + lines[i]
		} else {
			lines[i] = indent + lines[i]
		}
	}
	return lines, x + len(indent), y
}

// statusLine returns the last line: the current activity, the model and the servers.
func (u *ui) statusLine() string {
	l := &u.look
	if u.hint != "" && l.now.Before(u.hintUntil) {
		return l.paint(screen.Cut(u.hint, l.width), yellow)
	}
	var facts []fact
	add := func(text string, worth int) {
		if text != "" {
			facts = append(facts, fact{text, worth})
		}
	}
	head := ""
	if t := u.turn; t != nil {
		head = l.spinner() + " "
		add(screen.Cut(screen.OneLine(u.doingNow()), max(10, l.width/2))+" "+seconds(l.now.Sub(t.began)), vital)
		add("ctrl-C cancels", 2)
	}
	name := "no model"
	if m := u.model(); m != nil {
		name = screen.OneLine(m.Info().Name)
	}
	add(name, 5)
	add(u.mode(), vital)
	for _, s := range u.settings() {
		add(s, 4)
	}
	servers, ready := u.serverCount()
	add(servers, map[bool]int{true: 0, false: vital}[ready])
	add(u.fill(false), 1)
	if _, cost := u.talk.Used(); cost > 0 {
		add(fmt.Sprintf("%.4g", cost), 3)
	}
	return head + l.paint(joined(facts, max(1, l.width-screen.Columns(screen.Unpainted(head)))), dim)
}

// fact is a part of the last line. Without room for all, those of the least worth are left out, except for vital ones.
type fact struct {
	text  string
	worth int
}

const vital = 9

// joined returns the facts that fit, in their order.
func joined(facts []fact, width int) string {
	for {
		var texts []string
		least := 0
		for i, f := range facts {
			texts = append(texts, f.text)
			if f.worth < facts[least].worth {
				least = i
			}
		}
		line := strings.Join(texts, " · ")
		if screen.Columns(line) <= width || len(facts) < 2 || facts[least].worth == vital {
			return screen.Cut(line, width)
		}
		facts = slices.Delete(facts, least, least+1)
	}
}

// fill says how full the window is; "": nothing to count from. All of it has the number of tokens too.
func (u *ui) fill(all bool) string {
	n, window := u.talk.Size(), 0
	if m := u.model(); m != nil {
		window = m.Info().Window
	}
	switch {
	case n == 0:
		return ""
	case window == 0:
		return count(n) + " tokens"
	}
	text := fmt.Sprintf("%d%% of %s tokens", n*100/int64(window), strings.Replace(count(int64(window)), ".0", "", 1))
	if all {
		text = count(n) + " tokens in the window: " + text
	}
	return text
}

// doingNow describes the current activity of the turn.
func (u *ui) doingNow() string {
	var calls []string
	next := ""
	for _, b := range u.blocks {
		switch {
		case b.kind != called:
		case b.state == running:
			calls = append(calls, b.name())
		case b.state == wanted && next == "": // a hook decides, or it waits for its turn
			next = b.name()
		}
	}
	switch {
	case u.turn.cancelled:
		return "cancelling"
	case len(u.questions) > 0:
		return "waiting for you"
	case len(calls) == 1:
		return "calling " + calls[0]
	case len(calls) > 1:
		return plural(len(calls), "call")
	case next != "":
		return "about to call " + next
	}
	return u.turn.what
}

// serverCount returns the number of servers, as text, and whether all are ready.
func (u *ui) serverCount() (text string, is bool) {
	ready, all := 0, 0
	for _, s := range u.c.h.Servers() {
		all++
		if s.State == gateway.Ready || s.State == gateway.Idle {
			ready++
		}
	}
	word := "servers"
	if all == 1 {
		word = "server"
	}
	if ready == all {
		return fmt.Sprintf("%d %s", all, word), true
	}
	return fmt.Sprintf("%d of %d %s ready", ready, all, word), false
}

// count formats a number of tokens.
func count(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1fk", float64(n)/1000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}
