package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/host/provider"
)

// understood is an answer as decoded by a client.
type understood struct {
	Text   string
	Calls  []model.Call
	Tokens model.Usage
	Long   bool // the answer was cut off by the token limit
}

// recorder keeps the requests of a client, with the headers of the API.
type recorder struct{ heads, bodies []string }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	head := req.Method + " " + req.URL.Path
	for _, name := range slices.Sorted(maps.Keys(req.Header)) {
		if !strings.HasPrefix(name, "X-Stainless-") && name != "User-Agent" { // these name the library
			head += fmt.Sprintf("\n%s: %q", name, req.Header[name])
		}
	}
	r.heads, r.bodies = append(r.heads, head), append(r.bodies, string(body))
	again := req.Clone(req.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(again)
}

// The official Go libraries of OpenAI and Anthropic decode each of our requests, encode the same
// request, byte for byte except escapes and the order within the schemas of the Messages API, and
// decode the same from the answer.
func TestProviderLibraries(t *testing.T) {
	libraries := map[string]func(*testing.T, string, *http.Client, []byte) understood{"chat": chatLibrary, "responses": responsesLibrary, "messages": messagesLibrary}
	for _, script := range []string{"text", "call", "parallel", "correction", "image", "thinking", "steps"} {
		for api, library := range libraries {
			t.Run(script+"/"+api, func(t *testing.T) {
				load := func() string {
					s, err := modeltest.Load("../host/modeltest/testdata/" + script + ".yaml")
					if err != nil {
						t.Fatal(err)
					}
					_, url := modeltest.Start(t, s)
					return url
				}
				ours, theirs := &recorder{}, &recorder{}
				said := talk(t, api, load(), ours, script)
				url := load()
				for i, body := range ours.bodies {
					for j, c := range said[i].Calls {
						if a := string(c.Arguments); api == "messages" && (a == "{}" || !strings.HasPrefix(a, "{")) {
							said[i].Calls[j].Arguments = nil // the library keeps nothing that is not an object
						}
					}
					if diff := cmp.Diff(said[i], library(t, url, &http.Client{Transport: theirs}, []byte(body))); diff != "" {
						t.Errorf("answer %d (-ours +theirs):\n%s", i, diff)
					}
				}
				if diff := cmp.Diff(theirs.heads, ours.heads); diff != "" {
					t.Errorf("headers (-theirs +ours):\n%s", diff)
				}
				for i, body := range theirs.bodies {
					if api != "messages" && unescape(body) != unescape(ours.bodies[i]) || !reflect.DeepEqual(parsed(t, body), parsed(t, ours.bodies[i])) {
						t.Errorf("request %d:\ntheirs %s\nours   %s", i, body, ours.bodies[i])
					}
				}
			})
		}
	}
}

// unescape undoes the escapes that some encoders write for the sake of HTML.
var unescape = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace

