package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/host/provider"
)

func TestOpenErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    provider.Options
		want string // in the error; empty: none
	}{
		{"gpt-5", provider.Options{Key: "k"}, "write PROVIDER/NAME, such as openai/gpt-5"},
		{"nobody/x", provider.Options{Key: "k"}, "openai with a base URL"},
		{"deepsek/x", provider.Options{Key: "k"}, `did you mean "deepseek"?`},
		{"deepseek/x", provider.Options{}, "set DEEPSEEK_API_KEY"},
		{"bedrock/x", provider.Options{Key: "k"}, "set AWS_REGION, or the whole base URL as AWS_BEDROCK_BASE_URL"},
		{"github/gpt-5", provider.Options{Key: "k"}, "retired"},
		{"ollama/x", provider.Options{}, ""},
		{"ollama/", provider.Options{}, "write ollama/NAME"},
		{"mistral/x", provider.Options{API: "text", Key: "k"}, ""},
		{"openai/", provider.Options{Key: "k"}, "write openai/NAME"},
		{"openai/x", provider.Options{}, "set OPENAI_API_KEY"},
		{"anthropic/x", provider.Options{}, "set ANTHROPIC_API_KEY"},
		{"anthropic/x", provider.Options{Key: "k"}, ""},
		{"openai/x", provider.Options{BaseURL: "http://localhost:11434/v1"}, ""},
		{"openai/x", provider.Options{BaseURL: "localhost:11434"}, "base URL"},
		{"openai/x", provider.Options{BaseURL: "http://\x7f"}, "base URL"},
		{"openai/x", provider.Options{API: "telepathy", Key: "k"}, "unknown API"},
		{"openai/org/x", provider.Options{API: "responses", Key: "k"}, ""},
	} {
		tt.o.Env = noEnv
		m, err := provider.Open(tt.name, tt.o)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("Open(%q, %+v) = %v", tt.name, tt.o, err)
		case tt.want == "" && m.Info().Name != tt.name:
			t.Errorf("Open(%q).Info().Name = %q", tt.name, m.Info().Name)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("Open(%q, %+v) = %v, want an error with %q", tt.name, tt.o, err, tt.want)
		}
	}
}

// Address and key come from the given environment, not from that of the process.
func TestOpenEnvironment(t *testing.T) {
	t.Setenv("OPENAI_ORG_ID", "of the process")
	t.Setenv("OPENAI_PROJECT_ID", "of the process")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Leak: of the process")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Leak: of the process")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "of the process")
	t.Setenv("OPENAI_API_KEY", "of the process")
	t.Setenv("ANTHROPIC_API_KEY", "of the process")
	for _, name := range []string{"openai/x", "openai-responses/x", "anthropic/x", "text/x"} {
		var got http.Header
		s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
		defer s.Close()
		env := map[string]string{"OPENAI_BASE_URL": s.URL + "/v1/", "ANTHROPIC_BASE_URL": s.URL, "OPENAI_API_KEY": "key\n", "ANTHROPIC_API_KEY": "key"}
		m, err := provider.Open(name, provider.Options{Retry: once, Info: withWindow, Env: func(v string) string { return env[v] }, Header: http.Header{"x-mine": {"mine"}}})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = m.Generate(t.Context(), hello, nil)
		if got == nil {
			t.Fatalf("%s: no request came", name)
		}
		if key := got.Get("X-Api-Key") + got.Get("Authorization"); key != "key" && key != "Bearer key" {
			t.Errorf("%s: the key came as %q", name, key)
		}
		if got.Get("X-Mine") != "mine" {
			t.Errorf("%s: the headers are %v, want X-Mine", name, got)
		}
		for header, values := range got {
			if strings.Contains(strings.Join(values, ""), "of the process") {
				t.Errorf("%s: %s: %q came from the environment of the process", name, header, values)
			}
		}
	}
}

