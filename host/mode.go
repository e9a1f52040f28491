package host

import (
	"fmt"
	"strings"
)

// Mode bounds what the model may do in a conversation. It never allows anything.
type Mode string

const (
	// ModeAsk has no bounds of its own: each call needs an approval.
	ModeAsk Mode = "ask"

	// ModeReadOnly refuses the calls of tools that do not declare themselves read-only, whatever
	// allows them, and without asking the person. Other calls need the same approval as in ModeAsk.
	// So the mode is as good as the declarations: of the servers that are trusted, and of the tools
	// that the person allows.
	ModeReadOnly Mode = "read-only"
)

// Modes are all modes.
var Modes = []Mode{ModeAsk, ModeReadOnly}

// ParseMode returns the mode of a word; an empty one is ModeAsk.
func ParseMode(word string) (Mode, error) {
	switch m := Mode(strings.ToLower(word)); m {
	case "", ModeAsk:
		return ModeAsk, nil
	case ModeReadOnly, "readonly":
		return ModeReadOnly, nil
	}
	return "", fmt.Errorf("unknown mode %q: it is %s or %s", word, ModeAsk, ModeReadOnly)
}

// refuses reports whether the mode refuses calls of a tool.
func (m Mode) refuses(t Tool) bool {
	return m != "" && m != ModeAsk && !readOnly(t.Tool)
}

const (
	whyMode = "read-only mode"
	sayMode = "It was not called: this conversation is in read-only mode, and the tool does not declare itself read-only. Call only tools that read; describe to the person what you would change. Do not try it again unless they say that the mode has changed."
)