func parsed(t *testing.T, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// talk has a conversation by a script through our own client, and returns its answers.
func talk(t *testing.T, api, url string, r *recorder, script string) []understood {
	t.Helper()
	name := map[string]string{"chat": "openai", "responses": "openai-responses", "messages": "anthropic"}[api]
	m, err := provider.Open(name+"/scripted", provider.Options{
		BaseURL: url + "/v1", Key: "key", HTTPClient: &http.Client{Transport: r}, Env: func(string) string { return "" },
		Info: func(i *model.Info) { i.Images, i.Files, i.Window = true, true, 100_000 },
	})
	if err != nil {
		t.Fatal(err)
	}
	png := &model.Media{MIME: "image/png", Data: []byte("\x89PNG\r\n")}
	prompts := map[string][]string{
		"text": {"Who are you?", "Really?"}, "call": {"What is 2 plus 3?"}, "parallel": {"Some sums, please."}, "correction": {"Try everything."},
		"image": {"Draw that."}, "thinking": {"What is 2 plus 3?"}, "steps": {"Count to thirty."},
	}[script]
	req := &model.Request{System: "Be brief & <kind>.", Tools: []model.Tool{
		{Name: "add", Description: "Add two numbers", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}}}`)},
		{Name: "fail", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
		{Name: "picture", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
	}}
	var said []understood
	for _, prompt := range prompts {
		message := model.UserText(prompt)
		if script == "image" {
			message.Parts = append(message.Parts, model.Part{Media: png})
		}
		req.Messages = append(req.Messages, message)
		for {
			resp, err := m.Generate(t.Context(), req, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := understood{Text: resp.Message.Text(), Tokens: resp.Usage, Long: resp.Stop == model.StopLength}
			results := model.Message{Role: model.User}
			for _, c := range resp.Message.Calls() {
				s.Calls = append(s.Calls, *c)
				results.Parts = append(results.Parts, model.Part{Result: result(c, png)})
			}
			said = append(said, s)
			req.Messages = append(req.Messages, resp.Message)
			if s.Calls == nil {
				break
			}
			req.Messages = append(req.Messages, results)
		}
	}
	return said
}

// result is what the tools of the scripts return.
func result(c *model.Call, png *model.Media) *model.Result {
	r := &model.Result{ID: c.ID, Name: c.Name}
	var in struct{ A, B float64 }
	switch {
	case c.Name == "fail":
		r.Error, r.Parts = true, []model.Part{{Text: "it is broken"}}
	case c.Name == "picture":
		r.Parts = []model.Part{{Text: "a cat"}, {Media: png}}
	case c.Name != "add":
		r.Error, r.Parts = true, []model.Part{{Text: "no such tool: " + c.Name}}
	case json.Unmarshal(c.Arguments, &in) != nil:
		r.Error, r.Parts = true, []model.Part{{Text: "malformed arguments: " + string(c.Arguments)}}
	default:
		r.Parts = []model.Part{{Text: fmt.Sprint(in.A + in.B)}}
	}
	return r
}

func chatLibrary(t *testing.T, url string, c *http.Client, body []byte) (s understood) {
	t.Helper()
	var params openai.ChatCompletionNewParams
	var raw struct {
		Messages []struct {
			Thought *string `json:"reasoning_content"` // unknown to the library
		}
	}
	if err := errors.Join(json.Unmarshal(body, &params), json.Unmarshal(body, &raw)); err != nil {
		t.Fatal(err)
	}
	for i, m := range raw.Messages {
		if m.Thought != nil {
			params.Messages[i].OfAssistant.SetExtraFields(map[string]any{"reasoning_content": *m.Thought})
		}
	}
	api := openai.NewChatCompletionService(option.WithBaseURL(url+"/v1"), option.WithAPIKey("key"), option.WithHTTPClient(c))
	stream := api.NewStreaming(t.Context(), params)
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Errorf("the accumulator refuses %s", stream.Current().RawJSON())
		}
	}
	if err := stream.Err(); err != nil || len(acc.Choices) != 1 {
		t.Fatalf("%v; the answer is %+v", err, acc.ChatCompletion)
	}
	choice, u := acc.Choices[0], acc.Usage
	s = understood{Text: choice.Message.Content, Long: choice.FinishReason == "length",
		Tokens: model.Usage{Input: u.PromptTokens, Output: u.CompletionTokens, Cached: u.PromptTokensDetails.CachedTokens, Stored: u.PromptTokensDetails.CacheWriteTokens}}
	for _, call := range choice.Message.ToolCalls {
		s.Calls = append(s.Calls, model.Call{ID: call.ID, Name: call.Function.Name, Arguments: model.Arguments(call.Function.Arguments)})
	}
	return s
}

func responsesLibrary(t *testing.T, url string, c *http.Client, body []byte) (s understood) {
	t.Helper()
	var params responses.ResponseNewParams
	var raw struct{ Input []json.RawMessage }
	if err := errors.Join(json.Unmarshal(body, &params), json.Unmarshal(body, &raw)); err != nil {
		t.Fatal(err)
	}
	params.Input.OfInputItemList = nil // a message need not say its type, which the library cannot read
	for _, item := range raw.Input {
		params.Input.OfInputItemList = append(params.Input.OfInputItemList, inputItem(t, item))
	}
	api := responses.NewResponseService(option.WithBaseURL(url+"/v1"), option.WithAPIKey("key"), option.WithHTTPClient(c))
	stream := api.NewStreaming(t.Context(), params)
	var whole responses.Response
	for stream.Next() {
		if e := stream.Current(); strings.HasPrefix(e.Type, "response.") && e.Response.Status != "" {
			whole = e.Response
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	u := whole.Usage
	s = understood{Text: whole.OutputText(), Long: whole.IncompleteDetails.Reason == "max_output_tokens",
		Tokens: model.Usage{Input: u.InputTokens, Output: u.OutputTokens, Cached: u.InputTokensDetails.CachedTokens, Stored: u.InputTokensDetails.CacheWriteTokens}}
	for _, item := range whole.Output {
		if call := item.AsFunctionCall(); item.Type == "function_call" {
			s.Calls = append(s.Calls, model.Call{ID: call.CallID, Name: call.Name, Arguments: model.Arguments(call.Arguments)})
		}
	}
	return s
}

// inputItem makes an item of a request with the library.
func inputItem(t *testing.T, raw []byte) responses.ResponseInputItemUnionParam {
	t.Helper()
	var item struct {
		Type, Role, Name, Arguments string
		CallID                      string `json:"call_id"`
		Content, Output             json.RawMessage
	}
	var text string
	var content responses.ResponseInputMessageContentListParam
	var output responses.ResponseFunctionCallOutputItemListParam
	err := json.Unmarshal(raw, &item)
	switch {
	case item.Type == "function_call":
		return responses.ResponseInputItemParamOfFunctionCall(item.Arguments, item.CallID, item.Name)
	case item.Type == "function_call_output" && json.Unmarshal(item.Output, &output) == nil:
		out := responses.ResponseInputItemParamOfFunctionCallOutput(output)
		out.OfFunctionCallOutput.CallID = openai.String(item.CallID)
		return out
	case item.Type == "reasoning":
		return param.Override[responses.ResponseInputItemUnionParam](json.RawMessage(raw))
	case item.Type == "" && json.Unmarshal(item.Content, &text) == nil:
		return responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRole(item.Role))
	case item.Type == "" && json.Unmarshal(item.Content, &content) == nil:
		return responses.ResponseInputItemParamOfMessage(content, responses.EasyInputMessageRole(item.Role))
	}
	t.Fatalf("the library cannot say %s: %v", raw, err)
	panic("unreachable")
}

func messagesLibrary(t *testing.T, url string, c *http.Client, body []byte) (s understood) {
	t.Helper()
	var params anthropic.MessageNewParams
	if err := json.Unmarshal(body, &params); err != nil {
		t.Fatal(err)
	}
	api := anthropic.NewMessageService(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("key"), anthropicoption.WithHTTPClient(c))
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
	u := acc.Usage
	s.Long = acc.StopReason == anthropic.StopReasonMaxTokens
	s.Tokens = model.Usage{Input: u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens, Output: u.OutputTokens, Cached: u.CacheReadInputTokens, Stored: u.CacheCreationInputTokens}
	for _, b := range acc.Content {
		switch b.Type {
		case "text":
			s.Text += b.Text
		case "tool_use":
			if string(b.Input) == "{}" {
				b.Input = nil // this may have been anything that is not an object
			}
			s.Calls = append(s.Calls, model.Call{ID: b.ID, Name: b.Name, Arguments: b.Input})
		}
	}
	return s
}

// The official libraries take the answers that package modeltest gives in one piece.
func TestProviderLibrariesWhole(t *testing.T) {
	const script = "turns: [{answer: [{text: I add.}, {call: {name: add, arguments: {a: 1}}}], usage: {input: 10, output: 3, cached: 4}}]"
	start := func(t *testing.T) string {
		_, url := modeltest.Start(t, modeltest.MustParse(script))
		return url
	}
	t.Run("chat", func(t *testing.T) {
		api := openai.NewChatCompletionService(option.WithBaseURL(start(t)+"/v1"), option.WithAPIKey("k"))
		got, err := api.New(t.Context(), openai.ChatCompletionNewParams{Model: "m", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("x")}})
		if err != nil || len(got.Choices) != 1 || got.Choices[0].FinishReason != "tool_calls" || got.Usage.PromptTokens != 10 || got.Usage.PromptTokensDetails.CachedTokens != 4 {
			t.Fatalf("the answer is %+v, %v", got, err)
		}
		if m := got.Choices[0].Message; m.Content != "I add." || len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Name != "add" || m.ToolCalls[0].Function.Arguments != `{"a":1}` {
			t.Errorf("the message is %+v", m)
		}
	})
	t.Run("responses", func(t *testing.T) {
		api := responses.NewResponseService(option.WithBaseURL(start(t)+"/v1"), option.WithAPIKey("k"))
		got, err := api.New(t.Context(), responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("x")}})
		if err != nil || got.OutputText() != "I add." || len(got.Output) != 2 || got.Output[1].Name != "add" || got.Status != "completed" || got.Usage.InputTokens != 10 {
			t.Errorf("the answer is %+v, %v", got, err)
		}
	})
	t.Run("messages", func(t *testing.T) {
		api := anthropic.NewMessageService(anthropicoption.WithBaseURL(start(t)), anthropicoption.WithAPIKey("k"))
		got, err := api.New(t.Context(), anthropic.MessageNewParams{Model: "m", MaxTokens: 100, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("x"))}})
		if err != nil || len(got.Content) != 2 || got.Content[0].Text != "I add." || got.Content[1].Name != "add" || string(got.Content[1].Input) != `{"a":1}` ||
			got.StopReason != "tool_use" || got.Usage.InputTokens != 6 || got.Usage.CacheReadInputTokens != 4 {
			t.Errorf("the answer is %+v, %v", got, err)
		}
	})
}