// The key in the environment is sent to the provider or the base URL in the environment, not to a
// base URL in the options.
func TestKeyStaysAtHome(t *testing.T) {
	for _, tt := range []struct {
		name, base string // of the options; empty: that of the environment
		key, want  string
	}{
		{"openai/x", "http://elsewhere.test/v1", "", ""},
		{"text/x", "http://elsewhere.test/v1", "", ""},
		{"anthropic/x", "http://elsewhere.test", "", ""},
		{"openai/x", "http://elsewhere.test/v1", "mine", "mine"},
		{"openai-responses/x", "https://api.openai.com/v1", "", "of the environment"},
		{"anthropic/x", "https://api.anthropic.com", "", "of the environment"},
		{"openai/x", "", "", "of the environment"},
	} {
		key := "nothing was sent"
		m, err := provider.Open(tt.name, provider.Options{
			BaseURL: tt.base, Key: tt.key, Info: withWindow, Retry: once,
			Env: func(name string) string {
				if strings.HasSuffix(name, "_BASE_URL") {
					return "http://named.test"
				}
				return "of the environment"
			},
			HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				key = r.Header.Get("X-Api-Key") + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
				return nil, errors.New("enough was seen")
			})},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, _ = m.Generate(t.Context(), hello, nil); key != tt.want {
			t.Errorf("%s at %q was sent the key %q, want %q", tt.name, tt.base, key, tt.want)
		}
	}
}

// withWindow describes a model so that its server is asked for nothing but answers.
func withWindow(i *model.Info) { i.Window = 100_000 }

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Reasoning models refuse a temperature, so it is not sent to them, at OpenAI and elsewhere.
func TestThinkingModels(t *testing.T) {
	warm := 0.7
	req := &model.Request{Messages: hello.Messages, Parameters: model.Parameters{Temperature: &warm}, Stop: []string{"END"}}
	for _, tt := range []struct {
		id                     string
		official               bool
		temperature, stopsThat bool
	}{
		{"gpt-5-mini", false, false, false}, {"o3", false, false, false}, {"ft:o4-mini:acme", true, false, false}, {"of-the-future", true, false, false},
		{"of-the-future", false, true, true}, {"gpt-5-chat-latest", true, true, true}, {"ft:gpt-4o:acme", true, true, true}, {"gpt-4.1", false, true, true},
	} {
		for _, api := range []string{"chat", "responses"} {
			s, url := modeltest.Start(t, modeltest.MustParse("turns: [{answer: [text: Yes.]}]"))
			o := provider.Options{API: api, Key: "k", Env: noEnv, Retry: once, BaseURL: url + "/v1"}
			if tt.official {
				o.BaseURL = ""
				o.HTTPClient = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
					r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(url, "http://")
					return http.DefaultTransport.RoundTrip(r)
				})}
			}
			m, err := provider.Open("openai/"+tt.id, o)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Generate(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
			sent := string(s.Requests()[0].Body)
			if strings.Contains(sent, `"temperature"`) != tt.temperature || strings.Contains(sent, `"stop"`) != (tt.stopsThat && api == "chat") {
				t.Errorf("%s over %s was sent %s", tt.id, api, sent)
			}
		}
	}
}

func TestInfo(t *testing.T) {
	for _, tt := range []struct {
		name string
		want model.Info
	}{
		{"openai/gpt-4o-mini", model.Info{Window: 128_000, Tools: 128, Images: true, Files: true}},
		{"anthropic/claude-of-the-future", model.Info{Window: 200_000, Images: true, Files: true}},
		{"openai/nobody-knows", model.Info{Tools: 128, Price: model.Price{Input: 3}}},
		{"text/gpt-3.5-turbo", model.Info{Window: 16_385}},
	} {
		m, err := provider.Open(tt.name, provider.Options{Key: "k", Env: noEnv, Retry: once, Info: func(i *model.Info) { i.Price = tt.want.Price }})
		if err != nil {
			t.Fatal(err)
		}
		tt.want.Name = tt.name
		if got := m.Info(); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("Info of %s = %+v, want %+v", tt.name, got, tt.want)
		}
	}
}

// body returns the body of a request on the wire.
func body(t *testing.T, name string, o provider.Options, req *model.Request) map[string]any {
	t.Helper()
	var got map[string]any
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Errorf("the request: %v", err)
		}
	}))
	defer s.Close()
	o.BaseURL, o.Env, o.Info, o.Retry = s.URL, noEnv, withWindow, once
	m, err := provider.Open(name, o)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = m.Generate(t.Context(), req, nil)
	return got
}

