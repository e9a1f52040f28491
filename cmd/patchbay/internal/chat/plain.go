package chat

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
)

// sheets is a canvas of lines: what is over is written, and what still changes is not.
type sheets struct {
	w   io.Writer
	err error
}

func (s *sheets) show(above []string, _ frame) {
	for _, line := range above {
		if s.err == nil {
			_, s.err = io.WriteString(s.w, strings.TrimRight(line, " ")+"\n")
		}
	}
}

func (s *sheets) redraw()     {}
func (s *sheets) emit(string) {}

// Lines talks without a terminal: each line that read returns is said, or is a command, and what
// comes of it is written before the next one is read. It ends with the lines, which io.EOF tells.
func (c *Chat) Lines(ctx context.Context, read func(context.Context) (string, error), out io.Writer) error {
	stop := context.AfterFunc(ctx, c.cancel)
	defer stop()
	s := &sheets{w: out}
	u := newUI(c, s)
	defer func() {
		c.cancel()
		within(leaving, c.wg.Wait)
	}()
	for {
		line, err := read(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		u.input.set(line)
		left := u.submit() != nil
		u.hinted()
		u.input.set("")
		for u.turn != nil || c.busy.Load() > 0 {
			u.draw()
			select {
			case <-c.mail.wake:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			u.look.now = time.Now()
			for _, m := range c.mail.take() {
				left = u.receive(m) != nil || left
			}
		}
		u.draw()
		if u.panicked != nil {
			panic(u.panicked)
		}
		if left || s.err != nil {
			return s.err
		}
	}
}

// hinted says in a line what a terminal would show for a moment.
func (u *ui) hinted() {
	if u.hint != "" {
		u.note("%s", u.hint)
		u.hint = ""
	}
	if u.viewer != nil { // pages are lines
		lines, _ := u.viewer.lay(&u.look)
		u.print(append(lines, "")...)
		u.viewer = nil
	}
}
