package interop

import (
	"encoding/json"

	"net/http/httptest"
	"os"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/google/go-cmp/cmp"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"

	"github.com/patchbay-dev/patchbay/internal/providers/scripted"
)

// compatible are the providers that the libraries of OpenAI can ask.
var compatible = []string{"openai", "gemini", "azure", "bedrock", "vertex", "openrouter", "ollama", "lmstudio", "llamacpp", "vllm", "deepseek", "moonshot", "mistral", "xai", "groq"}

func scriptedServer(t *testing.T, name string) (base string) {
	t.Helper()
	s := scripted.New(name)
	at := httptest.NewServer(s)
	t.Cleanup(func() {
		at.CloseClientConnections()
		at.Close()
	})
	_, path := s.Address()
	return at.URL + path
}

// plainText returns the text of a content, which is a list of parts at Mistral.
func plainText(content string) (text string) {
	var parts []struct{ Type, Text string }
	if json.Unmarshal([]byte(content), &parts) != nil {
		return content
	}
	for _, p := range parts {
		text += p.Text
	}
	return text
}

var addParameters = openai.FunctionParameters{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "number"}, "b": map[string]any{"type": "number"}}}

// The official Go library of OpenAI has a conversation with each scripted server, and understands its
// streams.
func TestWiresOpenAIGo(t *testing.T) {
	for _, name := range compatible {
		t.Run(name, func(t *testing.T) {
			api := openai.NewChatCompletionService(option.WithBaseURL(scriptedServer(t, name)), option.WithAPIKey(scripted.Key), option.WithMaxRetries(0))
			params := openai.ChatCompletionNewParams{
				Model: scripted.Model,
				Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(openai.FunctionDefinitionParam{Name: "add", Parameters: addParameters})},
			}
			var said []string
			whole := func(prompt string) {
				params.Messages = append(params.Messages, openai.UserMessage(prompt))
				for {
					got, err := api.New(t.Context(), params)
					if err != nil {
						t.Fatalf("%q: %v", prompt, err)
					}
					m := got.Choices[0].Message
					// The message goes back whole, as the documentation of Gemini and DeepSeek asks.
					params.Messages = append(params.Messages, param.Override[openai.ChatCompletionMessageParamUnion](json.RawMessage(m.RawJSON())))
					if len(m.ToolCalls) == 0 {
						content := m.Content
						if raw := m.JSON.Content.Raw(); raw != "" && raw[0] == '[' {
							content = plainText(raw)
						}
						said = append(said, content)
						return
					}
					for _, c := range m.ToolCalls {
						params.Messages = append(params.Messages, openai.ToolMessage(sum(t, c.Function.Arguments), c.ID))
					}
				}
			}
			whole(scripted.OneCall)
			whole(scripted.Again)
			whole(scripted.TwoCalls)
			thought := ""
			if name == "bedrock" {
				thought = "<reasoning>Hm.</reasoning>"
			}
			if diff := cmp.Diff([]string{thought + "It is 5.", thought + scripted.Hello, thought + "It is 5, 7."}, said); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}

			params.Messages = []openai.ChatCompletionMessageParamUnion{openai.UserMessage(scripted.TwoCalls)}
			stream := api.NewStreaming(t.Context(), params)
			var calls []string // the accumulator of the library wants indexes that count, which Gemini does not have
			for stream.Next() {
				for _, choice := range stream.Current().Choices {
					for _, c := range choice.Delta.ToolCalls {
						if c.ID != "" {
							calls = append(calls, c.Function.Name)
						}
						calls[len(calls)-1] += c.Function.Arguments
					}
				}
			}
			if diff := cmp.Diff([]string{`add{"a":2,"b":3}`, `add{"a":3,"b":4}`}, calls); diff != "" || stream.Err() != nil {
				t.Errorf("%v; calls of a stream (-want +got):\n%s", stream.Err(), diff)
			}
			_, err := api.New(t.Context(), openai.ChatCompletionNewParams{Model: scripted.Model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(scripted.TooLong)}})
			if err == nil {
				t.Error("a request that is too long is answered")
			}
		})
	}
}

