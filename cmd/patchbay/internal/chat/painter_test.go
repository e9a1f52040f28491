package chat

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// glass is a terminal that records its input, and can block.
type glass struct {
	mu    sync.Mutex
	out   bytes.Buffer
	still chan struct{} // nil: it accepts everything; else it blocks until this is closed
}

func (g *glass) Write(p []byte) (int, error) {
	if g.still != nil {
		<-g.still
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.out.Write(p)
}

var _ io.Writer = (*glass)(nil)

func (g *glass) String() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.out.String()
}

// TestPainterWritesChangedLines repaints changed lines only.
func TestPainterWritesChangedLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &glass{}
		p := newPainter(g)
		defer p.close()
		p.show([]string{"over"}, frame{lines: []string{"one", "two"}, width: 80, shown: true})
		synctest.Wait()
		if got := g.String(); !strings.Contains(got, "over\r\n\x1b[?7lone\r\ntwo") {
			t.Fatalf("the terminal got %q", got)
		}
		before := len(g.String())
		p.show(nil, frame{lines: []string{"one", "2"}, width: 80, shown: true})
		time.Sleep(repaint)
		synctest.Wait()
		if got := g.String()[before:]; strings.Contains(got, "one") || !strings.Contains(got, "\x1b[2K2") {
			t.Errorf("the terminal got %q, want the second line alone", got)
		}
		before = len(g.String())
		p.show(nil, frame{lines: []string{"one", "2"}, width: 80, shown: true})
		time.Sleep(time.Second)
		synctest.Wait()
		if got := g.String()[before:]; got != "" {
			t.Errorf("the terminal got %q for a frame that is there", got)
		}
	})
}

// TestPainterOfTerminalThatStandsStill: a blocked terminal delays nobody, keeps memory bounded, and
// can be closed.
func TestPainterOfTerminalThatStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &glass{still: make(chan struct{})}
		p := newPainter(g)
		began := time.Now()
		for i := range 3 * maxAbove {
			p.show([]string{fmt.Sprintf("line %d", i)}, frame{lines: []string{fmt.Sprint(i)}, width: 80})
		}
		p.pause()
		p.close()
		if took := time.Since(began); took > 3*parting {
			t.Errorf("it took %v", took)
		}
		if n, most := len(p.above), maxAbove+maxAbove/4; n > most {
			t.Errorf("%d lines are kept, want at most %d", n, most)
		}
		close(g.still)
		synctest.Wait()
		if got := g.String(); !strings.Contains(got, "lines are missing here") || !strings.Contains(got, "line 59999") {
			t.Error("the terminal is not told what is missing, or not given the rest")
		}
	})
}

// TestPainterGivesTheTerminalBack: close ends every mode that was set.
func TestPainterGivesTheTerminalBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &glass{}
		p := newPainter(g)
		p.show(nil, frame{alt: true, lines: []string{"page"}, width: 80})
		synctest.Wait()
		p.close()
		p.close()
		got := g.String()
		for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?2004h": "\x1b[?2004l", "\x1b[?1004h": "\x1b[?1004l", "\x1b[?7l": "\x1b[?7h", "\x1b[?25l": "\x1b[?25h", "\x1b[>1u": "\x1b[<1u"} {
			if a, b := strings.LastIndex(got, on), strings.LastIndex(got, off); a < 0 || b < a {
				t.Errorf("%q is not taken back with %q in %q", on, off, got)
			}
		}
	})
}

// TestPainterResumes repaints after something else used the terminal.
func TestPainterResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &glass{}
		p := newPainter(g)
		defer p.close()
		p.show(nil, frame{lines: []string{"one"}, width: 80})
		synctest.Wait()
		p.pause()
		before := len(g.String())
		p.resume()
		synctest.Wait()
		if got := g.String()[before:]; !strings.Contains(got, "one") {
			t.Errorf("the terminal got %q", got)
		}
	})
}
