package model

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/patchbay-dev/patchbay/internal/long"
)

var textTools = []Tool{
	{Name: "add", Description: "Add two numbers", Schema: json.RawMessage(`{"type":"object","properties":{"b":{"type":"number"},"a":{"type":"number","description":"the\n first"},"unit":{"enum":["m","ft"]}},"required":["a","b"]}`)},
	{Name: "now", Schema: json.RawMessage(`{"type":"object"}`)},
	{Name: "odd", Schema: json.RawMessage(`{"type": "object", "oneOf": [{"required": ["x"]}]}`)},
}

// split returns the output of a splitter for text in pieces: calls as <name arguments>.
func split(pieces ...string) string {
	var b strings.Builder
	s := newSplitter(textTools, func(text string) { b.WriteString(text) }, func(name string, arguments json.RawMessage) {
		b.WriteString("<" + name + " " + string(arguments) + ">")
	})
	for _, p := range pieces {
		s.add(p)
	}
	s.end(false)
	return b.String()
}

func TestSplit(t *testing.T) {
	const call = `<add {"a":1,"b":2}>`
	for _, tt := range []struct{ name, in, want string }{
		{"text", "hello {name}, [1] `x` a < b\n", "hello {name}, [1] `x` a < b\n"},
		{"a call alone", `{"tool":"add","arguments":{"a":1,"b":2}}`, call},
		{"in a fence", "I add.\n\n```json\n{\"tool\":\"add\",\"arguments\":{\"a\":1,\"b\":2}}\n```\n", "I add." + call},
		{"in a fence with no language, text after it", "```\n{\"tool\":\"add\",\"arguments\":{\"a\":1,\"b\":2}}\n```\nDone", call + "Done"},
		{"in a fence in one line", "```{\"tool\":\"add\",\"arguments\":{\"a\":1,\"b\":2}}```", call},
		{"in a tag", "<tool_call>\n{\"name\":\"add\",\"arguments\":{\"a\":1,\"b\":2}}\n</tool_call>", call},
		{"in a sentence", `So {"tool":"add","arguments":{"a":1,"b":2}} it is.`, "So" + call + "it is."},
		{"two of them", `{"tool":"now"} {"tool":"add","arguments":{"a":1,"b":2}}`, "<now {}>" + call},
		{"two in a fence", "```json\n{\"tool\":\"now\"},\n{\"tool\":\"now\"}\n```", "<now {}><now {}>"},
		{"an array", `[{"tool":"now"}, {"tool":"add","arguments":{"a":1,"b":2}}]`, "<now {}>" + call},
		{"name and parameters", `{"name":"add","parameters":{"a":1,"b":2}}`, call},
		{"args", `{"tool":"add","args":{"a":1,"b":2}}`, call},
		{"arguments beside the name", `{"tool":"add","a":1,"b":2}`, call},
		{"a string of arguments", `{"tool":"add","arguments":"{\"a\":1,\"b\":2}"}`, call},
		{"arguments that are no JSON", `{"tool":"add","arguments":"1 and 2"}`, `<add "1 and 2">`},
		{"as an API has it", `{"tool_calls":[{"type":"function","function":{"name":"add","arguments":"{\"a\":1,\"b\":2}"}}]}`, call},
		{"a comma too many", `{"tool":"add","arguments":{"a":1,"b":2,},}`, `<add {"a":1,"b":2 }>`},
		{"a line break in a string", "{\"tool\":\"odd\",\"arguments\":{\"x\":\"1\n2\"}}", `<odd {"x":"1\u000a2"}>`},
		{"a brace in a string", `{"tool":"odd","arguments":{"x":"}]\"{"}}`, `<odd {"x":"}]\"{"}>`},
		{"an unknown tool", `{"tool":"fly","arguments":{}}`, "<fly {}>"},
		{"an object that is no call", `{"name":"Ada","age":36}`, `{"name":"Ada","age":36}`},
		{"an unknown name in another form", `{"name":"fly","parameters":{}}`, `{"name":"fly","parameters":{}}`},
		{"an array of other things", `[{"tool":"now"},{"a":1}]`, `[{"tool":"now"},{"a":1}]`},
		{"JSON in a fence", "```json\n{\"a\":1}\n```\nand\n", "```json\n{\"a\":1}\n```\nand\n"},
		{"code", "```go\nf({\"tool\":\"now\"})\n```\nand {\"tool\":\"now\"}", "```go\nf({\"tool\":\"now\"})\n```\nand<now {}>"},
		{"a call after a brace that stays open", `if { "x, then {"tool":"now"}`, `if { "x, then<now {}>`},
		{"an end in a call", `Well, {"tool":"add","argum`, `Well, {"tool":"add","argum`},
		{"an end in a fence", "Well:\n```json\n", "Well:\n```json\n"},
		{"nothing", "", ""},
		{"a function tag", `I add. <function=add>{"a":1,"b":2}</function>`, "I add." + call},
		{"two function tags, the last without its end", `<function=now>{}</function>` + "\n" + `<function=add>{"a":1,"b":2}`, "<now {}>" + call},
		{"a function tag in a tag", "<tool_call>\n<function=add>\n{\"a\":1,\"b\":2}\n</function>\n</tool_call>Done", call + "Done"},
		{"parameters", "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n</function>\n</tool_call>", call},
		{"parameters of a string", "<function=odd><parameter=x>\na < \"b\"\n\nc\n</parameter></function> so", `<odd {"x":"a \u003c \"b\"\n\nc"}>so`},
		{"no parameters", "<function=now>\n</function>", "<now {}>"},
		{"a function tag of an unknown tool", `<function=fly>{}</function>`, `<function=fly>{}</function>`},
		{"a function tag with a line break in a string", "<function=odd>{\"x\":\"1\n2\"}</function>", `<odd {"x":"1\u000a2"}>`},
		{"a function tag with no JSON", "<function=add>a, b</function>", "<function=add>a, b</function>"},
		{"an end in a function tag", `Well, <function=add>{"a":1`, `Well, <function=add>{"a":1`},
		{"an end in a parameter, then a call", "<function=add>\n<parameter=a> {\"tool\":\"now\"}", "<function=add>\n<parameter=a><now {}>"},
		{"an action", "Thought: I must add.\nAction: add\nAction Input: {\"a\":1,\"b\":2}\n", "Thought: I must add." + call},
		{"an action with a made-up result", "Action: `add`\nAction Input:\n{\"a\":1,\"b\":2}\nObservation: 3\nAction: now\nAction Input: {}\nFinal Answer: 3", call},
		{"an action in a fence", "Action: add\nAction Input: ```json\n{\"a\":1,\"b\":2}\n```\nDone", call + "Done"},
		{"two actions", "Action: now\nAction Input: {}\n\nAction: add\nAction Input: {\"a\":1,\"b\":2}", "<now {}>" + call},
		{"an action of an unknown tool", "Action: fly\nAction Input: {}", "Action: fly\nAction Input: {}"},
		{"an action in words", "Action: add\nAction Input: one and two", "Action: add\nAction Input: one and two"},
		{"an action without input", "In Action: now\nand then", "In Action: now\nand then"},
		{"a word that begins like an action", "Actio", "Actio"},
		{"an observation of its own", "Observation: {\"tool\":\"now\"}", "Observation:<now {}>"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := split(tt.in); got != tt.want {
				t.Errorf("split(%q) = %q, want %q", tt.in, got, tt.want)
			}
			if got := split(strings.Split(tt.in, "")...); got != tt.want {
				t.Errorf("letter by letter split(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

// The output does not depend on the chunks, and no text is lost.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{
		"I add.\n```json\n{\"tool\":\"add\",\"arguments\":{\"a\":1}}\n```\n", `[{"tool":"now"},{"a":1}]`,
		"<tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call> {{{ [[[{ ```` ```x\n", `{"tool":"add","arguments":"{}",}`,
		"Hm <function=add>{\"a\":1}</function> <function=now>\n<parameter=a>1</parameter></function>\nAction: add\nAction Input: {\"a\":1}\nObservation: x",
		"Action: now\nAction Input: ```json\n{}\n``` <tool_call><function=now></function></tool_call>",
	} {
		f.Add(seed, uint16(3), uint16(7))
	}
	f.Fuzz(func(t *testing.T, in string, i, j uint16) {
		a := int(i) % (len(in) + 1)
		b := a + int(j)%(len(in)-a+1)
		want := split(in)
		if got := split(in[:a], in[a:b], in[b:]); got != want {
			t.Fatalf("split(%q, %q, %q) = %q, but split of it in one = %q", in[:a], in[a:b], in[b:], got, want)
		}
		calls := false
		s := newSplitter(textTools, func(string) {}, func(string, json.RawMessage) { calls = true })
		s.add(in)
		s.end(false)
		if !calls && want != in {
			t.Fatalf("split(%q) = %q, which lacks text and has no call", in, want)
		}
	})
}

// A hostile answer takes no time that grows with the square of its length.
func TestSplitHostile(t *testing.T) {
	long.WithoutRace(t)
	for _, in := range []string{`[{`, `{"`, `{"tool_call":`, "```json\n{\"a\":", "```", `[{"a":[`, "<tool_call>", " ",
		"<function=add>{", "<function=add><parameter=a>", "Action: add\nAction Input: {", "Action: add\nAction Input: {}\n", "Action", "Action: "} {
		split(strings.Repeat(in, 300_000))
	}
}

// scripted answers with pieces of text, and keeps what it was asked.
type scripted struct {
	pieces []string
	asked  *Request
	err    error
}

func (s *scripted) Info() Info { return Info{Name: "text/x", Tools: 1} }

func (s *scripted) Generate(_ context.Context, req *Request, emit func(Delta)) (*Response, error) {
	s.asked = req
	for _, p := range s.pieces {
		if emit != nil {
			emit(Delta{Text: p})
		}
	}
	return &Response{Message: Message{Assistant, []Part{{Text: strings.Join(s.pieces, "")}}}, Stop: StopEnd}, s.err
}

func TestTextMode(t *testing.T) {
	inner := &scripted{pieces: []string{"Both.\n`", "``json\n{\"tool\": \"now\"}\n{\"to", "ol\": \"add\", \"arguments\": {\"a\": 2}}\n```\n"}}
	m := Text(inner)
	req := &Request{
		System: "Be brief.",
		Tools:  textTools,
		Choice: Choice{Mode: "tool", Tool: "add"},
		Schema: json.RawMessage(`{"type": "object"}`),
		Messages: []Message{
			UserText("What is 1 + 2, and the time?"),
			{Assistant, []Part{{Text: "Let me see."}, {Call: &Call{ID: "1", Name: "add", Arguments: json.RawMessage(`{"a": 1, "b": 2}`)}}, {Call: &Call{ID: "2", Name: "now", Arguments: json.RawMessage(`{}`)}}}},
			{User, []Part{
				{Result: &Result{ID: "2", Name: "now", Parts: []Part{{Text: "no clock"}}, Error: true}},
				{Result: &Result{ID: "1", Name: "add", Parts: []Part{{Text: "3"}, {Media: &Media{MIME: "image/png"}}}}},
				{Text: "Go on."},
			}},
		},
	}
	before, _ := json.Marshal(req)
	var deltas []Delta
	resp, err := m.Generate(t.Context(), req, func(d Delta) { deltas = append(deltas, d) })
	if err != nil {
		t.Fatal(err)
	}
	ids := idsOf(t, resp)
	want := []Part{
		{Text: "Both."},
		{Call: &Call{ID: ids[0], Name: "now", Arguments: json.RawMessage("{}")}},
		{Call: &Call{ID: ids[1], Name: "add", Arguments: json.RawMessage(`{"a": 2}`)}},
	}
	if diff := cmp.Diff(want, resp.Message.Parts); diff != "" || resp.Stop != StopCalls {
		t.Errorf("parts (-want +got):\n%s; stop %q", diff, resp.Stop)
	}
	if diff := cmp.Diff([]Delta{
		{Text: "Both."},
		{Call: &CallDelta{0, ids[0], "now", "{}"}},
		{Call: &CallDelta{1, ids[1], "add", `{"a": 2}`}},
	}, deltas); diff != "" {
		t.Errorf("emitted (-want +got):\n%s", diff)
	}
	if after, _ := json.Marshal(req); string(after) != string(before) {
		t.Errorf("the request became\n%s, was\n%s", after, before)
	}
	if m.Info().Tools != 0 {
		t.Errorf("Info().Tools = %d, want 0: a text has any number", m.Info().Tools)
	}

	if diff := cmp.Diff(`Be brief.

# Tools

You have tools. To call one, write a JSON object in a fence and end your answer there:

`+"```json\n"+`{"tool": "NAME", "arguments": {"ARGUMENT":"VALUE"}}
`+"```\n"+`
To call several at once, write several such objects. The results come in the next message. Never make up a result. If you need no tool, answer in plain text.

The tools are:

## add
Add two numbers
Arguments:
- a (number, required): the first
- b (number, required)
- unit ({"enum":["m","ft"]})

## now
Arguments: none

## odd
Arguments, as JSON Schema: {"type":"object","oneOf":[{"required":["x"]}]}

Your next answer must call the tool add.

An answer that calls no tool must be JSON that fits this JSON Schema, and nothing else: {"type":"object"}
`, inner.asked.System); diff != "" {
		t.Errorf("system prompt (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Message{
		UserText("What is 1 + 2, and the time?"),
		{Assistant, []Part{{Text: "Let me see.\n```json\n{\"tool\": \"add\", \"arguments\": {\"a\":1,\"b\":2}}\n```\n\n```json\n{\"tool\": \"now\", \"arguments\": {}}\n```\n"}}},
		{User, []Part{{Text: "Result of add:\n3"}, {Media: &Media{MIME: "image/png"}}, {Text: "\n\nError of now:\nno clock\n\nGo on."}}},
	}, inner.asked.Messages); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if inner.asked.Tools != nil || inner.asked.Choice != (Choice{}) || inner.asked.Schema != nil {
		t.Errorf("asked with tools %v, choice %v, schema %s; want none", inner.asked.Tools, inner.asked.Choice, inner.asked.Schema)
	}
}

// idsOf returns the ids of two calls.
func idsOf(t *testing.T, resp *Response) []string {
	t.Helper()
	calls := resp.Message.Calls()
	if len(calls) != 2 || calls[0].ID == "" || calls[0].ID == calls[1].ID {
		t.Fatalf("the calls are %+v, want two with ids of their own", calls)
	}
	return []string{calls[0].ID, calls[1].ID}
}

// Ids are those of no other call of the conversation, of which a request may not have all.
func TestTextModeIDs(t *testing.T) {
	m := Text(&scripted{pieces: []string{`{"tool":"now"} {"tool":"now"}`}})
	taken := map[string]bool{}
	for range 3 {
		resp, err := m.Generate(t.Context(), &Request{Tools: textTools, Messages: []Message{UserText("Go on.")}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range idsOf(t, resp) {
			if taken[id] {
				t.Errorf("the id %q was given out twice", id)
			}
			taken[id] = true
		}
	}
}

// An answer that is too long is not a call, and neither is anything in it.
func TestTextModeTooLong(t *testing.T) {
	for _, text := range []string{
		`{"tool":"odd","arguments":{"tool":"now"}`, `{"tool":"odd","arguments":{"name":"now"}`, `{"tool":"odd","arguments":[{"tool":"now"}`,
		`[{"tool":"now"}`, "```json\n{\"tool\":\"odd\",\"x\":{\"tool\":\"now\"}\n```\n",
	} {
		m := Text(&fakeModel{func(emit func(Delta)) (*Response, error) {
			emit(Delta{Text: text})
			return &Response{Message: Message{Assistant, []Part{{Text: text}}}, Stop: StopLength}, nil
		}})
		var shown strings.Builder
		resp, err := m.Generate(t.Context(), &Request{Tools: textTools}, func(d Delta) {
			shown.WriteString(d.Text)
			if d.Call != nil {
				t.Errorf("of %s the call %+v was emitted", text, d.Call)
			}
		})
		if err != nil || len(resp.Message.Calls()) != 0 || resp.Message.Text() != text || shown.String() != text {
			t.Errorf("of %s came %+v, %v; shown %q", text, resp, err, &shown)
		}
	}
}

// An answer that broke off has no half call, and one that begins anew is parsed anew.
func TestTextModeBreaksOff(t *testing.T) {
	cut := &Error{Kind: Unavailable}
	m := Text(&scripted{pieces: []string{`Yes. {"tool":"add","argu`}, err: cut})
	var shown strings.Builder
	resp, err := m.Generate(t.Context(), &Request{Tools: textTools}, func(d Delta) { shown.WriteString(d.Text) })
	if err != cut || len(resp.Message.Calls()) != 0 || shown.String() != "Yes." {
		t.Errorf("Generate = %+v, %v; shown %q", resp, err, &shown)
	}

	n := 0
	flaky := &fakeModel{func(emit func(Delta)) (*Response, error) {
		if n++; n == 1 {
			emit(Delta{Text: "{\"tool\":"})
			emit(Delta{Again: "cut"})
		}
		emit(Delta{Text: "hello"})
		return &Response{Message: Message{Assistant, []Part{{Text: "hello"}}}}, nil
	}}
	shown.Reset()
	if _, err := Text(flaky).Generate(t.Context(), &Request{Tools: textTools}, func(d Delta) { shown.WriteString(d.Text) }); err != nil || shown.String() != "hello" {
		t.Errorf("after beginning anew %q is shown, %v; want %q", &shown, err, "hello")
	}
}

type fakeModel struct {
	generate func(emit func(Delta)) (*Response, error)
}

func (f *fakeModel) Info() Info { return Info{} }

func (f *fakeModel) Generate(_ context.Context, _ *Request, emit func(Delta)) (*Response, error) {
	return f.generate(emit)
}
