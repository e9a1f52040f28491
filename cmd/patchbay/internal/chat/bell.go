package chat

import (
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/screen"
)

// focus is whether the person looks at the terminal, if the terminal says so.
type focus int

const (
	unknown focus = iota
	here
	away
)

// waits is the time without a key after which a question rings, if the terminal does not say whether
// the person looks at it.
const waits = 5 * time.Second

// ring draws the person's attention to a new question, once, unless they look at the terminal.
func (u *ui) ring() {
	if len(u.questions) == 0 || u.questions[0].rung {
		return
	}
	q := u.questions[0]
	quiet := min(u.look.now.Sub(u.posed), u.look.now.Sub(u.pressed))
	switch {
	case u.focus == here, u.focus == unknown && quiet < waits:
		return
	case u.c.o.Bell == "off":
	case u.c.o.Bell == "desktop":
		u.canvas.emit("\x1b]9;" + screen.Cut("patchbay: "+screen.OneLine(q.server)+" waits for your answer", 100) + "\a")
	default:
		u.canvas.emit("\a")
	}
	q.rung = true
}

// left says that the person no longer looks at the terminal. They have seen the questions on it.
func (u *ui) left() {
	u.focus = away
	for _, q := range u.questions {
		q.rung = true
	}
}
