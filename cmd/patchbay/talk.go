package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/internal/secrets"
	"github.com/patchbay-dev/patchbay/mcp"
)

// talk is standard error: everything that is said beside the data. It keeps the
// progress bar, which is one line that is written over, apart from the lines.
type talk struct {
	w     io.Writer
	tty   bool
	width int
	color bool
	quiet bool // no progress, log lines and notes

	secrets *secrets.Known // in no line; nil: none are known

	mu    sync.Mutex
	bar   string // on the screen now; guarded by mu
	last  string // progress line before, without a terminal; guarded by mu
	drawn time.Time
	held  bool   // a question is on the screen: no bar; guarded by mu
	ask   string // the last line of that question, which stays the last; guarded by mu
}

// always writes a line, also when quiet.
func (t *talk) always(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.secrets != nil {
		s = t.secrets.Text(s)
	}
	bar := t.clear()
	if t.ask != "" {
		io.WriteString(t.w, "\r\x1b[K")
	}
	io.WriteString(t.w, s+"\n"+t.ask)
	t.draw(bar)
}

// note writes a line about the work.
func (t *talk) note(format string, args ...any) {
	if !t.quiet {
		t.always("patchbay: " + visible(fmt.Sprintf(format, args...)))
	}
}

// Write writes what a server says on its standard error.
func (t *talk) Write(p []byte) (int, error) {
	t.always(visible(strings.TrimRight(string(p), "\n")))
	return len(p), nil
}

// divert has all lines go elsewhere until back.
func (t *talk) divert(w io.Writer) (back func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
	before, tty, color := t.w, t.tty, t.color
	t.w, t.tty, t.color = w, false, false
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.w, t.tty, t.color = before, tty, color
	}
}

func (t *talk) paint(s, style string) string { return paint(s, style, t.color) }

// clear removes the bar from the screen and returns it. The caller holds mu.
func (t *talk) clear() string {
	bar := t.bar
	if bar != "" {
		io.WriteString(t.w, "\r\x1b[K")
		t.bar = ""
	}
	return bar
}

// draw puts the bar on the screen. The caller holds mu.
func (t *talk) draw(bar string) {
	if bar != "" && !t.held {
		io.WriteString(t.w, "\r"+bar+"\x1b[K")
		t.bar = bar
	}
}

// redrawn is the least time between two pictures of the bar.
const redrawn = 50 * time.Millisecond

// progress shows how far a call is: a bar on a terminal, else a line for each new
// message or tenth of the work.
func (t *talk) progress(e mcp.ProgressEvent) {
	if t.quiet {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	message := oneLine(e.Message)
	if !t.tty {
		key, count := message, fmt.Sprintf("%g", e.Done)
		if e.Total > 0 {
			key = fmt.Sprintf("%d %s", int(10*e.Done/e.Total), message)
			count = fmt.Sprintf("%g/%g", e.Done, e.Total)
		} else if message == "" {
			key = count
		}
		if key != t.last {
			t.last = key
			io.WriteString(t.w, strings.TrimSpace("progress "+count+" "+message)+"\n")
		}
		return
	}
	if t.held || time.Since(t.drawn) < redrawn && e.Done < e.Total {
		return
	}
	t.drawn = time.Now()
	t.draw(bar(e, message, t.width))
}

// status shows a line that gives way to the next, on a terminal.
func (t *talk) status(s string) {
	if t.quiet || !t.tty {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.draw(cut(oneLine(s), max(t.width-1, 20)))
}

func (t *talk) endProgress() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
}

// hold keeps the bar off the screen until release, while a question is asked.
func (t *talk) hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
	t.held = true
}

func (t *talk) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.ask = false, ""
}

// prompt writes the last line of a question. At a terminal it stays the last line until release.
func (t *talk) prompt(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	io.WriteString(t.w, s)
	if t.tty {
		t.ask = s
	}
}

// say writes text of a question, as it is.
func (t *talk) say(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	io.WriteString(t.w, s)
}

// bar draws progress into one line.
func bar(e mcp.ProgressEvent, message string, width int) string {
	const cells = 24
	head := fmt.Sprintf("%g", e.Done)
	if e.Total > 0 {
		part := min(max(e.Done/e.Total, 0), 1)
		n := int(part*cells + 0.5)
		head = fmt.Sprintf("[%s%s] %3d%%", strings.Repeat("█", n), strings.Repeat("░", cells-n), int(part*100+0.5))
	}
	return cut(strings.TrimSpace(head+"  "+message), max(width-1, 20))
}

// logLine words a log message of a server.
func (t *talk) log(m mcp.LogMessage) {
	if t.quiet {
		return
	}
	level := levelName(m.Level)
	style := map[string]string{"debug": "2", "info": "34", "notice": "34", "warning": "33"}[level]
	if style == "" {
		style = "31"
	}
	text := plain(m.Data)
	if m.Logger != "" {
		text = m.Logger + ": " + text
	}
	t.always(t.paint("["+level+"]", style) + " " + visible(text))
}
