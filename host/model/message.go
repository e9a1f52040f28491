package model

import (
	"encoding/json"
	"strings"
)

// Role is the role of a message's author.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one message of a conversation.
type Message struct {
	Role  Role   `json:"role"`
	Parts []Part `json:"parts"`
}

// Part is a part of a message. One of its fields is set.
type Part struct {
	Text   string  `json:"text,omitempty"`
	Media  *Media  `json:"media,omitempty"`
	Call   *Call   `json:"call,omitempty"`   // of the assistant
	Result *Result `json:"result,omitempty"` // of the user
	Opaque *Opaque `json:"opaque,omitempty"` // of the assistant
}

// Media is a picture, a sound or a file.
type Media struct {
	MIME string `json:"mime"` // such as "image/png"
	Data []byte `json:"data"`
	Name string `json:"name,omitempty"`
}

// Call is a tool call of the model.
type Call struct {
	ID        string          `json:"id"` // of its result too
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"` // in the form that [Arguments] returns; an object if the model followed the rules
	Opaque    *Opaque         `json:"opaque,omitempty"`
}

// Result is the result of a call.
type Result struct {
	ID    string `json:"id"`
	Name  string `json:"name"`            // of the tool
	Parts []Part `json:"parts"`           // texts and media
	Error bool   `json:"error,omitempty"` // the parts describe an error

	// Unknown reports that the answer of the call was lost, so that the call may have had its
	// effect and must not be repeated by mistake. It is not sent to providers; the parts say it.
	Unknown bool `json:"unknown,omitempty"`
}

// Opaque is data that a provider requires back unchanged with the message or the call, such as a
// signature of it. It is not sent to other providers.
type Opaque struct {
	Provider string          `json:"provider"`
	Text     string          `json:"text,omitempty"` // text of it, for people
	Data     json.RawMessage `json:"data"`
}

// UserText returns a message from the user.
func UserText(text string) Message { return Message{User, []Part{{Text: text}}} }

// Text returns the texts of a message, joined.
func (m *Message) Text() string {
	var b strings.Builder
	for _, p := range m.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// Calls returns the calls of a message.
func (m *Message) Calls() []*Call {
	var calls []*Call
	for _, p := range m.Parts {
		if p.Call != nil {
			calls = append(calls, p.Call)
		}
	}
	return calls
}
