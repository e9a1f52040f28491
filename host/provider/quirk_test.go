package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider"
	"github.com/patchbay-dev/patchbay/internal/providers/scripted"
)

// An answer that ends with the provider's own sign of a failure is asked for again.
func TestReasonsThatAreFailures(t *testing.T) {
	for _, name := range []string{"deepseek", "mistral", "openrouter"} {
		m, s := scriptedModel(t, name)
		resp, shown := ask(t, m, &model.Request{}, scripted.Breaks)
		if resp.Message.Text() != scripted.Hello || len(s.Bodies()) != 2 || len(shown.again) != 1 {
			t.Errorf("%s: the answer is %q after %d requests; said was %q", name, resp.Message.Text(), len(s.Bodies()), shown.again)
		}
	}
}

// A wrong key is told apart from other faults.
func TestWrongKeys(t *testing.T) {
	for _, name := range ofMatrix {
		s := scripted.New(name)
		listener := httptest.NewServer(s)
		o := scriptedOptions(t, s, listener.URL)
		o.Key = "a-wrong-key"
		m, err := provider.Open(name+"/"+scripted.Model, o)
		if err != nil {
			t.Fatal(err)
		}
		var e *model.Error
		_, err = m.Generate(t.Context(), &model.Request{Messages: []model.Message{model.UserText(scripted.Say)}}, nil)
		if s.Open() != (err == nil) || !s.Open() && (!errors.As(err, &e) || e.Kind != model.NoKey) {
			t.Errorf("%s: Generate = %v, want an error of kind %q", name, err, model.NoKey)
		}
		listener.Close()
	}
}

// foreign is a conversation with a call that another server's model has made, whose results the person
// comments.
func foreign() *model.Request {
	return &model.Request{Tools: addTool, Messages: []model.Message{
		model.UserText(scripted.OneCall),
		{Role: model.Assistant, Parts: []model.Part{{Call: &model.Call{ID: "call_of-another_server", Name: "add", Arguments: []byte(`{"a":2,"b":3}`)}}}},
		{Role: model.User, Parts: []model.Part{
			{Result: &model.Result{ID: "call_of-another_server", Name: "add", Parts: []model.Part{{Text: "5"}}}},
			{Text: scripted.Say},
		}},
	}}
}

// Mistral has its own rules for ids of calls and for the order of messages. They are known by its name;
// a server of a Mistral model without that name is understood by what it refuses.
func TestRulesOfMistral(t *testing.T) {
	m, s := scriptedModel(t, "mistral")
	resp, err := m.Generate(t.Context(), foreign(), nil)
	if err != nil || resp.Message.Text() != scripted.Hello || len(s.Bodies()) != 1 {
		t.Errorf("mistral: %+v, %v after %d requests", resp, err, len(s.Bodies()))
	}

	other := scripted.New("mistral")
	listener := httptest.NewServer(other)
	defer listener.Close()
	m, err = provider.Open("openai/"+scripted.Model, provider.Options{BaseURL: listener.URL + "/v1", Key: scripted.Key, Env: noEnv, Retry: once, Info: withWindow})
	if err != nil {
		t.Fatal(err)
	}
	for i, requests := range []int{4, 5} { // stream_options, ids, order; then none
		resp, err := m.Generate(t.Context(), foreign(), nil)
		if err != nil || resp.Message.Text() != scripted.Hello || len(other.Bodies()) != requests {
			t.Errorf("openai with a base URL, answer %d: %+v, %v after %d requests", i+1, resp, err, len(other.Bodies()))
		}
	}
}

// Failures in the words of their providers have the right kind.
func TestFailuresOfProviders(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		kind   model.Kind
		says   string
	}{
		{"moonshot", 429, `{"error":{"message":"Your account is suspended, please check your plan and billing details","type":"exceeded_current_quota_error"}}`, model.NoMoney, "billing details"},
		{"deepseek", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, model.NoMoney, "Insufficient Balance"},
		{"groq", 498, `{"error":{"message":"Flex tier capacity exceeded","type":"capacity_exceeded"}}`, model.Overloaded, "capacity"},
		{"groq", 400, `{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"{}"}}`, model.Unavailable, "Failed to call"},
		{"openrouter", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"message\":\"image input is too large\"}","provider_name":"P"}}}`, model.Rejected, "image input is too large"},
		{"ollama", 400, `{"error":{"message":"m does not support tools","type":"invalid_request_error"}}`, model.Rejected, "text/the-model with OPENAI_BASE_URL=http://127.0.0.1"},
		{"azure", 400, `{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter","status":400}}`, model.Rejected, "content management policy"},
	} {
		t.Run(fmt.Sprint(tt.name, tt.status), func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			defer s.Close()
			m, err := provider.Open(tt.name+"/the-model", provider.Options{BaseURL: s.URL + "/v1", Key: "k", Env: noEnv, Retry: once, Info: withWindow})
			if err != nil {
				t.Fatal(err)
			}
			var e *model.Error
			if _, err := m.Generate(t.Context(), hello, nil); !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Generate = %v, want an error of kind %q with %q", err, tt.kind, tt.says)
			}
		})
	}
}
