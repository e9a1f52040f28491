package model

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Text adds tool calls to a model that has none: the system prompt describes the tools, the model
// writes a call as JSON into its text, and the results are text from the user. Callers see calls
// and results as with any other model.
//
// A call is an object such as
//
//	{"tool": "add", "arguments": {"a": 1, "b": 2}}
//
// anywhere in the answer, in a fence or not, several of them or an array. Models that write
// "name", "function", "parameters" or "args" instead, a string of JSON for arguments, extra
// commas or line breaks in strings are understood, as are calls that are written as
// <function=NAME>…</function>, or as lines "Action: NAME" and "Action Input: {…}". Other objects stay text, and so does an object
// that only resembles a call, unless its tool is one of the request's. Thoughts are recognized as
// by [Thoughts], and calls in them are ignored.
//
// Text is emitted as it comes, except text that may become a call, which is held back until that
// is decided.
func Text(m Model) Model { return &textMode{Thoughts(m)} }

type textMode struct{ model Model }

// Info returns that of the model, without a bound for tools.
func (t *textMode) Info() Info {
	info := t.model.Info()
	info.Tools = 0
	return info
}

func (t *textMode) Generate(ctx context.Context, req *Request, emit func(Delta)) (*Response, error) {
	asked := *req
	asked.System = textSystem(req)
	asked.Messages = textMessages(req.Messages)
	asked.Tools, asked.Choice = nil, Choice{}
	if len(req.Tools) > 0 {
		asked.Schema = nil // a provider would apply it to the calls
	}
	calls := len(req.Tools) > 0 && req.Choice.Mode != "none"
	var ids []string // for the calls of the answer, unique in the conversation
	id := func(n int) string {
		if n == len(ids) {
			ids = append(ids, "text_"+rand.Text())
		}
		return ids[n]
	}

	inner := emit
	var s *splitter
	begin := func() {
		n := 0
		ids = nil
		s = newSplitter(req.Tools, func(text string) { emit(Delta{Text: text}) }, func(name string, arguments json.RawMessage) {
			emit(Delta{Call: &CallDelta{Index: n, ID: id(n), Name: name, Arguments: string(arguments)}})
			n++
		})
	}
	if calls && emit != nil {
		begin()
		inner = func(d Delta) {
			switch {
			case d.Text != "":
				s.add(d.Text)
			case d.Again != "":
				begin()
				fallthrough
			default:
				emit(d)
			}
		}
	}
	resp, err := t.model.Generate(ctx, &asked, inner)
	if !calls || resp == nil {
		return resp, err
	}
	if emit != nil && err == nil {
		s.end(resp.Stop == StopLength)
	}
	out := *resp
	out.Message.Parts = nil
	add := func(p Part) { out.Message.Parts = append(out.Message.Parts, p) }
	n := 0
	text := func(text string) {
		if parts := out.Message.Parts; len(parts) > 0 && parts[len(parts)-1].Text != "" {
			parts[len(parts)-1].Text += text
			return
		}
		add(Part{Text: text})
	}
	whole := newSplitter(req.Tools, text, func(name string, arguments json.RawMessage) {
		add(Part{Call: &Call{ID: id(n), Name: name, Arguments: arguments}})
		n++
	})
	for _, p := range resp.Message.Parts {
		if p.Text != "" {
			whole.add(p.Text)
			continue
		}
		add(p)
	}
	whole.end(err != nil || resp.Stop == StopLength)
	if n > 0 && out.Stop == StopEnd {
		out.Stop = StopCalls
	}
	return &out, err
}

// textSystem returns the system prompt with the tools in it.
func textSystem(req *Request) string {
	if len(req.Tools) == 0 {
		return req.System
	}
	var b strings.Builder
	if req.System != "" {
		b.WriteString(req.System + "\n\n")
	}
	b.WriteString(`# Tools

You have tools. To call one, write a JSON object in a fence and end your answer there:

` + textCall("NAME", []byte(`{"ARGUMENT": "VALUE"}`)) + `
To call several at once, write several such objects. The results come in the next message. Never make up a result. If you need no tool, answer in plain text.

The tools are:
`)
	for _, tool := range req.Tools {
		fmt.Fprintf(&b, "\n## %s\n", tool.Name)
		if d := strings.TrimSpace(tool.Description); d != "" {
			b.WriteString(d + "\n")
		}
		writeArguments(&b, tool.Schema)
	}
	switch req.Choice.Mode {
	case "none":
		b.WriteString("\nDo not call a tool in your next answer.\n")
	case "required":
		b.WriteString("\nYour next answer must call at least one tool.\n")
	case "tool":
		fmt.Fprintf(&b, "\nYour next answer must call the tool %s.\n", req.Choice.Tool)
	}
	if req.Schema != nil {
		fmt.Fprintf(&b, "\nAn answer that calls no tool must be JSON that fits this JSON Schema, and nothing else: %s\n", compact(req.Schema))
	}
	return b.String()
}

