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

// glass is a terminal that keeps what it is given, and that may stand still.
type glass struct {
	mu    sync.Mutex
	out   bytes.Buffer
	still chan struct{} // nil: it takes everything; else it takes nothing until this is closed
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

// TestPainterWritesChangedLines paints a line anew, and not those that stay as they are.
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

// TestPainterOfTerminalThatStandsStill holds up nobody, keeps no more than it must, and ends.
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

// TestPainterGivesTheTerminalBack ends what it began.
func TestPainterGivesTheTerminalBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &glass{}
		p := newPainter(g)
		p.show(nil, frame{alt: true, lines: []string{"page"}, width: 80})
		synctest.Wait()
		p.close()
		p.close()
		got := g.String()
		for on, off := range map[string]string{"\x1b[?1049h": "\x1b[?1049l", "\x1b[?2004h": "\x1b[?2004l", "\x1b[?7l": "\x1b[?7h", "\x1b[?25l": "\x1b[?25h", "\x1b[>1u": "\x1b[<1u"} {
			if a, b := strings.LastIndex(got, on), strings.LastIndex(got, off); a < 0 || b < a {
				t.Errorf("%q is not taken back with %q in %q", on, off, got)
			}
		}
	})
}

// TestPainterResumes paints again what it has painted before the terminal was somebody else's.
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
