package recording_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/host/provider"
	"github.com/patchbay-dev/patchbay/host/provider/recording"
)

const script = `
rules:
  - when: {results: {c_add: "7"}}
    answer: [text: It is 7.]
  - when: {user: add, length: 0}
    answer: [call: {name: c_add, arguments: {n: 3}}, text: "Let me see, secret-1."]
`

// transport is an [http.RoundTripper].
type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// talk has two turns with a model: a question, and the result of the call that it makes.
func talk(t *testing.T, m model.Model, question, result string) (string, error) {
	t.Helper()
	req := &model.Request{
		System:   strings.Repeat("A long text. ", 1000),
		Messages: []model.Message{model.UserText(question)},
		Tools:    []model.Tool{{Name: "c_add", Description: "Adds.", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"number"}}}`)}},
	}
	first, err := m.Generate(t.Context(), req, nil)
	if err != nil {
		return "", err
	}
	var call *model.Call
	for _, p := range first.Message.Parts {
		if p.Call != nil {
			call = p.Call
		}
	}
	if call == nil {
		t.Fatalf("no call: %+v", first.Message)
	}
	req.Messages = append(req.Messages, first.Message, model.Message{Role: model.User, Parts: []model.Part{{Result: &model.Result{ID: call.ID, Name: call.Name, Parts: []model.Part{{Text: result}}}}}})
	second, err := m.Generate(t.Context(), req, nil)
	if err != nil {
		return "", err
	}
	return second.Message.Text(), nil
}

// A conversation over each API is given again without the model and its key; results of tools may differ, nothing else.
func TestRecording(t *testing.T) {
	web := httptest.NewServer(modeltest.Handler(modeltest.MustParse(script)))
	defer web.Close()
	clean := recording.Options{Redact: func(s string) string { return strings.ReplaceAll(s, "secret-1", "-----") }}
	for _, api := range []string{"chat", "responses", "messages"} {
		t.Run(api, func(t *testing.T) {
			open := func(way http.RoundTripper, key string) model.Model {
				m, err := provider.Open("openai/m", provider.Options{API: api, BaseURL: web.URL + "/v1", Key: key, HTTPClient: &http.Client{Transport: way}})
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			path := filepath.Join(t.TempDir(), "model.jsonl")
			w, err := recording.Create(path, clean)
			if err != nil {
				t.Fatal(err)
			}
			if said, err := talk(t, open(w, "the-key"), "add", "7"); err != nil || said != "It is 7." {
				t.Fatalf("%q, %v", said, err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"the-key", "secret-1", "A long text. A long", "127.0.0.1"} {
				if strings.Contains(string(data), part) {
					t.Errorf("the recording has %q:\n%s", part, data)
				}
			}
			p, err := recording.Open(path, clean)
			if err != nil {
				t.Fatal(err)
			}
			for i, tt := range []struct {
				question, result, want string
				similar                int
			}{
				{"add", "7", "It is 7.", 0},
				{"add", "7", "It is 7.", 0}, // from the first again
				{"add", "8", "It is 7.", 1}, // the result of a tool is another one
				{"subtract", "7", "not recorded: model.jsonl has no answer to this request: the nearest one differs in ", 1},
			} {
				said, err := talk(t, open(p, ""), tt.question, tt.result)
				var e *model.Error
				if errors.As(err, &e) && e.Kind == recording.NotRecorded && e.Model == "m" {
					said = err.Error()
				} else if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(said, tt.want) || p.Similar() != tt.similar {
					t.Errorf("%d: %q with %d similar requests, want %q with %d", i, said, p.Similar(), tt.want, tt.similar)
				}
				if i == 3 && !strings.Contains(said, "content") { // messages[1].content, or as the API has it
					t.Errorf("the place of the difference is missing: %s", said)
				}
			}
			if n := p.Unused(); n != 0 {
				t.Errorf("%d answers were not used", n)
			}
		})
	}
}

// Answers that a program asks for again are not recorded, nor those that are not complete; those that end after their reader
// are.
func TestWhatIsNotRecorded(t *testing.T) {
	answer := func(status int, body io.Reader) transport {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body), Request: r}, nil
		}
	}
	for name, tt := range map[string]struct {
		way  transport
		read int64 // bytes; -1: all
		want int   // lines
	}{
		"a whole answer":       {answer(200, strings.NewReader("data: 1\n\ndata: [DONE]\n\n")), -1, 2},
		"the rest is empty":    {answer(200, strings.NewReader("data: 1\n\ndata: [DONE]\n\n")), 20, 2},
		"it breaks off":        {answer(200, io.MultiReader(strings.NewReader("data: 1\n\n"), broken{})), -1, 1},
		"too many requests":    {answer(429, strings.NewReader("{}")), -1, 1},
		"an overloaded server": {answer(529, strings.NewReader("{}")), -1, 1},
		"a refusal":            {answer(400, strings.NewReader("{}")), -1, 2},
		"the rest is long":     {answer(200, io.MultiReader(strings.NewReader("data: 1\n\n"), zeros{})), 5, 1},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "m.jsonl")
			w, err := recording.Create(path, recording.Options{Transport: tt.way})
			if err != nil {
				t.Fatal(err)
			}
			req, err := http.NewRequestWithContext(t.Context(), "POST", "http://127.0.0.1/v1/chat", strings.NewReader(`{"a":1}`))
			if err != nil {
				t.Fatal(err)
			}
			res, err := w.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			if tt.read < 0 {
				_, _ = io.ReadAll(res.Body) // the broken one fails
			} else if _, err := io.CopyN(io.Discard, res.Body, tt.read); err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			data, err := os.ReadFile(path)
			if got := strings.Count(string(data), "\n"); err != nil || got != tt.want {
				t.Errorf("%d lines, want %d, %v:\n%s", got, tt.want, err, data)
			}
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestFilesThatAreNone(t *testing.T) {
	for content, want := range map[string]string{
		"":                                  "has no answers",
		"{}\n":                              "is not a recording of a model",
		"tasks: []\n":                       "is not a recording of a model",
		`{"recording":"model","version":1}`: "has no answers",
		`{"recording":"model","version":2}`: "a newer program",
		"{\"recording\":\"model\",\"version\":1}\n{": "x.jsonl:2:",
	} {
		path := filepath.Join(t.TempDir(), "x.jsonl")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := recording.Open(path, recording.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): %v, want %q", content, err, want)
		}
	}
	if _, err := recording.Open(filepath.Join(t.TempDir(), "gone"), recording.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open of a missing file: %v", err)
	}
}

// A Player needs no server, even for what it does not have.
func TestPlayerSendsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.jsonl")
	if err := os.WriteFile(path, []byte("{\"recording\":\"model\",\"version\":1}\n{\"method\":\"POST\",\"path\":\"/v1/x\",\"request\":{\"b\":[1,{\"c\":\"d\"}]},\"status\":200,\"response\":\"\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := recording.Open(path, recording.Options{Transport: transport(func(*http.Request) (*http.Response, error) {
		t.Error("it asks a server")
		return nil, context.Canceled
	})})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(method, path, body string) (int, error) {
		req, err := http.NewRequestWithContext(t.Context(), method, "http://127.0.0.1:1"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := p.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		return res.StatusCode, res.Body.Close()
	}
	if status, err := ask("GET", "/v1/models", ""); status != 404 || err != nil {
		t.Errorf("GET: %d, %v", status, err)
	}
	for body, want := range map[string]string{
		`{"b":[1,{"c":"e"}]}`:       "differs in b[1].c",
		`{"b":[1]}`:                 "differs in the length of b",
		`{"b":7}`:                   "differs in b",
		`[]`:                        "differs in the body",
		`{"a":0,"b":[1,{"c":"d"}]}`: "differs in a",
	} {
		if _, err := ask("POST", "/v1/x", body); err == nil || !strings.Contains(err.Error(), want+";") {
			t.Errorf("POST %s: %v, want %q", body, err, want)
		}
	}
	if _, err := ask("POST", "/v1/y", "{}"); err == nil || !strings.Contains(err.Error(), "nothing was recorded at /v1/y") {
		t.Errorf("another path: %v", err)
	}
}
