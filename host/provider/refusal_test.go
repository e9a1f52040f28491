package provider_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider"
)

// A refusing server refuses a request that has the text has with an error, and answers others.
type refusing struct {
	t      *testing.T
	answer string
	refuse []refusedText
	sent   []string
}

type refusedText struct {
	has, not string // in the request; not may be empty
	status   int
	body     string
}

func (s *refusing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || !json.Valid(body) {
		s.t.Errorf("the request is %s: %v", body, err)
	}
	s.sent = append(s.sent, string(body))
	w.Header().Set("Content-Type", "application/json")
	for _, f := range s.refuse {
		if strings.Contains(string(body), f.has) && (f.not == "" || !strings.Contains(string(body), f.not)) {
			w.WriteHeader(f.status)
			fmt.Fprint(w, f.body)
			return
		}
	}
	fmt.Fprint(w, s.answer)
}

const (
	hiChat      = `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`
	hiResponses = `{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"hi"}]}]}`
	hiMessages  = `{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}`
)

// A parameter that a server refuses, in its own words, is left out or renamed once, and from then on.
func TestRefusedParameters(t *testing.T) {
	warm := 0.5
	for _, tt := range []struct {
		about, name, answer string
		refuse              []refusedText
		last                []string // in the last request
		not                 []string // not in it
	}{
		{"Azure", "openai/mine", hiChat, []refusedText{
			{`"max_tokens"`, "", 400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error","param":"max_tokens","code":"unsupported_parameter"}}`},
			{`"temperature"`, "", 400, `{"error":{"message":"Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`},
		}, []string{`"max_completion_tokens":7`, `"stop":["END"]`, `"stream_options"`}, []string{`"max_tokens"`, `"temperature"`}},
		{"an old proxy before a new model", "openai/gpt-5", hiChat, []refusedText{
			{`"max_completion_tokens"`, "", 400, `{"error":{"message":"Unrecognized request argument supplied: max_completion_tokens","type":"invalid_request_error"}}`},
		}, []string{`"max_tokens":7`}, []string{"max_completion_tokens"}},
		{"a server without a maximum", "openai/x", hiChat, []refusedText{
			{`"max_tokens"`, "", 400, `{"error":"unknown field \"max_tokens\""}`},
			{`"max_completion_tokens"`, "", 400, `{"error":"unknown field \"max_completion_tokens\""}`},
		}, []string{`"temperature"`}, []string{`"max_`}},
		{"Mistral", "openai/x", hiChat, []refusedText{
			{`"stream_options"`, "", 422, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted","input":{"include_usage":true}}]}`},
		}, []string{`"max_tokens":7`, `"stream":true`}, []string{"stream_options"}},
		{"Databricks", "openai/x", hiChat, []refusedText{
			{`"stream_options"`, "", 400, `{"error_code":"BAD_REQUEST","message":"Bad request: json: unknown field \"stream_options\""}`},
		}, nil, []string{"stream_options"}},
		{"Gemini", "openai/x", hiChat, []refusedText{
			{`"stop"`, "", 400, `{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"stop\": Cannot find field.","status":"INVALID_ARGUMENT"}}`},
		}, nil, []string{`"stop"`}},
		{"a server without schemas", "openai/x", hiChat, []refusedText{
			{`"response_format"`, "", 400, `{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error"}}`},
		}, []string{`fits this JSON Schema: {\"type\":\"object\"`}, []string{`"response_format"`}},
		{"a server of Responses without schemas", "openai-responses/x", hiResponses, []refusedText{
			{`"text":{`, "", 400, `{"error":{"message":"Unknown parameter: 'text'."}}`},
		}, []string{`fits this JSON Schema: {\"type\":\"object\"`, `"max_output_tokens":16`}, []string{`"text":{`}},
		{"a server of Messages without schemas", "anthropic/x", hiMessages, []refusedText{
			{`"output_config"`, "", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"output_config: Extra inputs are not permitted"}}`},
			{`"temperature"`, "", 400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"`temperature` is deprecated for this model.\"}}"},
		}, []string{`fits this JSON Schema: {\"type\":\"object\"`, `"max_tokens":7`}, []string{"output_config", `"temperature"`}},
	} {
		t.Run(tt.about, func(t *testing.T) {
			s := &refusing{t: t, answer: tt.answer, refuse: tt.refuse}
			srv := httptest.NewServer(s)
			defer srv.Close()
			m, err := provider.Open(tt.name, provider.Options{BaseURL: srv.URL, Env: noEnv, Retry: once, Info: withWindow})
			if err != nil {
				t.Fatal(err)
			}
			req := &model.Request{Messages: hello.Messages, Parameters: model.Parameters{MaxTokens: 7}, Stop: []string{"END"}, Schema: json.RawMessage(`{"type":"object","additionalProperties":false}`)}
			if tt.name != "openai/gpt-5" {
				req.Temperature = &warm
			}
			want := len(tt.refuse) + 1
			for range 3 {
				if resp, err := m.Generate(t.Context(), req, nil); err != nil || resp.Message.Text() != "hi" || len(s.sent) != want {
					t.Fatalf("Generate = %+v, %v after %d requests, want %d", resp, err, len(s.sent), want)
				}
				want++
				last := s.sent[len(s.sent)-1]
				for _, text := range tt.last {
					if !strings.Contains(last, text) {
						t.Errorf("at last was sent %s, want %s in it", last, text)
					}
				}
				for _, text := range tt.not {
					if strings.Contains(last, text) {
						t.Errorf("at last was sent %s, want no %s in it", last, text)
					}
				}
			}
		})
	}
}

// A member that a server has sent itself and then refuses is left out, and a server that wants the
// thoughts of calls that another model made gets some.
func TestRefusedMembers(t *testing.T) {
	call := func(o *model.Opaque) []model.Message {
		return []model.Message{model.UserText("hello"),
			{Role: model.Assistant, Parts: []model.Part{{Call: &model.Call{ID: "1", Name: "add", Arguments: json.RawMessage(`{}`), Opaque: o}}}},
			{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: "1", Name: "add"}}}}}
	}
	s := &refusing{t: t, answer: hiChat, refuse: []refusedText{
		{`"of_today"`, "", 400, `{"error":{"message":"'messages.1' : for 'role:assistant' the following must be satisfied[('messages.1.tool_calls.0' : property 'of_today' is unsupported)]","type":"invalid_request_error"}}`},
		{`"tool_calls"`, `"reasoning_content":" "`, 400, `{"error":{"message":"thinking is enabled but reasoning_content is missing in assistant tool call message at index 1","type":"invalid_request_error"}}`},
	}}
	srv := httptest.NewServer(s)
	defer srv.Close()
	m, err := provider.Open("openai/x", provider.Options{BaseURL: srv.URL, Env: noEnv, Retry: once, Info: withWindow})
	if err != nil {
		t.Fatal(err)
	}
	host := strings.TrimPrefix(srv.URL, "http://")
	for i, o := range []*model.Opaque{nil, {Provider: "chat@" + host, Data: json.RawMessage(`{"of_today":1,"signature":"s"}`)}} {
		resp, err := m.Generate(t.Context(), &model.Request{Messages: call(o), Tools: tools}, nil)
		if err != nil || resp.Message.Text() != "hi" || len(s.sent) != 2*(i+1) {
			t.Fatalf("Generate = %+v, %v after %d requests, want %d", resp, err, len(s.sent), 2*(i+1))
		}
	}
	if last := s.sent[3]; strings.Contains(last, "of_today") || !strings.Contains(last, `"signature":"s"`) {
		t.Errorf("at last was sent %s, want the signature alone", last)
	}
}

// Other errors are returned at once, and later requests leave out nothing. The same holds for the
// refusal of a parameter that a person has set, and of a member that makes the request.
func TestOtherRefusals(t *testing.T) {
	for _, says := range []string{
		"Invalid schema for function 'temperature': unsupported keyword",
		"max_tokens is too large: 7. This model supports at most 5 completion tokens.",
		"the model is not supported", "messages: unknown role", "Unknown parameter: 'top_p'",
	} {
		s := &refusing{t: t, answer: hiChat, refuse: []refusedText{{`"x"`, "", 400, `{"error":{"message":"` + says + `"}}`}}}
		srv := httptest.NewServer(s)
		defer srv.Close()
		warm := 0.5
		m, err := provider.Open("openai/x", provider.Options{BaseURL: srv.URL, Env: noEnv, Retry: once, Info: withWindow, Parameters: map[string]json.RawMessage{"top_p": json.RawMessage("0.5")}})
		if err != nil {
			t.Fatal(err)
		}
		req := &model.Request{Messages: hello.Messages, Parameters: model.Parameters{MaxTokens: 7, Temperature: &warm}}
		for range 2 {
			var e *model.Error
			if _, err := m.Generate(t.Context(), req, nil); !errors.As(err, &e) || e.Kind != model.Rejected {
				t.Errorf("%s: Generate = %v, want an error of kind %q", says, err, model.Rejected)
			}
		}
		if first, last := s.sent[0], s.sent[len(s.sent)-1]; len(s.sent) > 4 || !strings.Contains(says, "'temperature'") && (len(s.sent) != 2 || first != last) {
			t.Errorf("%s: was sent\n%s", says, strings.Join(s.sent, "\n"))
		}
		s.refuse = nil
		if _, err := m.Generate(t.Context(), req, nil); err != nil || s.sent[len(s.sent)-1] != s.sent[0] {
			t.Errorf("%s: at last was sent\n%s\nat first\n%s", says, s.sent[len(s.sent)-1], s.sent[0])
		}
	}
}

// A reasoning model of OpenAI gets the same parameters wherever it is served.
func TestParametersByModel(t *testing.T) {
	warm := 0.5
	req := &model.Request{Messages: hello.Messages, Parameters: model.Parameters{MaxTokens: 7, Temperature: &warm}, Stop: []string{"END"}}
	for name, reasons := range map[string]bool{"openai/gpt-5-mini": true, "openai/openai/gpt-5": true, "openai/o3": true, "openai/azure/o4-mini": true,
		"openai/gpt-4o": false, "openai/gpt-5-chat-latest": false, "openai/openai/gpt-oss-20b": false, "openai/qwen3": false} {
		got, _ := json.Marshal(body(t, name, provider.Options{}, req))
		for _, text := range []string{`"max_tokens"`, `"temperature"`, `"stop"`} {
			if bytes.Contains(got, []byte(text)) == reasons {
				t.Errorf("%s: was sent %s", name, got)
			}
		}
		if bytes.Contains(got, []byte(`"max_completion_tokens":7`)) != reasons {
			t.Errorf("%s: was sent %s", name, got)
		}
	}
}
