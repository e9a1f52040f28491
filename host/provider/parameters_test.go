package provider_test

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider"
)

// set returns parameters from words as a person types them.
func set(t *testing.T, words ...string) (s model.Parameters) {
	t.Helper()
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		if err := s.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// answers are whole answers, by API.
var answers = map[string]string{"chat": hiChat, "responses": hiResponses, "messages": hiMessages}

// settled opens a model at a server with refusals, asks it with parameters, and returns the last request and the notes.
func settled(t *testing.T, name, api string, o provider.Options, s model.Parameters, refuse []refusedText, messages ...model.Message) (last string, notes []string, requests int) {
	t.Helper()
	server := &refusing{t: t, answer: answers[api], refuse: refuse}
	srv := httptest.NewServer(server)
	defer srv.Close()
	o.BaseURL, o.Env, o.Info, o.Key, o.Retry = srv.URL, noEnv, withWindow, "k", once
	m, err := provider.Open(name, o)
	if err != nil {
		t.Fatal(err)
	}
	if messages == nil {
		messages = hello.Messages
	}
	for range 2 { // the second time at once
		before := len(server.sent)
		_, err := m.Generate(t.Context(), &model.Request{Messages: messages, Parameters: s}, func(d model.Delta) {
			if d.Note != "" {
				notes = append(notes, d.Note)
			}
		})
		if err != nil {
			t.Fatalf("%s with %v: %v", name, s.List(), err)
		}
		if requests = len(server.sent); before > 0 && requests != before+1 {
			t.Errorf("%s with %v: what was refused is asked for again", name, s.List())
		}
	}
	return server.sent[len(server.sent)-1], notes, requests - 1
}

// Each API gets the effort and the other parameters in its own words (the pages that package providers
// names, and https://platform.claude.com/docs/en/build-with-claude/effort).
func TestRequestParameters(t *testing.T) {
	for _, tt := range []struct {
		name, api string
		settings  []string
		has, not  []string
	}{
		{"openai/gpt-5", "chat", []string{"effort=low", "maxTokens=9"}, []string{`"reasoning_effort":"low"`, `"max_completion_tokens":9`}, nil},
		{"openai/x", "chat", []string{"temperature=0", "topP=0.5", "chat_template_kwargs={\"enable_thinking\":false}", "stop=END"},
			[]string{`"temperature":0`, `"top_p":0.5`, `"chat_template_kwargs":{"enable_thinking":false}`, `"stop":"END"`}, []string{"effort"}},
		{"openai/gpt-5.1", "chat", []string{"effort=none", "temperature=0.5"}, []string{`"reasoning_effort":"none"`, `"temperature":0.5`}, nil},
		{"openai-responses/gpt-5", "responses", []string{"effort=xhigh", "topP=1"}, []string{`"reasoning":{"effort":"xhigh"}`}, []string{"top_p"}},
		{"openrouter/vendor/x", "chat", []string{"effort=high", "provider={\"order\":[\"a\"]}"}, []string{`"reasoning":{"effort":"high"}`, `"provider":{"order":["a"]}`}, []string{"reasoning_effort"}},
		{"gemini/gemini-3-pro", "chat", []string{"effort=minimal"}, []string{`"reasoning_effort":"minimal"`}, nil},
		{"ollama/qwen3", "chat", []string{"effort=none"}, []string{`"reasoning_effort":"none"`}, nil},
		{"mistral/mistral-small-latest", "chat", []string{"effort=high", "seed=7"}, []string{`"reasoning_effort":"high"`, `"random_seed":7`}, []string{`"seed"`}},
		{"deepseek/deepseek-flash", "chat", []string{"effort=none"}, []string{`"thinking":{"type":"disabled"}`}, []string{"reasoning_effort"}},
		{"deepseek/deepseek-flash", "chat", []string{"effort=max"}, []string{`"reasoning_effort":"max"`}, []string{"thinking"}},
		{"moonshot/kimi-k2.5", "chat", []string{"effort=none"}, []string{`"thinking":{"type":"disabled"}`}, []string{"reasoning_effort"}},
		{"anthropic/claude-opus-4-7", "messages", []string{"effort=xhigh", "temperature=0.5"},
			[]string{`"thinking":{"type":"adaptive","display":"summarized"}`, `"output_config":{"effort":"xhigh"}`}, []string{"temperature", "budget"}},
		{"anthropic/claude-sonnet-4-5", "messages", []string{"effort=high", "topP=0.9"}, []string{`"thinking":{"type":"enabled","budget_tokens":16384}`}, []string{"output_config", "top_p"}},
		{"anthropic/claude-sonnet-4-5", "messages", []string{"effort=max", "maxTokens=2000"}, []string{`"thinking":{"type":"enabled","budget_tokens":1600}`, `"max_tokens":2000`}, nil},
		{"anthropic/claude-sonnet-4-5", "messages", []string{"effort=max", "maxTokens=1000", "topP=0.9"}, []string{`"max_tokens":1000`, `"top_p":0.9`}, []string{"thinking"}},
		{"anthropic/claude-opus-4-7", "messages", []string{"effort=none", "topK=5"}, []string{`"thinking":{"type":"disabled"}`, `"top_k":5`}, []string{"output_config"}},
	} {
		last, _, requests := settled(t, tt.name, tt.api, provider.Options{}, set(t, tt.settings...), nil)
		if requests != 1 {
			t.Errorf("%s with %v: %d requests", tt.name, tt.settings, requests)
		}
		for _, text := range tt.has {
			if !strings.Contains(last, text) {
				t.Errorf("%s with %v: sent %s, want %s in it", tt.name, tt.settings, last, text)
			}
		}
		for _, text := range tt.not {
			if strings.Contains(last, text) {
				t.Errorf("%s with %v: sent %s, want no %s in it", tt.name, tt.settings, last, text)
			}
		}
	}
}

// The effort of the model holds where the request has none.
func TestEffortOfModel(t *testing.T) {
	for request, want := range map[string]string{"": "high", "low": "low"} {
		last, _, _ := settled(t, "openai/gpt-5", "chat", provider.Options{Effort: model.HighEffort}, set(t, "effort="+request), nil)
		if !strings.Contains(last, `"reasoning_effort":"`+want+`"`) {
			t.Errorf("of effort %q was sent %s, want %s", request, last, want)
		}
	}
}

// A parameter of requests that a provider refuses, in its own words, is left out, the person is told once, and another effort is still tried.
func TestRefusedRequestParameters(t *testing.T) {
	const claude = `{"type":"error","error":{"type":"invalid_request_error","message":`
	for _, tt := range []struct {
		name, api string
		settings  []string
		refuse    []refusedText
		has, not  []string
		notes     []string // in order, each a part of one
	}{
		{"openai/gpt-4o", "chat", []string{"effort=low"}, []refusedText{
			{`reasoning_effort`, "", 400, `{"error":{"message":"Unrecognized request argument supplied: reasoning_effort","type":"invalid_request_error"}}`},
		}, nil, []string{"reasoning_effort"}, []string{`takes no effort low here, so it is left out: "Unrecognized request argument`}},
		{"openai/gpt-5", "chat", []string{"effort=xhigh", "temperature=0.5"}, []refusedText{
			{`"xhigh"`, "", 400, `{"error":{"message":"Unsupported value: 'reasoning_effort' does not support 'xhigh' with this model. Supported values are: 'minimal', 'low', 'medium', and 'high'.","param":"reasoning_effort","code":"unsupported_value"}}`},
		}, nil, []string{"xhigh"}, []string{"no temperature", "Supported values are"}},
		{"xai/grok-4", "chat", []string{"effort=high"}, []refusedText{
			{`reasoning_effort`, "", 400, `{"code":"Client specified an invalid argument","error":"Model grok-4 does not support parameter reasoningEffort."}`},
		}, nil, []string{"reasoning_effort"}, []string{"no effort high"}},
		{"groq/qwen/qwen3-32b", "chat", []string{"effort=high"}, []refusedText{
			{`reasoning_effort`, "", 400, "{\"error\":{\"message\":\"`reasoning_effort` must be one of `none` or `default`\",\"type\":\"invalid_request_error\"}}"},
		}, nil, []string{"reasoning_effort"}, []string{"no effort high"}},
		{"mistral/mistral-large", "chat", []string{"effort=low"}, []refusedText{
			{`reasoning_effort`, "", 422, `{"object":"error","message":{"detail":[{"type":"enum","loc":["body","reasoning_effort"],"msg":"Input should be 'high' or 'none'","input":"low"}]},"type":"invalid_request_error"}`},
		}, nil, []string{"reasoning_effort"}, []string{"no effort low"}},
		{"openai/x", "chat", []string{"frobnicate=1", "topP=0.5"}, []refusedText{
			{`frobnicate`, "", 400, `{"error":{"message":"Unknown parameter: 'frobnicate'."}}`},
			{`top_p`, "", 400, `{"error":{"message":"Unsupported parameter: 'top_p' is not supported with this model."}}`},
		}, nil, []string{"frobnicate", "top_p"}, []string{"no top_p", "no frobnicate"}},
		{"openai-responses/gpt-4o", "responses", []string{"effort=low"}, []refusedText{
			{`"reasoning"`, "", 400, `{"error":{"message":"Unsupported parameter: 'reasoning.effort' is not supported with this model.","param":"reasoning.effort"}}`},
		}, nil, []string{"reasoning"}, []string{"no effort low"}},
		{"anthropic/claude-next", "messages", []string{"effort=high"}, []refusedText{
			{`"adaptive"`, "", 400, claude + `"adaptive thinking is not supported on this model"}}`},
		}, []string{`"thinking":{"type":"enabled","budget_tokens":16384}`}, []string{"output_config"}, nil},
		{"anthropic/claude-sonnet-4-5-next", "messages", []string{"effort=high"}, []refusedText{
			{`"enabled"`, "", 400, claude + `"\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior."}}`},
		}, []string{`"thinking":{"type":"adaptive","display":"summarized"}`, `"effort":"high"`}, nil, nil},
		{"anthropic/claude-sonnet-4-6", "messages", []string{"effort=xhigh"}, []refusedText{
			{`"xhigh"`, "", 400, claude + `"output_config.effort: Input should be 'low', 'medium', 'high' or 'max'"}}`},
		}, []string{`"thinking":{"type":"adaptive","display":"summarized"}`}, []string{"output_config"}, []string{`no effort xhigh here, so it is left out: "output_config.effort`}},
		{"anthropic/an-old-proxy", "messages", []string{"effort=low"}, []refusedText{
			{`"display"`, "", 400, claude + `"thinking.adaptive.display: Extra inputs are not permitted"}}`},
		}, []string{`"thinking":{"type":"adaptive"}`}, nil, nil},
		{"anthropic/claude-3-5-haiku", "messages", []string{"effort=low"}, []refusedText{
			{`"thinking"`, "", 400, claude + `"thinking: Extra inputs are not permitted"}}`},
		}, nil, []string{"thinking"}, []string{"no effort low"}},
	} {
		last, notes, requests := settled(t, tt.name, tt.api, provider.Options{}, set(t, tt.settings...), tt.refuse)
		if want := len(tt.refuse) + 1; requests != want {
			t.Errorf("%s with %v: %d requests, want %d", tt.name, tt.settings, requests, want)
		}
		for _, text := range tt.has {
			if !strings.Contains(last, text) {
				t.Errorf("%s with %v: sent %s, want %s in it", tt.name, tt.settings, last, text)
			}
		}
		for _, text := range tt.not {
			if strings.Contains(last, text) {
				t.Errorf("%s with %v: sent %s, want no %s in it", tt.name, tt.settings, last, text)
			}
		}
		if len(notes) != len(tt.notes) {
			t.Errorf("%s with %v: notes are %q, want %q", tt.name, tt.settings, notes, tt.notes)
			continue
		}
		for i, note := range tt.notes {
			if !strings.Contains(notes[i], note) {
				t.Errorf("%s with %v: note %d is %q, want %q", tt.name, tt.settings, i, notes[i], note)
			}
		}
	}
}

// An effort that was refused does not keep others from being sent. Info says what is left out, by the names of
// parameters.
func TestRefusedEffortIsOneValue(t *testing.T) {
	s := &refusing{t: t, answer: hiChat, refuse: []refusedText{
		{`"xhigh"`, "", 400, `{"error":{"message":"Unsupported value: 'reasoning_effort' does not support 'xhigh'."}}`},
		{`top_p`, "", 400, `{"error":{"message":"Unsupported parameter: 'top_p' is not supported with this model."}}`},
	}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	m, err := provider.Open("openai/x", provider.Options{BaseURL: srv.URL, Env: noEnv, Retry: once, Info: withWindow})
	if err != nil {
		t.Fatal(err)
	}
	for _, effort := range []model.Effort{model.XHighEffort, model.HighEffort} {
		p := set(t, "effort="+string(effort), "topP=0.5", "seed=7")
		if _, err := m.Generate(t.Context(), &model.Request{Messages: hello.Messages, Parameters: p}, func(model.Delta) {}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := m.Info().LeftOut, []string{"topP", "effort=xhigh"}; !slices.Equal(got, want) {
		t.Errorf("Info says that %q is left out, want %q", got, want)
	}
	if last := s.sent[len(s.sent)-1]; !strings.Contains(last, `"reasoning_effort":"high"`) {
		t.Errorf("after the refusal of another effort was sent %s", last)
	}
}

// Members that are part of every request cannot be set as parameters of one.
func TestOwnMembersAsParameters(t *testing.T) {
	m, err := provider.Open("openai/x", provider.Options{BaseURL: "http://127.0.0.1:1", Env: noEnv, Retry: once, Info: withWindow})
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"messages": "[]", "stream": "false", "n": "{"} {
		_, err := m.Generate(t.Context(), &model.Request{Messages: hello.Messages, Parameters: model.Parameters{Extra: map[string]json.RawMessage{name: json.RawMessage(value)}}}, nil)
		if err == nil || !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("%s=%s: %v", name, value, err)
		}
	}
}

// A Claude model that thinks within a budget must begin the message with its calls with a thought, which goes back with its
// signature. If it has called without one, or must call a tool, it does not think in that request.
func TestThinkingWithCalls(t *testing.T) {
	call := model.Part{Call: &model.Call{ID: "1", Name: "add", Arguments: json.RawMessage("{}")}}
	result := model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: "1", Name: "add", Parts: []model.Part{{Text: "5"}}}}}}
	s := &refusing{t: t, answer: `{"type":"message","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"tool_use","id":"1","name":"add","input":{}}],"stop_reason":"tool_use"}`}
	srv := httptest.NewServer(s)
	defer srv.Close()
	m, err := provider.Open("anthropic/claude-sonnet-4-5", provider.Options{BaseURL: srv.URL, Env: noEnv, Retry: once, Info: withWindow, Effort: model.LowEffort})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(choice model.Choice, messages ...model.Message) string {
		if _, err := m.Generate(t.Context(), &model.Request{Messages: messages, Choice: choice, Tools: []model.Tool{{Name: "add"}}}, nil); err != nil {
			t.Fatal(err)
		}
		return s.sent[len(s.sent)-1]
	}
	first, err := m.Generate(t.Context(), &model.Request{Messages: hello.Messages}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		about  string
		sent   string
		thinks bool
	}{
		{"after a thought", ask(model.Choice{}, slices.Concat(hello.Messages, []model.Message{first.Message, result})...), true},
		{"after a call without a thought", ask(model.Choice{}, slices.Concat(hello.Messages, []model.Message{{Role: model.Assistant, Parts: []model.Part{call}}, result})...), false},
		{"in the next turn", ask(model.Choice{}, slices.Concat(hello.Messages, []model.Message{{Role: model.Assistant, Parts: []model.Part{call}}, result, {Role: model.Assistant, Parts: []model.Part{{Text: "5"}}}}, hello.Messages)...), true},
		{"when it must call a tool", ask(model.Choice{Mode: "required"}, hello.Messages...), false},
	} {
		if strings.Contains(tt.sent, `"budget_tokens"`) != tt.thinks {
			t.Errorf("%s: sent %s, want it to think: %v", tt.about, tt.sent, tt.thinks)
		}
		if strings.Contains(tt.about, "after a thought") && !strings.Contains(tt.sent, `{"signature":"sig","thinking":"hm","type":"thinking"}`) {
			t.Errorf("%s: sent %s, without the thought", tt.about, tt.sent)
		}
	}
}
