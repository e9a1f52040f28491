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

// endless is the size of what has no columns: lines are not broken.
func endless() (width, height int, err error) { return 1 << 16, 24, nil }

// Lines talks without a terminal: each line that read returns is said, or is a command, and what
// comes of it is written before the next one is read. One that ends in a backslash goes on in the
// next. It ends with the lines, which io.EOF tells.
func (c *Chat) Lines(ctx context.Context, read func(context.Context) (string, error), out io.Writer) error {
	stop := context.AfterFunc(ctx, c.cancel)
	defer stop()
	s := &sheets{w: out}
	past, err := c.past(ctx)
	if err != nil {
		return err
	}
	u := newUI(c, s, endless, past)
	defer func() {
		c.cancel()
		within(leaving, c.wg.Wait)
	}()
	begun := "" // what goes on in the next line
	first := c.o.First
	for {
		line, err := first, error(nil)
		if first == "" {
			line, err = read(ctx)
		}
		first = ""
		switch {
		case errors.Is(err, io.EOF) && begun == "":
			return nil
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		last := err != nil
		line = begun + line
		if first, more := strings.CutSuffix(line, `\`); more && !last {
			begun = first + "\n"
			continue
		}
		begun = ""
		u.input.set(line)
		left := u.submit() != nil
		u.hinted()
		u.input.set("")
		left = u.settle(ctx) || left
		if u.panicked != "" {
			panic(u.panicked)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case left || last || s.err != nil:
			return s.err
		}
	}
}

// settle waits until nothing is being done any more, and tells whether the person leaves.
func (u *ui) settle(ctx context.Context) (left bool) {
	for {
		idle := u.c.busy.Load() == 0 // what ends puts its mail before it says so
		mail := u.c.mail.take()
		u.look.now = time.Now()
		for _, m := range mail {
			left = u.receive(m) != nil || left
		}
		u.draw()
		if u.panicked != "" || idle && len(mail) == 0 && u.turn == nil {
			return left
		}
		if len(mail) > 0 {
			continue
		}
		select {
		case <-u.c.mail.wake:
		case <-ctx.Done():
			return left
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