// sum adds the arguments of a call.
func sum(t *testing.T, arguments string) string {
	t.Helper()
	var in struct{ A, B int }
	if err := json.Unmarshal([]byte(arguments), &in); err != nil {
		t.Fatalf("arguments %q: %v", arguments, err)
	}
	text, _ := json.Marshal(in.A + in.B)
	return string(text)
}

// The official Go library of Anthropic has the same conversation with the scripted server, streamed, and
// lists its models.
func TestWiresAnthropicGo(t *testing.T) {
	base := scriptedServer(t, "anthropic")
	o := []anthropicoption.RequestOption{anthropicoption.WithBaseURL(base[:len(base)-len("/v1")]), anthropicoption.WithAPIKey(scripted.Key), anthropicoption.WithMaxRetries(0)}
	api := anthropic.NewMessageService(o...)
	params := anthropic.MessageNewParams{Model: scripted.Model, MaxTokens: 100, Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "add"}}}}
	var said []string
	for _, prompt := range []string{scripted.OneCall, scripted.Again, scripted.TwoCalls} {
		params.Messages = append(params.Messages, anthropic.NewUserMessage(anthropic.NewTextBlock(prompt)))
		for {
			stream := api.NewStreaming(t.Context(), params)
			var m anthropic.Message
			for stream.Next() {
				if err := m.Accumulate(stream.Current()); err != nil {
					t.Fatal(err)
				}
			}
			if err := stream.Err(); err != nil {
				t.Fatalf("%q: %v", prompt, err)
			}
			params.Messages = append(params.Messages, m.ToParam())
			var results []anthropic.ContentBlockParamUnion
			for _, b := range m.Content {
				switch b.Type {
				case "text":
					said = append(said, b.Text)
				case "tool_use":
					results = append(results, anthropic.NewToolResultBlock(b.ID, sum(t, string(b.Input)), false))
				}
			}
			if results == nil {
				break
			}
			params.Messages = append(params.Messages, anthropic.NewUserMessage(results...))
		}
	}
	if diff := cmp.Diff([]string{"It is 5.", scripted.Hello, "It is 5, 7."}, said); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	models := anthropic.NewModelService(o...)
	if m, err := models.Get(t.Context(), scripted.Model, anthropic.ModelGetParams{}); err != nil || m.MaxInputTokens != scripted.Window {
		t.Errorf("the model is %+v, %v", m, err)
	}
}

// The official JavaScript libraries have the same conversation with each scripted server.
func TestWiresJavaScript(t *testing.T) {
	binary := node(t)
	for _, module := range []string{"openai", "@anthropic-ai"} {
		if _, err := os.Stat(npmFile("node_modules", module)); err != nil {
			if required() {
				t.Fatalf("%v: run npm ci in npm", err)
			}
			t.Skipf("%v: run npm ci in npm", err)
		}
	}
	bases := map[string]string{"anthropic": scriptedServer(t, "anthropic")}
	for _, name := range compatible {
		bases[name] = scriptedServer(t, name)
	}
	given, err := json.Marshal(bases)
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := run(t.Context(), []string{binary, npmFile("peers", "wires.mjs"), string(given), scripted.Key, scripted.Model, scripted.OneCall, scripted.Again, scripted.TwoCalls})
	if err != nil {
		t.Fatalf("wires.mjs: %v\nstdout: %s\nstderr: %s", err, stdout, stderr)
	}
	var got map[string]struct{ Whole, Streamed []string }
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("wires.mjs printed %q: %v", stdout, err)
	}
	for name := range bases {
		thought := ""
		if name == "bedrock" {
			thought = "<reasoning>Hm.</reasoning>"
		}
		if diff := cmp.Diff([]string{thought + "It is 5.", thought + scripted.Hello, thought + "It is 5, 7."}, got[name].Whole); diff != "" {
			t.Errorf("%s: answers (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]string{`add {"a":2,"b":3}`, `add {"a":3,"b":4}`}, got[name].Streamed); diff != "" {
			t.Errorf("%s: calls of a stream (-want +got):\n%s", name, diff)
		}
	}
}
