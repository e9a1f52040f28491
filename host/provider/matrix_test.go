package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/provider"
	"github.com/patchbay-dev/patchbay/internal/providers/scripted"
)

// ofMatrix are all providers with an API of their own.
var ofMatrix = []string{"openai", "anthropic", "gemini", "azure", "bedrock", "vertex", "openrouter", "ollama",
	"lmstudio", "llamacpp", "vllm", "deepseek", "moonshot", "mistral", "xai", "groq"}

// placeOf is the environment in which each provider is asked.
var placeOf = map[string]string{"AZURE_OPENAI_ENDPOINT": "https://the-resource.openai.azure.com/", "AWS_REGION": "eu-west-1", "GOOGLE_CLOUD_PROJECT": "the-project"}

// refusedEfforts are efforts that the scripted servers refuse, in the words of each provider.
var refusedEfforts = map[string][]model.Effort{
	"openai":    {model.MaxEffort},
	"anthropic": {model.XHighEffort},
	"mistral":   {model.LowEffort, model.XHighEffort, model.MaxEffort},
	"xai":       {model.NoEffort, model.XHighEffort, model.MaxEffort},
	"groq":      {model.NoEffort, model.XHighEffort, model.MaxEffort},
}

// effortOf returns how the request of a provider says an effort.
func effortOf(name string, e model.Effort) string {
	switch {
	case e == model.NoEffort && slices.Contains([]string{"anthropic", "deepseek", "moonshot"}, name):
		return `"thinking":{"type":"disabled"}`
	case name == "anthropic":
		return `"effort":"` + string(e) + `"`
	case name == "openrouter":
		return `"reasoning":{"effort":"` + string(e) + `"}`
	}
	return `"reasoning_effort":"` + string(e) + `"`
}

// tells are the providers whose servers tell the window of a model.
var tells = []string{"anthropic", "gemini", "openrouter", "ollama", "lmstudio", "llamacpp", "vllm", "moonshot", "mistral", "groq"}

// scriptedModel opens a model by the name of its provider, whose requests go to a scripted server. Only
// requests to the address of its documentation arrive there.
func scriptedModel(t *testing.T, name string) (model.Model, *scripted.Server) {
	t.Helper()
	s := scripted.New(name)
	listener := httptest.NewServer(s)
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
	})
	m, err := provider.Open(name+"/"+scripted.Model, scriptedOptions(t, s, listener.URL))
	if err != nil {
		t.Fatal(err)
	}
	return model.Retry(m, &model.RetryOptions{Wait: 1}), s
}

func scriptedOptions(t *testing.T, s *scripted.Server, url string) provider.Options {
	host, _ := s.Address()
	return provider.Options{
		Info: func(i *model.Info) { i.Images = true },
		Env: func(name string) string {
			if strings.HasSuffix(name, "_BASE_URL") {
				return ""
			}
			if place, ok := placeOf[name]; ok {
				return place
			}
			return scripted.Key
		},
		HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host != host {
				t.Errorf("a request went to %s, want %s", r.URL.Host, host)
			}
			r.URL.Scheme, r.URL.Host = "http", strings.TrimPrefix(url, "http://")
			return http.DefaultTransport.RoundTrip(r)
		})},
	}
}

