package provider_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/modeltest"
)

var apis = []string{"chat", "responses", "messages", "text"}

var png = &model.Media{MIME: "image/png", Data: []byte("\x89PNG\r\n")}

var tools = []model.Tool{
	{Name: "add", Description: "Add two numbers", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}}}`)},
	{Name: "fail", Schema: json.RawMessage(`{"type":"object"}`)},
	{Name: "picture", Schema: json.RawMessage(`{}`)},
}

// call does what a host would.
func call(c *model.Call) *model.Result {
	r := &model.Result{ID: c.ID, Name: c.Name}
	text := func(format string, args ...any) {
		r.Parts = append(r.Parts, model.Part{Text: fmt.Sprintf(format, args...)})
	}
	switch c.Name {
	case "add":
		var in struct{ A, B float64 }
		if err := json.Unmarshal(c.Arguments, &in); err != nil {
			r.Error = true
			text("malformed arguments: %s", c.Arguments)
			break
		}
		text("%v", in.A+in.B)
	case "picture":
		text("a cat")
		r.Parts = append(r.Parts, model.Part{Media: png})
	case "fail":
		r.Error = true
		text("it is broken")
	default:
		r.Error = true
		text("no such tool: %s", c.Name)
	}
	return r
}

// seen is what a person sees of an answer while it comes.
type seen struct {
	text, thinking strings.Builder
	calls          []model.Call
	again          []string // reasons of retries, which void all before
	notes          []string // for the person
}

func (s *seen) emit(d model.Delta) {
	if d.Again != "" {
		*s = seen{again: append(s.again, d.Again), notes: s.notes}
	}
	if d.Note != "" {
		s.notes = append(s.notes, d.Note)
	}
	s.text.WriteString(d.Text)
	s.thinking.WriteString(d.Thinking)
	if c := d.Call; c != nil {
		if c.Index == len(s.calls) {
			s.calls = append(s.calls, model.Call{ID: c.ID, Name: c.Name})
		}
		s.calls[c.Index].Arguments = append(s.calls[c.Index].Arguments, c.Arguments...)
	}
}

// converse runs a conversation to its end, and checks that what is emitted is what is returned.
func converse(t *testing.T, m model.Model, messages []model.Message) ([]model.Message, model.Usage) {
	t.Helper()
	var usage model.Usage
	for range 50 {
		var s seen
		resp, err := m.Generate(t.Context(), &model.Request{System: "Be brief.", Messages: messages, Tools: tools}, s.emit)
		if err != nil {
			t.Fatal(err)
		}
		usage.Add(resp.Usage)
		if got := resp.Message.Text(); got != s.text.String() {
			t.Errorf("emitted the text %q, returned %q", &s.text, got)
		}
		calls := resp.Message.Calls()
		if len(calls) != len(s.calls) {
			t.Fatalf("emitted %d calls, returned %d", len(s.calls), len(calls))
		}
		for i, c := range calls {
			s.calls[i].Arguments = model.Arguments(string(s.calls[i].Arguments))
			if diff := cmp.Diff(s.calls[i], *c); diff != "" {
				t.Errorf("call %d (-emitted +returned):\n%s", i, diff)
			}
		}
		// Messages are sent as they come back from storage.
		kept, err := json.Marshal(resp.Message)
		if err != nil {
			t.Fatal(err)
		}
		var again model.Message
		if err := json.Unmarshal(kept, &again); err != nil {
			t.Fatal(err)
		}
		messages = append(messages, again)
		if len(calls) == 0 {
			if resp.Stop != model.StopEnd {
				t.Errorf("the answer stopped with %q, want %q", resp.Stop, model.StopEnd)
			}
			return messages, usage
		}
		if resp.Stop != model.StopCalls {
			t.Errorf("an answer with calls stopped with %q, want %q", resp.Stop, model.StopCalls)
		}
		results := model.Message{Role: model.User}
		for i := range calls { // in another order than they were asked for
			results.Parts = append(results.Parts, model.Part{Result: call(calls[len(calls)-1-i])})
		}
		messages = append(messages, results)
	}
	t.Fatal("the conversation has no end")
	return nil, usage
}

// The same conversations pass on every API, and in text mode.
func TestConversations(t *testing.T) {
	for _, tt := range []struct {
		script string
		prompt []string
		media  *model.Media
		last   string
	}{
		{script: "text", prompt: []string{"Who are you?", "Really?"}, last: "Yes."},
		{script: "call", prompt: []string{"What is 2 plus 3?"}, last: "It is 5."},
		{script: "parallel", prompt: []string{"Some sums, please."}, last: "2, 40 and 0."},
		{script: "correction", prompt: []string{"Try everything."}, last: "Now it works."},
		{script: "image", prompt: []string{"Draw that."}, media: png, last: "A cat."},
		{script: "thinking", prompt: []string{"What is 2 plus 3?"}, last: "It is 5."},
		{script: "steps", prompt: []string{"Count to thirty."}, last: "Thirty."},
	} {
		for _, api := range apis {
			t.Run(tt.script+"/"+api, func(t *testing.T) {
				script, err := modeltest.Load("../modeltest/testdata/" + tt.script + ".yaml")
				if err != nil {
					t.Fatal(err)
				}
				m := modeltest.Open(t, api, script)
				var messages []model.Message
				var usage model.Usage
				for _, text := range tt.prompt {
					message := model.UserText(text)
					if tt.media != nil {
						message.Parts = append(message.Parts, model.Part{Media: tt.media})
					}
					messages, usage = converse(t, m, append(messages, message))
				}
				if got := messages[len(messages)-1].Text(); got != tt.last {
					t.Errorf("the last answer is %q, want %q", got, tt.last)
				}
				if want := (model.Usage{Input: 40, Output: 2, Cached: 20}); tt.script == "text" && usage != want {
					t.Errorf("usage = %+v, want %+v", usage, want)
				}
			})
		}
	}
}

// A conversation can continue after an answer that ended in a thought.
func TestThoughtAtTheEnd(t *testing.T) {
	for _, api := range apis {
		t.Run(api, func(t *testing.T) {
			m := modeltest.Open(t, api, modeltest.MustParse("turns: [{answer: [{text: Well}, {thinking: Hmm.}], stop: length}, {answer: [text: Yes.]}]"))
			messages := []model.Message{model.UserText("Is it?")}
			resp, err := m.Generate(t.Context(), &model.Request{Messages: messages}, nil)
			if err != nil || resp.Stop != model.StopLength {
				t.Fatalf("Generate = %+v, %v", resp, err)
			}
			messages = append(messages, resp.Message, model.UserText("Well?"))
			if resp, err = m.Generate(t.Context(), &model.Request{Messages: messages}, nil); err != nil || resp.Message.Text() != "Yes." {
				t.Errorf("Generate = %+v, %v", resp, err)
			}
		})
	}
}
