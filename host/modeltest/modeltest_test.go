package modeltest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"

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

// Requests that the real servers refuse are refused, and told to the test.
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
		{"chat/completions", function(`{"type":"object","properties":{"a":{"exclusiveMinimum":true}}}`), "no number"},
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

const sum = `
turns:
  - answer:
      - text: I add.
      - call: {name: add, arguments: {a: 1}}
    usage: {input: 10, output: 3, cached: 4}
`

// What is answered is what the official libraries take, whole and streamed.
func TestOfficialLibraries(t *testing.T) {
	start := func(t *testing.T) string {
		_, url := modeltest.Start(t, modeltest.MustParse(sum))
		return url
	}
	t.Run("chat", func(t *testing.T) {
		api := openai.NewChatCompletionService(option.WithBaseURL(start(t)+"/v1"), option.WithAPIKey("k"))
		params := openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")}}
		got, err := api.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		checkChat(t, got)

		api = openai.NewChatCompletionService(option.WithBaseURL(start(t)+"/v1"), option.WithAPIKey("k"))
		params.StreamOptions.IncludeUsage = openai.Bool(true)
		stream := api.NewStreaming(t.Context(), params)
		var acc openai.ChatCompletionAccumulator
		for stream.Next() {
			if !acc.AddChunk(stream.Current()) {
				t.Errorf("the accumulator refuses %s", stream.Current().RawJSON())
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		checkChat(t, &acc.ChatCompletion)
	})
	t.Run("responses", func(t *testing.T) {
		params := responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("x")}}
		api := responses.NewResponseService(option.WithBaseURL(start(t)+"/v1"), option.WithAPIKey("k"))
		got, err := api.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		checkResponse(t, got)
		api = responses.NewResponseService(option.WithBaseURL(start(t)+"/v1"), option.WithAPIKey("k"))
		stream := api.NewStreaming(t.Context(), params)
		for stream.Next() {
			if e := stream.Current(); e.Type == "response.completed" {
				got = &e.Response
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		checkResponse(t, got)
	})
	t.Run("messages", func(t *testing.T) {
		params := anthropic.MessageNewParams{Model: "m", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("x"))}}
		api := anthropic.NewMessageService(anthropicoption.WithBaseURL(start(t)), anthropicoption.WithAPIKey("k"))
		got, err := api.New(t.Context(), params)
		if err != nil {
			t.Fatal(err)
		}
		checkMessage(t, got)
		api = anthropic.NewMessageService(anthropicoption.WithBaseURL(start(t)), anthropicoption.WithAPIKey("k"))
		stream := api.NewStreaming(t.Context(), params)
		var acc anthropic.Message
		for stream.Next() {
			if err := acc.Accumulate(stream.Current()); err != nil {
				t.Error(err)
			}
		}
		if err := stream.Err(); err != nil {
			t.Fatal(err)
		}
		checkMessage(t, &acc)
	})
}

func checkChat(t *testing.T, got *openai.ChatCompletion) {
	t.Helper()
	if len(got.Choices) != 1 || got.Choices[0].FinishReason != "tool_calls" || got.Usage.PromptTokens != 10 || got.Usage.PromptTokensDetails.CachedTokens != 4 {
		t.Fatalf("the answer is %+v", got)
	}
	m := got.Choices[0].Message
	if m.Content != "I add." || len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Name != "add" || m.ToolCalls[0].Function.Arguments != `{"a":1}` {
		t.Errorf("the message is %+v", m)
	}
}

func checkResponse(t *testing.T, got *responses.Response) {
	t.Helper()
	if got.OutputText() != "I add." || len(got.Output) != 2 || got.Output[1].Name != "add" || got.Status != "completed" || got.Usage.InputTokens != 10 {
		t.Errorf("the answer is %+v", got)
	}
}

func checkMessage(t *testing.T, got *anthropic.Message) {
	t.Helper()
	if len(got.Content) != 2 || got.Content[0].Text != "I add." || got.Content[1].Name != "add" || got.StopReason != "tool_use" || got.Usage.InputTokens != 6 || got.Usage.CacheReadInputTokens != 4 {
		t.Fatalf("the answer is %+v", got)
	}
	var in struct{ A int }
	if err := json.Unmarshal(got.Content[1].Input, &in); err != nil || in.A != 1 {
		t.Errorf("the input is %s: %v", got.Content[1].Input, err)
	}
}
