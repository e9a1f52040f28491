package modeltest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/modeltest"
)

// A script is a conversation that a test expects.
func ExampleHandler() {
	s := modeltest.Handler(modeltest.MustParse(`
turns:
  - when: {user: hello}
    answer: [text: Good day.]
`))
	listener := httptest.NewServer(s)
	defer listener.Close()
	m, err := modeltest.OpenAt(listener.URL, "messages", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	resp, err := m.Generate(context.Background(), &model.Request{Messages: []model.Message{model.UserText("Well, hello.")}}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Message.Text(), s.Err())
	// Output: Good day. <nil>
}

func post(t *testing.T, h http.Handler, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Anthropic-Version", "2023-06-01")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	got, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(got)
}

// Requests that the real servers refuse are refused, and reported to the test.
func TestRefusals(t *testing.T) {
	const tool = `{"name":"add","input_schema":{"type":"object","properties":{}}}`
	const use = `{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"add","input":{}}]}`
	const ask = `{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"add","arguments":"{}"}}]}`
	function := func(schema string) string {
		return `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"add","parameters":` + schema + `}}]}`
	}
	for _, tt := range []struct{ path, body, want string }{
		{"chat/completions", `{`, "parse"},
		{"chat/completions", `{"model":"m","messages":[]}`, "at least one"},
		{"chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],"top_k":1}`, "top_k: unknown"},
		{"chat/completions", `{"model":"m","messages":[{"role":"robot","content":"x"}]}`, "robot"},
		{"chat/completions", `{"model":"m","messages":[{"role":"tool","tool_call_id":"1","content":"x"}]}`, "preceding message"},
		{"chat/completions", `{"model":"m","messages":[` + ask + `]}`, "no result"},
		{"chat/completions", `{"model":"m","messages":[` + ask + `,{"role":"user","content":"x"}]}`, "must be followed by tool messages"},
		{"chat/completions", `{"model":"m","messages":[{"role":"assistant"}]}`, "got null"},
		{"chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],"stream_options":{"include_usage":true}}`, "stream_options"},
		{"chat/completions", `{"model":"m","messages":[{"role":"user","content":"x"}],"tool_choice":"none"}`, "tool_choice"},
		{"chat/completions", `{"model":"gpt-5-mini","messages":[{"role":"user","content":"x"}],"temperature":0.5}`, "temperature: unsupported"},
		{"chat/completions", `{"model":"o3","messages":[{"role":"user","content":"x"}],"stop":["x"]}`, "stop: unsupported"},
		{"responses", `{"model":"gpt-5","input":"x","temperature":1}`, "temperature: unsupported"},
		{"chat/completions", function(`{}`), "type: \\\"object\\\""},
		{"chat/completions", function(`{"type":"object","properties":{},"anyOf":[{}]}`), "anyOf"},
		{"chat/completions", function(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}`), "reference to nothing"},
		{"chat/completions", function(`{"type":"object","properties":{"a":{"exclusiveMinimum":true}}}`), "not a number"},
		{"responses", `{"model":"m","input":[{"type":"function_call_output","call_id":"1","output":"x"}]}`, "no tool call found"},
		{"responses", `{"model":"m","input":[{"type":"function_call","call_id":"1","name":"add","arguments":"{}"}]}`, "no tool output found"},
		{"responses", `{"model":"m","input":[{"type":"reasoning","id":"1","summary":[],"encrypted_content":"made up"}]}`, "could not be verified"},
		{"responses", `{"model":"m","input":"x","max_output_tokens":1}`, "max_output_tokens"},
		{"responses", `{"model":"m","input":"x","messages":[]}`, "messages: unknown"},
		{"messages", `{"model":"m","messages":[{"role":"user","content":"x"}]}`, "max_tokens: field required"},
		{"messages", `{"model":"m","max_tokens":1,"messages":[{"role":"assistant","content":"x"}]}`, "alternate"},
		{"messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"},{"role":"user","content":"x"}]}`, "alternate"},
		{"messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":" "}]}`, "non-whitespace"},
		{"messages", `{"model":"m","max_tokens":1,"tools":[` + tool + `],"messages":[` + use + `,{"role":"user","content":"x"}]}`, "without `tool_result`"},
		{"messages", `{"model":"m","max_tokens":1,"tools":[` + tool + `],"messages":[` + use + `,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"1"}]}]}`, "come first"},
		{"messages", `{"model":"m","max_tokens":1,"messages":[` + use + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"x"}]}]}`, "must define tools"},
		{"messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"made up"},{"type":"text","text":"x"}]},{"role":"user","content":"x"}]}`, "signature"},
		{"messages", `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"x"}]},{"role":"user","content":"x"}]}`, "final block"},
		{"messages", `{"model":"m","max_tokens":1,"tools":[` + tool + `,` + tool + `],"messages":[{"role":"user","content":"x"}]}`, "unique"},
	} {
		s := modeltest.Handler(modeltest.MustParse("rules: [{answer: [text: x]}]"))
		status, body := post(t, s, "/v1/"+tt.path, tt.body)
		if status != http.StatusBadRequest || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %s is answered with %d %s, want 400 and %q", tt.path, tt.body, status, body, tt.want)
		}
		if err := s.Err(); err == nil {
			t.Errorf("%s: %s: Err() = nil, want an error", tt.path, tt.body)
		}
	}
}

func TestUnexpected(t *testing.T) {
	s := modeltest.Handler(modeltest.MustParse(`
turns: [{when: {user: one, tools: [add]}, answer: [text: x]}, {answer: [text: y]}]
rules: [{when: {user: rule}, answer: [text: z]}]
`))
	for _, tt := range []struct {
		user   string
		status int
	}{{"rule", 200}, {"two", 400}, {"rule", 200}} {
		if status, body := post(t, s, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"`+tt.user+`"}]}`); status != tt.status {
			t.Errorf("%q is answered with %d %s, want %d", tt.user, status, body, tt.status)
		}
	}
	err := s.Err()
	for _, want := range []string{`the last text of the user is "two", want "one"`, `the tools are [], want "add"`, "1 rules", "turn 1 was not asked for", "turn 2 was not asked for"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Err() = %v, want %q in it", err, want)
		}
	}
	if n := len(s.Requests()); n != 3 {
		t.Errorf("Requests() has %d, want 3", n)
	}
}

func TestParseErrors(t *testing.T) {
	for _, in := range []string{"turns: [{whne: {}}]", "turns: [{}]", "turns: [{when: {user: '('}, answer: [text: x]}]", "turns: 1"} {
		if s, err := modeltest.Parse([]byte(in)); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", in, s)
		}
	}
}
