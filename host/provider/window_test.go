package provider_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/host/provider"
)

// telling is a model server that tells the window of its models in some places.
type telling struct {
	places map[string]string // answers by path; the others are 404
	hang   bool              // those that are not in places never answer

	mu   sync.Mutex
	seen []string // guarded by mu
}

func (s *telling) start(t *testing.T) (url string) {
	t.Helper()
	answers := modeltest.Handler(modeltest.MustParse("rules: [{answer: [text: Hello.]}]"))
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/v1/chat/completions") || strings.HasSuffix(r.URL.Path, "/v1/messages") {
			r.URL.Path = r.URL.Path[strings.Index(r.URL.Path, "/v1"):]
			answers.ServeHTTP(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.seen = append(s.seen, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization")+string(body))
		s.mu.Unlock()
		text, ok := s.places[r.URL.Path]
		switch {
		case ok:
			fmt.Fprint(w, text)
		case s.hang:
			<-r.Context().Done()
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(func() {
		at.CloseClientConnections()
		at.Close()
	})
	return at.URL
}

// Each server tells the window in its own way.
func TestWindowIsAsked(t *testing.T) {
	const path = "/api" // as OpenRouter
	for _, tt := range []struct {
		server, path string
		places       map[string]string
		want         int
	}{
		{"vLLM", "", map[string]string{"/v1/models": `{"object":"list","data":[{"id":"other","max_model_len":9999},{"id":"a/m:1","object":"model","max_model_len":4096}]}`}, 4096},
		{"OpenRouter", path, map[string]string{path + "/v1/models": `{"data":[{"id":"a/m:1","context_length":131072,"top_provider":{"context_length":null}}]}`}, 131072},
		{"a bare list", "", map[string]string{"/v1/models": `[{"id":"a/m:1","context_length":8192}]`}, 8192},
		{"LM Studio", "", map[string]string{
			"/v1/models":     `{"data":[{"id":"a/m:1","object":"model"}]}`,
			"/api/v0/models": `{"data":[{"id":"a/m:1","state":"loaded","max_context_length":32768,"loaded_context_length":4096}]}`,
		}, 4096},
		{"LM Studio, not loaded", "", map[string]string{"/api/v0/models": `{"data":[{"id":"a/m:1","max_context_length":32768}]}`}, 32768},
		{"llama.cpp", "", map[string]string{
			"/v1/models": `{"data":[{"id":"/models/m.gguf","meta":{"n_ctx_train":131072}}]}`,
			"/props":     `{"default_generation_settings":{"id":0,"n_ctx":8192},"total_slots":1}`,
		}, 8192},
		{"Ollama", "", map[string]string{"/api/show": `{"model_info":{"general.architecture":"llama","llama.context_length":131072,"llama.embedding_length":4096}}`}, 131072},
		{"Ollama with num_ctx", "", map[string]string{"/api/show": `{"parameters":"stop \"<|eot_id|>\"\nnum_ctx                        16384\n","model_info":{"llama.context_length":131072}}`}, 16384},
		{"Ollama, loaded", "", map[string]string{
			"/api/show": `{"model_info":{"llama.context_length":131072}}`,
			"/api/ps":   `{"models":[{"name":"a/m:1","model":"a/m:1","context_length":4096}]}`,
		}, 4096},
		{"nobody", "", nil, 0},
		{"another model", "", map[string]string{"/v1/models": `{"data":[{"id":"b","max_model_len":4096}]}`}, 0},
		{"nonsense", "", map[string]string{"/v1/models": `[{"id":"a/m:1","context_length":-5},{"id":"a/m:1","context_length":"many"},7]`, "/props": `{`, "/api/show": `[]`, "/api/ps": `{"models":{}}`}, 0},
	} {
		t.Run(tt.server, func(t *testing.T) {
			s := &telling{places: tt.places}
			m, err := provider.Open("openai/a/m:1", provider.Options{BaseURL: s.start(t) + tt.path + "/v1", Key: "k", Env: noEnv, Retry: once})
			if err != nil {
				t.Fatal(err)
			}
			m = model.Retry(m, nil)
			if got := m.Info().Window; got != 0 || s.seen != nil {
				t.Errorf("before the first request: window %d, requests %q", got, s.seen)
			}
			for range 2 {
				if _, err := m.Generate(t.Context(), hello, nil); err != nil {
					t.Fatal(err)
				}
				if got := m.Info().Window; got != tt.want {
					t.Errorf("the window is %d, want %d; asked %q", got, tt.want, s.seen)
				}
			}
			if len(s.seen) != 5 || !strings.Contains(strings.Join(s.seen, "\n"), `POST `+tt.path+`/api/show Bearer k{"model":"a/m:1"}`) {
				t.Errorf("asked %q, want five places, once", s.seen)
			}
		})
	}
}

// A window that is known is not asked for. The names of models that a provider serves are known.
func TestKnownWindowIsNotAsked(t *testing.T) {
	s := &telling{places: map[string]string{"/v1/models": `{"data":[{"id":"m","max_model_len":4096},{"id":"claude-x","max_model_len":4096}]}`}}
	url := s.start(t)
	for name, want := range map[string]int{"openai/m": 10_000, "anthropic/claude-x": 200_000} {
		o := provider.Options{BaseURL: url + "/v1", Env: noEnv, Retry: once}
		if name == "openai/m" {
			o.Info = func(i *model.Info) { i.Window = want }
		}
		m, err := provider.Open(name, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Generate(t.Context(), hello, nil); err != nil {
			t.Fatal(err)
		}
		if got := m.Info().Window; got != want || s.seen != nil {
			t.Errorf("%s: window %d, want %d; asked %q", name, got, want, s.seen)
		}
	}
}

// A server that does not answer the question delays the first answer by two seconds at most, and
// is not asked again.
func TestWindowHangs(t *testing.T) {
	s := &telling{hang: true}
	m, err := provider.Open("openai/m", provider.Options{BaseURL: s.start(t) + "/v1", Env: noEnv, Retry: once})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		began := time.Now()
		if resp, err := m.Generate(t.Context(), hello, nil); err != nil || resp.Message.Text() != "Hello." {
			t.Errorf("Generate = %+v, %v", resp, err)
		}
		if took := time.Since(began); took > 20*time.Second { // with room for a loaded machine
			t.Errorf("it took %v", took)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) > 5 {
		t.Errorf("asked %q, want each place once at most", s.seen)
	}
}

// A model that could not be reached is asked later.
func TestWindowOfAServerThatStarts(t *testing.T) {
	s := &telling{places: map[string]string{"/v1/models": `{"data":[{"id":"m","max_model_len":4096}]}`}}
	url := s.start(t)
	up := false
	m, err := provider.Open("openai/m", provider.Options{BaseURL: url + "/v1", Env: noEnv, Retry: once, HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		if !up {
			return nil, io.ErrUnexpectedEOF
		}
		return http.DefaultTransport.RoundTrip(r)
	})}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), hello, nil); err == nil {
		t.Fatal("an answer came from nowhere")
	}
	up = true
	if _, err := m.Generate(t.Context(), hello, nil); err != nil || m.Info().Window != 4096 {
		t.Errorf("Generate = %v; window %d, want 4096", err, m.Info().Window)
	}
}

// "Too long" is recognized in the words of each server, and the window that they name is the window
// of the model from then on.
func TestTooLongInTheWordsOfServers(t *testing.T) {
	openAI := func(message string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":"invalid_request_error","param":"messages","code":null}}`, message)
	}
	for _, tt := range []struct {
		server, body string
		window       int // 0: it is not named
	}{
		{"OpenAI", `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 10021 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 8192},
		{"OpenAI, Responses", `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`, 0},
		{"vLLM", `{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5120 tokens (4096 in the messages, 1024 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`, 4096},
		{"LM Studio", openAI("Trying to keep the first 6001 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"), 4096},
		{"Ollama", openAI("the input length exceeds the context length"), 0},
		{"Anthropic", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`, 200000},
		{"Anthropic, with the answer", "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 180000 + 32000 > 200000, decrease input length or `max_tokens` and try again\"}}", 200000},
		{"llama.cpp", `{"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"exceed_context_size_error","n_prompt_tokens":5011,"n_ctx":4096}}`, 4096},
		{"llama.cpp, newer", openAI("request (5011 tokens) exceeds the available context size (4096 tokens), try increasing it"), 4096},
		{"Gemini", `{"error":{"code":400,"message":"The input token count (1250000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, 1048576},
		{"Moonshot", `{"error":{"message":"Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)","type":"invalid_request_error"}}`, 262144},
		{"xAI", `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}`, 131072},
		{"Bedrock", `{"message":"Input is too long for requested model."}`, 0},
		{"Mistral", `{"object":"error","message":"Prompt contains 40021 tokens and 0 draft tokens, too large for model with 32768 maximum context length","type":"invalid_request_prompt","code":null}`, 32768},
	} {
		t.Run(tt.server, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/api/show") {
					http.NotFound(w, r)
					return
				}
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprint(w, tt.body)
			}))
			defer s.Close()
			for _, name := range []string{"openai/m", "openai-responses/m", "anthropic/m", "text/m"} {
				for known, want := range map[int]int{0: tt.window, 1000: 1000, 2_000_000: tt.window} {
					if known > 0 && tt.window == 0 {
						want = known
					}
					m, err := provider.Open(name, provider.Options{BaseURL: s.URL + "/v1", Env: noEnv, Retry: once, Info: func(i *model.Info) { i.Window = known }})
					if err != nil {
						t.Fatal(err)
					}
					m = model.Retry(m, nil)
					var e *model.Error
					if _, err := m.Generate(t.Context(), hello, nil); !errors.As(err, &e) || e.Kind != model.TooLong {
						t.Errorf("%s: Generate = %v, want an error of kind %q", name, err, model.TooLong)
					}
					if got := m.Info().Window; got != want {
						t.Errorf("%s: the window is %d after it was %d, want %d", name, got, known, want)
					}
				}
			}
		})
	}
}
