package chat

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// frame is the part at the bottom of the terminal that is repainted. None of its lines is wider
// than the terminal.
type frame struct {
	lines []string
	x, y  int  // of the cursor in it
	shown bool // the cursor is visible
	alt   bool // a full page on the alternate screen
	width int  // of the terminal, in columns
}

func (f *frame) equal(g frame) bool {
	return slices.Equal(f.lines, g.lines) && f.x == g.x && f.y == g.y && f.shown == g.shown && f.alt == g.alt && f.width == g.width
}

// painter writes to the terminal. Finished lines go above the frame, into the terminal's own
// scrollback, and are never touched again. It owns one goroutine, the only one that waits for the
// terminal: a blocked terminal delays nothing else.
type painter struct {
	w      io.Writer
	wake   chan struct{} // capacity 1
	over   chan struct{} // closed by close
	ended  chan struct{} // closed when the goroutine has ended
	orders chan func()
	closer sync.Once

	mu     sync.Mutex
	next   frame    // guarded by mu
	fresh  bool     // next must be painted; guarded by mu
	above  []string // finished lines that were not written yet; guarded by mu
	silent string   // text without width to write next; guarded by mu
	lost   int      // lines that were dropped because the terminal was blocked; guarded by mu
	anew   bool     // clear the screen first; guarded by mu

	// Used only by the goroutine.
	drawn  frame // on the main screen
	alt    bool  // the alternate screen is active
	paused bool
}

const (
	// repaint is the minimum time between two updates.
	repaint = 30 * time.Millisecond

	// maxAbove bounds the lines that wait for a blocked terminal. They are trimmed to it once they
	// exceed it by a quarter.
	maxAbove = 20_000

	// parting bounds the wait of close for a blocked terminal.
	parting = time.Second

	// Erases the line of the cursor and all below it. A single sequence for both would put a frame that fills the screen
	// into the scrollback: tmux keeps what is erased from the first column of the first row on.
	erase = "\x1b[2K\x1b7\x1b[B\x1b[J\x1b8"

	// Enables bracketed paste, reports of the focus and distinguishable modifier keys.
	enter = "\x1b[?2004h\x1b[?1004h\x1b[>1u\x1b[>4;2m"
	leave = "\x1b[?2004l\x1b[?1004l\x1b[<1u\x1b[>4m\x1b[?7h\x1b[?25h\x1b[0m"
)

func newPainter(w io.Writer) *painter {
	p := &painter{w: w, wake: make(chan struct{}, 1), orders: make(chan func()), over: make(chan struct{}), ended: make(chan struct{})}
	go p.loop()
	return p
}

// show paints a frame, and adds lines above it.
func (p *painter) show(above []string, f frame) {
	p.mu.Lock()
	if len(above) == 0 && p.next.equal(f) {
		p.mu.Unlock()
		return
	}
	p.above = append(p.above, above...)
	if n := len(p.above) - maxAbove; n > maxAbove/4 { // not for each line
		p.above = append([]string(nil), p.above[n:]...)
		p.lost += n
	}
	p.next, p.fresh = f, true
	p.mu.Unlock()
	p.poke()
}

// emit writes text without width, such as the sequence for the clipboard.
func (p *painter) emit(s string) {
	p.mu.Lock()
	p.silent, p.fresh = p.silent+s, true
	p.mu.Unlock()
	p.poke()
}

// redraw repaints the frame on a clear screen, after something else has written to the terminal.
func (p *painter) redraw() {
	p.mu.Lock()
	p.anew, p.fresh = true, true
	p.mu.Unlock()
	p.poke()
}

func (p *painter) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// pause restores the terminal until resume.
func (p *painter) pause() {
	p.order(func() {
		p.paint(true)
		io.WriteString(p.w, leave)
		p.paused = true
	})
}

func (p *painter) resume() {
	p.order(func() {
		io.WriteString(p.w, enter)
		p.paused = false
		p.mu.Lock()
		p.fresh = true
		p.mu.Unlock()
	})
	p.poke()
}

// order runs f in the goroutine, and waits for it as long as close does.
func (p *painter) order(f func()) {
	late := time.After(parting)
	done := make(chan struct{})
	select {
	case p.orders <- func() { f(); close(done) }:
	case <-p.ended:
		return
	case <-late:
		return
	}
	select {
	case <-done:
	case <-late:
	}
}

// close paints the remaining lines without the frame, and restores the terminal. It waits at most
// parting for a blocked terminal. It may be called more than once.
func (p *painter) close() {
	p.closer.Do(func() { close(p.over) })
	select {
	case <-p.ended:
	case <-time.After(parting):
	}
}

