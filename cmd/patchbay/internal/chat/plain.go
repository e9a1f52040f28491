package chat

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"
)

// sheets is a canvas without a terminal: it writes finished lines and ignores the frame.
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

// endless is the size without a terminal: lines are not wrapped.
func endless() (width, height int, err error) { return 1 << 16, 24, nil }

// Lines runs the chat without a terminal: each line that read returns is a message or a command,
// and its output is written before the next line is read. A line that ends in a backslash continues
// on the next one. Lines returns when read returns io.EOF: an error if the last message has failed
// because of the model.
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
	begun := "" // the lines that the next one continues
	first := c.o.First
	for {
		line, err := first, error(nil)
		if first == "" {
			line, err = read(ctx)
		}
		first = ""
		switch {
		case errors.Is(err, io.EOF) && begun == "":
			return u.failure()
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
			return errors.Join(s.err, u.failure())
		}
	}
}

// failure returns the error of the model in the last turn, or nil.
func (u *ui) failure() error {
	if u.failed == nil {
		return nil
	}
	return u.failed
}

// settle waits until nothing is in progress, and reports whether the person leaves.
func (u *ui) settle(ctx context.Context) (left bool) {
	for {
		idle := u.c.busy.Load() == 0 // goroutines put their events before they count as done
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

// hinted prints a message that a terminal would show for a moment.
func (u *ui) hinted() {
	if u.hint != "" {
		u.note("%s", u.hint)
		u.hint = ""
	}
	if u.viewer != nil { // print the page of the viewer as lines
		lines, _ := u.viewer.lay(&u.look)
		u.print(append(lines, "")...)
		u.viewer = nil
	}
}
