package modeltest

import (
	"regexp"
	"strings"
)

// Request is a request in a form common to all APIs.
type Request struct {
	API      string // "chat", "responses", "messages" or "text"
	Model    string
	System   string
	Messages []Message
	Tools    []string // their names
	Choice   string   // "none", "required", or the name of a tool; empty: the model's
	Stream   bool
	Body     []byte
}

// Message is a message of a request. Consecutive messages with the same role are one.
type Message struct {
	Assistant bool
	Text      string
	Calls     []string // names
	Results   []Result
	Images    int
}

// Result is the result of a call.
type Result struct {
	Name, Text string
}

// User returns the last text from the user.
func (r *Request) User() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := r.Messages[i]; !m.Assistant && m.Text != "" {
			return m.Text
		}
	}
	return ""
}

// Results returns the results since the last answer.
func (r *Request) Results() []Result {
	if n := len(r.Messages); n > 0 {
		return r.Messages[n-1].Results
	}
	return nil
}

// Images returns the number of images since the last answer.
func (r *Request) Images() int {
	if n := len(r.Messages); n > 0 {
		return r.Messages[n-1].Images
	}
	return 0
}

func (r *Request) answers() (n int) {
	for _, m := range r.Messages {
		if m.Assistant {
			n++
		}
	}
	return n
}

// say returns the last message if it has the role, else a new one.
func (r *Request) say(assistant bool) *Message {
	if n := len(r.Messages); n == 0 || r.Messages[n-1].Assistant != assistant {
		r.Messages = append(r.Messages, Message{Assistant: assistant})
	}
	return &r.Messages[len(r.Messages)-1]
}

func (m *Message) add(text string) {
	if m.Text != "" && text != "" {
		m.Text += "\n"
	}
	m.Text += text
}

// The marks of a request in text mode.
const textMark = "To call one, write a JSON object in a fence"

var (
	textTool   = regexp.MustCompile(`(?m)^## ([A-Za-z0-9_-]+)$`)
	textResult = regexp.MustCompile(`(?m)^(?:Result|Error) of (\S+):\n`)
	textChoice = regexp.MustCompile(`(?m)^(?:(Do not call a tool)|Your next answer must call (?:(at least one) tool|the tool (\S+)\.$))`)
)

// readText finds the tools, results and choice of a request that has them in its texts.
func (r *Request) readText() {
	if !strings.Contains(r.System, textMark) {
		return
	}
	r.API = "text"
	for _, m := range textTool.FindAllStringSubmatch(r.System, -1) {
		r.Tools = append(r.Tools, m[1])
	}
	if m := textChoice.FindStringSubmatch(r.System); m != nil {
		switch {
		case m[1] != "":
			r.Choice = "none"
		case m[2] != "":
			r.Choice = "required"
		default:
			r.Choice = m[3]
		}
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Assistant {
			continue
		}
		found := textResult.FindAllStringSubmatchIndex(m.Text, -1)
		for j, at := range found {
			end := len(m.Text)
			if j+1 < len(found) {
				end = found[j+1][0]
			}
			m.Results = append(m.Results, Result{Name: m.Text[at[2]:at[3]], Text: strings.TrimSpace(m.Text[at[1]:end])})
		}
		if len(found) > 0 {
			m.Text = strings.TrimSpace(m.Text[:found[0][0]])
		}
	}
}