func (p *painter) loop() {
	defer close(p.ended)
	io.WriteString(p.w, enter)
	for {
		select {
		case <-p.wake:
			if p.paused {
				continue
			}
			p.paint(false)
			select { // collect more for one update
			case <-time.After(repaint):
			case <-p.over:
			}
		case f := <-p.orders:
			f()
		case <-p.over:
			if !p.paused {
				p.paint(true)
				io.WriteString(p.w, leave)
			}
			return
		}
	}
}

// paint writes the changes.
func (p *painter) paint(last bool) {
	p.mu.Lock()
	next, fresh, anew := p.next, p.fresh, p.anew
	silent := p.silent
	p.fresh, p.anew, p.silent = false, false, ""
	var above []string
	if !next.alt || last {
		above, p.above = p.above, nil
		if p.lost > 0 {
			above = append([]string{fmt.Sprintf("… %d lines are missing here: the terminal did not accept them; /save has them", p.lost)}, above...)
			p.lost = 0
		}
	}
	p.mu.Unlock()
	if last {
		next = frame{width: next.width}
	} else if !fresh {
		return
	}
	var out strings.Builder
	out.WriteString(silent)
	if next.alt != p.alt {
		p.alt = next.alt
		if p.alt {
			out.WriteString("\x1b[?1049h\x1b[2J")
		} else {
			out.WriteString("\x1b[?1049l")
		}
	}
	if p.alt {
		p.paintPage(&out, next)
	} else {
		p.paintBelow(&out, above, next, anew)
	}
	if out.Len() > 0 {
		// Terminals with synchronized output show it as one update.
		io.WriteString(p.w, "\x1b[?2026h\x1b[?25l"+out.String()+"\x1b[?2026l")
	}
}

// paintPage paints the alternate screen. It erases lines before it writes them: erasing after a
// line as wide as the terminal would remove its last character.
func (p *painter) paintPage(out *strings.Builder, next frame) {
	out.WriteString("\x1b[?7l\x1b[H")
	for i, l := range next.lines {
		if i > 0 {
			out.WriteString("\r\n")
		}
		out.WriteString("\x1b[2K" + l)
	}
	out.WriteString("\x1b[?7h")
	if next.shown {
		fmt.Fprintf(out, "\x1b[%d;%dH\x1b[?25h", next.y+1, next.x+1)
	}
}

// paintBelow writes lines above the frame, and the frame below them.
func (p *painter) paintBelow(out *strings.Builder, above []string, next frame, anew bool) {
	rows := p.drawn.rowsAbove(next.width)
	if anew {
		out.WriteString("\x1b[H\x1b[2J")
		rows = 0
	}
	out.WriteString("\r")
	if rows > 0 {
		fmt.Fprintf(out, "\x1b[%dA", rows)
	}
	keep := len(above) == 0 && !anew && next.width == p.drawn.width && len(next.lines) == len(p.drawn.lines)
	if !keep {
		out.WriteString(erase)
	}
	for _, l := range above {
		out.WriteString(l + "\r\n")
	}
	// The terminal must not wrap the frame, even if it measures widths differently.
	out.WriteString("\x1b[?7l")
	for i, l := range next.lines {
		if i > 0 {
			out.WriteString("\r\n")
		}
		if !keep {
			out.WriteString(l)
		} else if p.drawn.lines[i] != l {
			out.WriteString("\x1b[2K" + l)
		}
	}
	out.WriteString("\r\x1b[?7h")
	if next.shown && len(next.lines) > 0 {
		if up := len(next.lines) - 1 - next.y; up > 0 {
			fmt.Fprintf(out, "\x1b[%dA", up)
		}
		if next.x > 0 {
			fmt.Fprintf(out, "\x1b[%dC", next.x)
		}
		out.WriteString("\x1b[?25h")
	} else {
		next.x, next.y = 0, max(0, len(next.lines)-1)
	}
	p.drawn = next
}

// rowsAbove returns how many rows above the cursor the frame begins, on a terminal of width
// columns. The width matters because a terminal that became narrower wraps the lines on it.
func (f *frame) rowsAbove(width int) int {
	if width <= 0 || width >= f.width {
		return f.y
	}
	rows := 0
	for _, l := range f.lines[:min(f.y, len(f.lines))] {
		rows += max(1, (screen.Columns(screen.Unpainted(l))+width-1)/width)
	}
	return rows + f.x/width
}