// Every field of a request is sent in every API.
func TestRequestIsTranslated(t *testing.T) {
	zero := 0.0
	req := &model.Request{
		System: "Be brief.", Messages: hello.Messages, Tools: tools, Choice: model.Choice{Mode: "tool", Tool: "add"},
		Parameters: model.Parameters{MaxTokens: 100, Temperature: &zero}, Stop: []string{"END"},
		Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false}`),
	}
	for _, tt := range []struct {
		name string
		want map[string]string // JSON, by the path of a member
	}{
		{"openai/x", map[string]string{
			"max_tokens": `100`, "temperature": `0`, "stop": `["END"]`, "stream": `true`, "stream_options": `{"include_usage":true}`,
			"tool_choice":     `{"function":{"name":"add"},"type":"function"}`,
			"response_format": `{"json_schema":{"name":"answer","schema":` + string(sortedJSON(t, req.Schema)) + `},"type":"json_schema"}`,
		}},
		{"openai-responses/x", map[string]string{
			"max_output_tokens": `100`, "temperature": `0`, "instructions": `"Be brief."`, "store": `false`,
			"tool_choice": `{"name":"add","type":"function"}`,
			"text":        `{"format":{"name":"answer","schema":` + string(sortedJSON(t, req.Schema)) + `,"type":"json_schema"}}`,
		}},
		{"anthropic/x", map[string]string{
			"max_tokens": `100`, "temperature": `0`, "stop_sequences": `["END"]`,
			"tool_choice":   `{"name":"add","type":"tool"}`,
			"system":        `[{"cache_control":{"type":"ephemeral"},"text":"Be brief.","type":"text"}]`,
			"messages":      `[{"content":[{"cache_control":{"type":"ephemeral"},"text":"hello","type":"text"}],"role":"user"}]`,
			"output_config": `{"format":{"schema":` + string(sortedJSON(t, req.Schema)) + `,"type":"json_schema"}}`,
		}},
	} {
		got := body(t, tt.name, provider.Options{}, req)
		for member, want := range tt.want {
			if text, _ := json.Marshal(got[member]); string(text) != want {
				t.Errorf("%s: %s = %s, want %s", tt.name, member, text, want)
			}
		}
		if list, _ := got["tools"].([]any); len(list) != len(tools) {
			t.Errorf("%s: %d tools were sent, want %d", tt.name, len(list), len(tools))
		}
	}
	if got := body(t, "anthropic/claude-3-haiku", provider.Options{}, req); got["output_config"] != nil || !strings.Contains(got["system"].([]any)[0].(map[string]any)["text"].(string), `"additionalProperties":false`) {
		t.Errorf("a model that knows no schemas was sent %v", got)
	}
	if got := body(t, "openai/x", provider.Options{MaxTokens: 7}, hello); got["max_tokens"] != 7.0 {
		t.Errorf("max_tokens = %v, want that of the options", got["max_tokens"])
	}
}

func sortedJSON(t *testing.T, raw json.RawMessage) []byte {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Media that a model does not accept become text, and thoughts are sent back only to their
// provider.
func TestMessagesAreTranslated(t *testing.T) {
	req := &model.Request{Messages: []model.Message{
		{Role: model.User, Parts: []model.Part{{Media: png}, {Media: &model.Media{MIME: "video/mp4", Data: []byte("film"), Name: "a.mp4"}}, {Media: &model.Media{MIME: "text/plain", Data: []byte("plain words")}}}},
		{Role: model.Assistant, Parts: []model.Part{
			{Opaque: &model.Opaque{Provider: "somebody else", Text: "secret", Data: json.RawMessage(`{"type":"thinking","thinking":"secret","reasoning_content":"secret"}`)}},
			{Call: &model.Call{ID: "odd:id", Name: "odd.name", Arguments: json.RawMessage(`"[1"`)}},
		}},
		{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: "odd:id", Name: "odd.name"}}, {Text: "  "}, {Text: "Well?"}}},
	}}
	for _, name := range []string{"openai/x", "openai-responses/x", "anthropic/x"} {
		text, _ := json.Marshal(body(t, name, provider.Options{}, req))
		got := string(text)
		for _, want := range []string{"image/png and 6 bytes is left out", `\"a.mp4\" of type video/mp4`, "plain words", "odd_name", `[1`, "(empty)", "Well?"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %s has no %q", name, got, want)
			}
		}
		for _, not := range []string{"secret", "odd:id", "odd.name"} {
			if strings.Contains(got, not) {
				t.Errorf("%s: %s has %q in it", name, got, not)
			}
		}
	}
	got := body(t, "anthropic/x", provider.Options{}, req)
	if choice, _ := json.Marshal(got["tool_choice"]); string(choice) != `{"type":"none"}` || got["tools"] == nil {
		t.Errorf("a conversation with calls and no tools was sent tools %v and the choice %s", got["tools"], choice)
	}
}