// writeArguments describes the arguments of a tool: a line for each property of a plain schema,
// else the schema.
func writeArguments(b *strings.Builder, schema json.RawMessage) {
	var object struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(schema, &object) != nil || len(object.Properties) == 0 {
		if plain := compact(schema); plain != "" && plain != "{}" && plain != `{"type":"object"}` {
			fmt.Fprintf(b, "Arguments, as JSON Schema: %s\n", plain)
			return
		}
		b.WriteString("Arguments: none\n")
		return
	}
	b.WriteString("Arguments:\n")
	names := make([]string, 0, len(object.Properties))
	for name := range object.Properties {
		names = append(names, name)
	}
	must := func(name string) bool { return slices.Contains(object.Required, name) }
	slices.SortFunc(names, func(x, y string) int { // required ones first, then by name
		if must(x) != must(y) {
			if must(x) {
				return -1
			}
			return 1
		}
		return cmp.Compare(x, y)
	})
	for _, name := range names {
		var about struct {
			Type        any    `json:"type"`
			Description string `json:"description"`
		}
		kind := compact(object.Properties[name])
		var members map[string]json.RawMessage
		if json.Unmarshal(object.Properties[name], &about) == nil && json.Unmarshal(object.Properties[name], &members) == nil {
			delete(members, "description")
			delete(members, "title")
			if plain, ok := about.Type.(string); ok && len(members) == 1 {
				kind = plain
			} else if rest, err := json.Marshal(members); err == nil {
				kind = string(rest)
			}
		}
		fmt.Fprintf(b, "- %s (%s", name, kind)
		if must(name) {
			b.WriteString(", required")
		}
		b.WriteString(")")
		if about.Description != "" {
			b.WriteString(": " + strings.Join(strings.Fields(about.Description), " "))
		}
		b.WriteString("\n")
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(schema, &members) == nil {
		for _, known := range []string{"type", "properties", "required", "title", "description", "$schema", "additionalProperties"} {
			delete(members, known)
		}
		if rest, err := json.Marshal(members); err == nil && len(members) > 0 {
			fmt.Fprintf(b, "Of their JSON Schema too: %s\n", rest)
		}
	}
}

// textMessages returns messages with their calls and results as text.
func textMessages(messages []Message) []Message {
	out := make([]Message, len(messages))
	var asked []*Call // of the previous message
	for i, m := range messages {
		parts := make([]Part, 0, len(m.Parts))
		var results []*Result
		for _, p := range m.Parts {
			switch {
			case p.Call != nil:
				parts = append(parts, Part{Text: "\n" + textCall(p.Call.Name, p.Call.Arguments)})
			case p.Result != nil:
				results = append(results, p.Result)
			default:
				parts = append(parts, p)
			}
		}
		place := func(r *Result) int { return slices.IndexFunc(asked, func(c *Call) bool { return c.ID == r.ID }) }
		slices.SortStableFunc(results, func(x, y *Result) int { return cmp.Compare(place(x), place(y)) })
		var told []Part
		for _, r := range results {
			what := "Result"
			if r.Error {
				what = "Error"
			}
			told = append(told, Part{Text: fmt.Sprintf("%s of %s:\n", what, r.Name)})
			told = append(told, r.Parts...)
			told = append(told, Part{Text: "\n\n"})
		}
		out[i] = Message{m.Role, joinTexts(append(told, parts...))}
		asked = m.Calls()
	}
	return out
}

// joinTexts makes one part of texts that follow each other.
func joinTexts(parts []Part) []Part {
	out := parts[:0]
	for _, p := range parts {
		if n := len(out); n > 0 && p.Text != "" && out[n-1].Text != "" {
			out[n-1].Text += p.Text
			continue
		}
		out = append(out, p)
	}
	return out
}

// textCall writes a call in the form that the model must use.
func textCall(name string, arguments json.RawMessage) string {
	quoted, _ := json.Marshal(name)
	args := compact(arguments)
	if args == "" {
		args = "{}"
	}
	return fmt.Sprintf("```json\n{\"tool\": %s, \"arguments\": %s}\n```\n", quoted, args)
}

// compact returns JSON without its white space, and other text as it is.
func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
