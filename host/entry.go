package host

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
)

// Entry is a message of a conversation, with its metadata.
type Entry struct {
	model.Message
	Time    time.Time   `json:"time"`
	Turn    int         `json:"turn"`             // from 1
	Model   string      `json:"model,omitempty"`  // of an answer
	Usage   model.Usage `json:"usage,omitzero"`   // of an answer
	Retried model.Usage `json:"retried,omitzero"` // the part of Usage that attempts took that broke off
	Cost    float64     `json:"cost,omitempty"`   // of an answer, 0 if the price is not known
}

// markProvider is the provider of opaque parts that hold notes of the host. They are stored with
// the message but never sent to a model.
const markProvider = "patchbay-host"

// mark is a note of the host in a message.
type mark struct {
	Typed   string `json:"typed,omitempty"`   // what the person typed, if it differs from the text
	Host    bool   `json:"host,omitempty"`    // written by the host
	Summary bool   `json:"summary,omitempty"` // stands for all entries before From
	From    int    `json:"from,omitempty"`    // of a summary: index of the first entry that requests have beside it; 0: the one after it
	Task    [2]int `json:"task,omitzero"`     // of a summary: from and to before which index requests have entries, too
	Cut     string `json:"cut,omitempty"`     // what the model is told after its answer, which was cut off
}

// marked returns a user message with a note.
func marked(m mark, parts ...model.Part) model.Message {
	return model.Message{Role: model.User, Parts: append(slices.Clip(parts), m.part())}
}

// part returns the note as a part of a message.
func (m mark) part() model.Part {
	data, err := json.Marshal(m)
	if err != nil { // cannot fail for strings and booleans
		panic(err)
	}
	return model.Part{Opaque: &model.Opaque{Provider: markProvider, Data: data}}
}

// mark returns the note of a message, or the zero value.
func (e *Entry) mark() (m mark) {
	for _, p := range e.Parts {
		if p.Opaque != nil && p.Opaque.Provider == markProvider {
			_ = json.Unmarshal(p.Opaque.Data, &m) // an invalid note counts as none
		}
	}
	return m
}

// Said returns what the person typed, or "" if the entry is not theirs. It excludes attachments,
// and returns a prompt as the command that was typed.
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

// ByHost reports whether the host wrote the entry: a summary, a complaint about an answer, or the
// like.
func (e *Entry) ByHost() bool { return e.mark().Host }
