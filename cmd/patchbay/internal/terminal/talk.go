// Package terminal is the conversation of a program with a person, beside its data: lines on
// standard error, and typed input.
//
// A [Talk] is standard error: lines, a progress bar kept apart from them, and questions. A
// [Keyboard] reads lines; a [Dialog] asks the questions from servers with both. [Picture] shows
// images.
//
// # Guarantees
//
//   - Text from a server never moves the cursor, sets colours or looks like another line.
//   - No line holds a secret that [Talk.Clean] knows.
//   - Text that was typed before a question was on the screen does not answer it.
package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcp/level"
)

// Talk is standard error: everything that is printed beside the data. It keeps the progress bar,
// one line that is overwritten, apart from the other lines. Its exported fields are set before it
// is used; then it may be used by several goroutines.
type Talk struct {
	W     io.Writer
	TTY   bool // W is a terminal
	Width int  // of W, in columns
	Color bool
	Quiet bool // no progress, log lines and notes

	// Clean removes the secrets from a line. If nil, no secrets are known.
	Clean func(line string) string

	mu    sync.Mutex
	bar   string            // on the screen now; guarded by mu
	last  map[string]string // the last progress line of each call, without a terminal; guarded by mu
	drawn time.Time
	held  bool   // a question is on the screen: no bar; guarded by mu
	ask   string // the last line of the question, which stays last; guarded by mu
}

// Always writes a line, also when Quiet is set.
func (t *Talk) Always(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.Clean != nil {
		s = t.Clean(s)
	}
	bar := t.clear()
	if t.ask != "" {
		io.WriteString(t.W, "\r\x1b[K")
	}
	io.WriteString(t.W, s+"\n"+t.ask)
	t.draw(bar)
}

// Note writes a line about the work of the program, unless Quiet is set.
func (t *Talk) Note(format string, args ...any) {
	if !t.Quiet {
		t.Always("patchbay: " + screen.Visible(fmt.Sprintf(format, args...)))
	}
}

// Write writes the standard error of a server.
func (t *Talk) Write(p []byte) (int, error) {
	t.Always(screen.Visible(strings.TrimRight(string(p), "\n")))
	return len(p), nil
}

// Divert sends all lines to w, as to a file, until back is called.
func (t *Talk) Divert(w io.Writer) (back func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
	before, tty, color := t.W, t.TTY, t.Color
	t.W, t.TTY, t.Color = w, false, false
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.W, t.TTY, t.Color = before, tty, color
	}
}

// Paint colours text with the codes of a style, if colours are on.
func (t *Talk) Paint(s, style string) string { return screen.Paint(s, style, t.Color) }

// clear removes the bar from the screen and returns it. The caller holds mu.
func (t *Talk) clear() string {
	bar := t.bar
	if bar != "" {
		io.WriteString(t.W, "\r\x1b[K")
		t.bar = ""
	}
	return bar
}

// draw puts the bar on the screen. The caller holds mu.
func (t *Talk) draw(bar string) {
	if bar != "" && !t.held {
		io.WriteString(t.W, "\r"+bar+"\x1b[K")
		t.bar = bar
	}
}

// redrawn is the minimum time between two updates of the bar.
const redrawn = 50 * time.Millisecond

// Progress shows the progress of a call: a bar on a terminal, else a line for each new message or
// tenth of the work. Total is 0 if it is not known.
func (t *Talk) Progress(done, total float64, message string) { t.ProgressOf("", done, total, message) }

// ProgressOf is [Talk.Progress] for one of several calls at the same time: each has a name, which is
// shown.
func (t *Talk) ProgressOf(name string, done, total float64, message string) {
	if t.Quiet {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	message = screen.OneLine(message)
	if !t.TTY {
		key, count := message, fmt.Sprintf("%g", done)
		if total > 0 {
			key = fmt.Sprintf("%d %s", int(10*done/total), message)
			count = fmt.Sprintf("%g/%g", done, total)
		} else if message == "" {
			key = count
		}
		if key != t.last[name] {
			if t.last == nil {
				t.last = map[string]string{}
			}
			t.last[name] = key
			io.WriteString(t.W, strings.Join(strings.Fields("progress "+name+" "+count+" "+message), " ")+"\n")
		}
		return
	}
	message = strings.TrimSpace(name + "  " + message)
	if t.held || time.Since(t.drawn) < redrawn && done < total {
		return
	}
	t.drawn = time.Now()
	t.draw(barOf(done, total, message, t.Width))
}

// Status shows a line that the next one replaces, on a terminal.
func (t *Talk) Status(s string) {
	if t.Quiet || !t.TTY {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.draw(screen.Cut(screen.OneLine(s), max(t.Width-1, 20)))
}

// EndProgress removes the progress bar.
func (t *Talk) EndProgress() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
}

// Hold keeps the bar off the screen until Release, while a question is asked.
func (t *Talk) Hold() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clear()
	t.held = true
}

// Release ends Hold.
func (t *Talk) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held, t.ask = false, ""
}

// Prompt writes the last line of a question. On a terminal it stays the last line until Release, or until another is
// written; "" ends it.
func (t *Talk) Prompt(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	io.WriteString(t.W, s)
	if t.TTY {
		t.ask = s
	}
}

// Say writes text of a question unchanged.
func (t *Talk) Say(s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	io.WriteString(t.W, s)
}

// barOf formats progress as one line.
func barOf(done, total float64, message string, width int) string {
	const cells = 24
	head := fmt.Sprintf("%g", done)
	if total > 0 {
		part := min(max(done/total, 0), 1)
		n := int(part*cells + 0.5)
		head = fmt.Sprintf("[%s%s] %3d%%", strings.Repeat("█", n), strings.Repeat("░", cells-n), int(part*100+0.5))
	}
	return screen.Cut(strings.TrimSpace(head+"  "+message), max(width-1, 20))
}

// Log writes a log message from a server.
func (t *Talk) Log(m mcp.LogMessage) {
	if t.Quiet {
		return
	}
	name := level.Name(m.Level)
	style := map[string]string{"debug": "2", "info": "34", "notice": "34", "warning": "33"}[name]
	if style == "" {
		style = "31"
	}
	text := screen.Plain(m.Data)
	if m.Logger != "" {
		text = m.Logger + ": " + text
	}
	t.Always(t.Paint("["+name+"]", style) + " " + screen.Visible(text))
}

// Lines writes whole lines to standard error.
type Lines struct{ Talk *Talk }

func (w Lines) Write(p []byte) (int, error) {
	w.Talk.Always(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}