// Parameters are members of each request, unless the request has its own.
func TestParameters(t *testing.T) {
	for name, want := range map[string]string{
		"openai/x": `"stop"`, "openai-responses/x": `"max_output_tokens"`, "anthropic/x": `"max_tokens"`, "text/x": `"stream"`,
	} {
		var sent []byte
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent, _ = io.ReadAll(r.Body)
			w.WriteHeader(http.StatusTeapot)
		}))
		defer srv.Close()
		m, err := provider.Open(name, provider.Options{BaseURL: srv.URL, Retry: once, MaxTokens: 5, Info: withWindow, Parameters: map[string]json.RawMessage{
			"temperature": json.RawMessage(`0.25`), "x": json.RawMessage(`{"y":[1]}`), "stop": json.RawMessage(`["a"]`),
		}})
		if err != nil {
			t.Fatal(err)
		}
		m.Generate(t.Context(), &model.Request{Messages: hello.Messages}, nil)
		for _, part := range []string{`"temperature":0.25`, `"x":{"y":[1]}`, want} {
			if !bytes.Contains(sent, []byte(part)) {
				t.Errorf("%s sent %s, want %s in it", name, sent, part)
			}
		}
		warm := 0.75
		m.Generate(t.Context(), &model.Request{Messages: hello.Messages, Parameters: model.Parameters{Temperature: &warm}}, nil)
		if !bytes.Contains(sent, []byte(`"temperature":0.75`)) || bytes.Contains(sent, []byte("0.25")) {
			t.Errorf("%s sent %s, want the temperature of the request", name, sent)
		}
	}
	for want, parameters := range map[string]map[string]json.RawMessage{
		`the parameter "messages" is part of every request`:    {"messages": json.RawMessage(`[]`)},
		`the value of the parameter "temperature" is not JSON`: {"temperature": json.RawMessage(`warm`)},
	} {
		if _, err := provider.Open("openai/x", provider.Options{BaseURL: "http://h", Parameters: parameters}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open with %s: %v, want %q", parameters, err, want)
		}
	}
}

// A model that Open returns retries after temporary failures, unless Options.Retry says otherwise.
func TestOpenedModelRetries(t *testing.T) {
	for _, tt := range []struct {
		retry *model.RetryOptions
		fails bool
	}{{nil, false}, {&model.RetryOptions{Wait: 1}, false}, {once, true}} {
		script := modeltest.MustParse("turns: [{fault: {status: 503}}, {answer: [text: Yes.]}]")
		if tt.fails {
			script.Turns = script.Turns[:1]
		}
		s, url := modeltest.Start(t, script)
		m, err := provider.Open("openai/x", provider.Options{BaseURL: url + "/v1", Env: noEnv, Info: withWindow, Retry: tt.retry})
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Generate(t.Context(), hello, nil)
		if n := len(s.Requests()); (err != nil) != tt.fails || n != map[bool]int{true: 1, false: 2}[tt.fails] {
			t.Errorf("with %+v: %v, %d requests", tt.retry, err, n)
		}
	}
}

// once keeps a model from retrying, so that a test sees each answer of the server.
var once = &model.RetryOptions{Attempts: 1}
