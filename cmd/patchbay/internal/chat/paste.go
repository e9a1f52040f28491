package chat

import (
	"context"
	"runtime/debug"
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/attach"
)

const (
	maxPasted = 20                     // pasted texts of which the mentions attach nothing
	findTime  = 200 * time.Millisecond // to find pasted paths: a network folder may not answer
)

// largePaste is the size of a paste, in bytes, whose memory is given back to the system at once: reading it takes up
// to fifty times as much, and an idle program would keep that for minutes.
const largePaste = 256 << 10

// release gives the memory of a large paste back, once it has been sent or left out.
func (u *ui) release() {
	if !u.large || u.turn != nil || len(u.input.text) > largePaste {
		return
	}
	u.large = false
	u.c.start(func(ctx context.Context) {
		select {
		case <-time.After(time.Second): // the event is still in use
			debug.FreeOSMemory()
		case <-ctx.Done():
		}
	})
}

const tooLong = "the pasted text is too long for a message and was left out"

// pasteInput inserts a pasted text into the input. Paths of files become mentions, except in a command.
func (u *ui) pasteInput(text string) {
	defer u.menu.close()
	before := strings.Join(u.input.text[:u.input.at], "")
	if isCommand(strings.TrimSpace(before)) && before != "" {
		if !u.input.insert(text) {
			u.note("%s", tooLong)
		}
		return
	}
	found := make(chan string, 1)
	go func() { found <- attach.Pasted(text) }() // ends when the file system answers
	select {
	case mentions := <-found:
		if mentions != "" {
			if strings.HasSuffix(before, "@") {
				mentions = mentions[1:]
			}
			u.input.insert(mentions + " ")
			u.say("attached when you send it; without the @ it is only text")
			return
		}
	case <-time.After(findTime):
	}
	if strings.Contains(text, "@") {
		u.pasted = append(u.pasted, text)
		u.pasted = u.pasted[max(0, len(u.pasted)-maxPasted):]
	}
	if !u.input.insert(text) {
		u.note("%s", tooLong)
	}
}
