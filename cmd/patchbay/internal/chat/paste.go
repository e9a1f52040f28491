package chat

import (
	"strings"
	"time"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/attach"
)

const (
	maxPasted = 20                     // pasted texts of which the mentions attach nothing
	findTime  = 200 * time.Millisecond // to find pasted paths: a network folder may not answer
)

const tooLong = "the pasted text is too long for a message and was left out"

// pasteInput inserts a pasted text into the input. Paths of files become mentions, except in a command.
func (u *ui) pasteInput(text string) {
	defer u.menu.close()
	before := strings.Join(u.input.text[:u.input.at], "")
	if isCommand(strings.TrimSpace(before)) && before != "" {
		if !u.input.insert(text) {
			u.say(tooLong)
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
		u.say(tooLong)
	}
}
