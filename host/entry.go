package host

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
)

// Entry is a message of a conversation, and what is known of it.
type Entry struct {
	model.Message
	Time  time.Time   `json:"time"`
	Turn  int         `json:"turn"`            // from 1
	Model string      `json:"model,omitempty"` // of an answer
	Usage model.Usage `json:"usage,omitzero"`  // of an answer
	Cost  float64     `json:"cost,omitempty"`  // of an answer, 0 if the price is not known
}

// markProvider is whose opaque parts are what a host notes in a message. No model is sent them;
// they are kept with the message, wherever that is kept.
const markProvider = "patchbay-host"

// mark is what a host notes in a message of the user.
type mark struct {
	Typed   string `json:"typed,omitempty"`   // what the person typed, if that is not the text
	Host    bool   `json:"host,omitempty"`    // the host says it
	Summary bool   `json:"summary,omitempty"` // it stands for all that came before
}

// marked returns a message of the user with a note.
func marked(m mark, parts ...model.Part) model.Message {
	data, err := json.Marshal(m)
	if err != nil { // of strings and booleans
		panic(err)
	}
	return model.Message{Role: model.User, Parts: append(slices.Clip(parts), model.Part{Opaque: &model.Opaque{Provider: markProvider, Data: data}})}
}

// mark returns the note.
func (e *Entry) mark() (m mark) {
	for _, p := range e.Parts {
		if p.Opaque != nil && p.Opaque.Provider == markProvider {
			_ = json.Unmarshal(p.Opaque.Data, &m) // nothing is noted if somebody has changed it
		}
	}
	return m
}

// Said returns what the person has typed, if the entry is theirs: without what was attached to
// it, and the command in place of the prompt that it stands for.
func (e *Entry) Said() string {
	m := e.mark()
	switch {
	case e.Role != model.User || m.Host:
		return ""
	case m.Typed != "":
		return m.Typed
	}
	for _, p := range e.Parts {
		if p.Result != nil {
			return ""
		}
	}
	return e.Text()
}

// ByHost tells whether the host has written the entry and not the person or the model: a summary,
// or what was wrong with an answer.
func (e *Entry) ByHost() bool { return e.mark().Host }