var addTool = []model.Tool{{Name: "add", Description: "Add two numbers", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}}}`)}}

// ask adds a message of the user, and messages until the model has answered it.
func ask(t *testing.T, m model.Model, req *model.Request, text string, media ...*model.Media) (*model.Response, *seen) {
	t.Helper()
	said := model.UserText(text)
	for _, medium := range media {
		said.Parts = append(said.Parts, model.Part{Media: medium})
	}
	req.Messages = append(req.Messages, said)
	for {
		shown := &seen{}
		resp, err := m.Generate(t.Context(), req, shown.emit)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if got := shown.text.String(); got != resp.Message.Text() {
			t.Errorf("%q: shown was %q, the answer is %q", text, got, resp.Message.Text())
		}
		req.Messages = append(req.Messages, resp.Message)
		calls := resp.Message.Calls()
		if len(calls) == 0 {
			return resp, shown
		}
		results := model.Message{Role: model.User}
		for _, c := range calls {
			var in struct{ A, B int }
			if err := json.Unmarshal(c.Arguments, &in); err != nil || c.Name != "add" || resp.Stop != model.StopCalls {
				t.Fatalf("%q: the call is %s %s, the answer ended with %q", text, c.Name, c.Arguments, resp.Stop)
			}
			results.Parts = append(results.Parts, model.Part{Result: &model.Result{ID: c.ID, Name: c.Name, Parts: []model.Part{{Text: fmt.Sprint(in.A + in.B)}}}})
		}
		req.Messages = append(req.Messages, results)
	}
}

// Each provider is opened by its name, and has each kind of conversation in its own wire format.
func TestMatrix(t *testing.T) {
	png := &model.Media{MIME: "image/png", Data: []byte("\x89PNG\r\n")}
	says := func(t *testing.T, resp *model.Response, want string) {
		t.Helper()
		if got := resp.Message.Text(); got != want || resp.Stop != model.StopEnd {
			t.Errorf("the answer is %q and ended with %q, want %q", got, resp.Stop, want)
		}
	}
	for _, name := range ofMatrix {
		begin := func(t *testing.T) (model.Model, *scripted.Server, *model.Request) {
			m, s := scriptedModel(t, name)
			return m, s, &model.Request{System: "Be brief.", Tools: addTool, Parameters: model.Parameters{MaxTokens: 200}}
		}
		t.Run(name, func(t *testing.T) {
			t.Run("text", func(t *testing.T) {
				m, s, req := begin(t)
				resp, shown := ask(t, m, req, scripted.Say)
				says(t, resp, scripted.Hello)
				if want := (model.Usage{Input: 20, Output: 5, Cached: 8}); resp.Usage != want {
					t.Errorf("usage %+v, want %+v", resp.Usage, want)
				}
				if thought := shown.thinking.String(); thought != "" && thought != "Hm." || strings.Contains(thought, "Hm.") != s.Thinks() {
					t.Errorf("the thought is %q", thought)
				}
				want := 0
				if slices.Contains(tells, name) {
					want = scripted.Window
				}
				if got := m.Info().Window; got != want {
					t.Errorf("the window is %d, want %d; requests: %q", got, want, s.Paths())
				}
				if len(s.Bodies()) != 1 {
					t.Errorf("%d requests: %q", len(s.Bodies()), s.Bodies())
				}
			})
			t.Run("one call", func(t *testing.T) {
				m, _, req := begin(t)
				resp, _ := ask(t, m, req, scripted.OneCall)
				says(t, resp, "It is 5.")
			})
			t.Run("parallel calls", func(t *testing.T) {
				m, _, req := begin(t)
				resp, _ := ask(t, m, req, scripted.TwoCalls)
				says(t, resp, "It is 5, 7.")
			})
			t.Run("second turn after a call", func(t *testing.T) {
				m, _, req := begin(t)
				ask(t, m, req, scripted.OneCall)
				resp, _ := ask(t, m, req, scripted.Again)
				says(t, resp, scripted.Hello)
				resp, _ = ask(t, m, req, scripted.TwoCalls)
				says(t, resp, "It is 5, 7.")
			})
			t.Run("effort", func(t *testing.T) {
				for _, effort := range []model.Effort{model.NoEffort, model.LowEffort, model.HighEffort, model.XHighEffort, model.MaxEffort} {
					m, s, req := begin(t)
					warm := 0.5
					req.Effort, req.Temperature = effort, &warm
					resp, shown := ask(t, m, req, scripted.OneCall)
					says(t, resp, "It is 5.")
					takes := !slices.Contains(refusedEfforts[name], effort)
					if bodies := s.Bodies(); takes != (len(bodies) == 2) || takes != strings.Contains(bodies[len(bodies)-1], effortOf(name, effort)) || len(shown.notes) > 0 {
						t.Errorf("effort %s: %d requests, the last is %s; noted with it: %q", effort, len(bodies), bodies[len(bodies)-1], shown.notes)
					}
				}
			})
			t.Run("image", func(t *testing.T) {
				m, _, req := begin(t)
				resp, _ := ask(t, m, req, scripted.Look, png)
				says(t, resp, scripted.Hello)
			})
			t.Run("cut answer", func(t *testing.T) {
				m, _, req := begin(t)
				if resp, _ := ask(t, m, req, scripted.Cut); resp.Stop != model.StopLength || resp.Message.Text() != "Once upon" {
					t.Errorf("the answer is %q and ended with %q", resp.Message.Text(), resp.Stop)
				}
			})
			t.Run("too long", func(t *testing.T) {
				m, _, req := begin(t)
				req.Messages = []model.Message{model.UserText(scripted.TooLong)}
				var e *model.Error
				if _, err := m.Generate(t.Context(), req, nil); !errors.As(err, &e) || e.Kind != model.TooLong {
					t.Fatalf("Generate = %v, want an error of kind %q", err, model.TooLong)
				}
				want := scripted.Window
				if name == "bedrock" { // neither tells it nor names it
					want = 0
				}
				if got := m.Info().Window; got != want {
					t.Errorf("the window is %d, want %d after %v", got, want, e)
				}
			})
			t.Run("429", func(t *testing.T) {
				m, s, req := begin(t)
				resp, shown := ask(t, m, req, scripted.Limited)
				says(t, resp, scripted.Hello)
				if len(s.Bodies()) != 2 || len(shown.again) != 1 {
					t.Errorf("%d requests; said was %q", len(s.Bodies()), shown.again)
				}
			})
			t.Run("dropped stream", func(t *testing.T) {
				m, s, req := begin(t)
				resp, _ := ask(t, m, req, scripted.Dropped)
				says(t, resp, scripted.Hello)
				if len(s.Bodies()) != 2 {
					t.Errorf("%d requests", len(s.Bodies()))
				}
			})
		})
	}
}

// The server of each provider lists its models by the names that requests have, if it has a list.
func TestModels(t *testing.T) {
	for _, name := range ofMatrix {
		s := scripted.New(name)
		listener := httptest.NewServer(s)
		got, err := provider.Models(t.Context(), name, scriptedOptions(t, s, listener.URL))
		listener.Close()
		var e *model.Error
		switch unlisted := slices.Contains([]string{"azure", "bedrock", "vertex"}, name); {
		case unlisted && (!errors.As(err, &e) || e.Kind != model.NoModel || len(s.Paths()) > 0):
			t.Errorf("Models of %s = %q, %v after %q; want no list", name, got, err, s.Paths())
		case !unlisted && (err != nil || !slices.Contains(got, scripted.Model)):
			t.Errorf("Models of %s = %q, %v; want %s", name, got, err, scripted.Model)
		}
	}
}
