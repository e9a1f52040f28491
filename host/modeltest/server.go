package modeltest

import (
	"encoding/json"
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
	"github.com/patchbay-dev/patchbay/host/provider"
)

// maxBody bounds a request, in bytes.
const maxBody = 64 << 20

// Server answers requests of the three APIs by a script: POST /v1/chat/completions, /v1/responses
// and /v1/messages. It is safe for concurrent use.
type Server struct {
	script *Script

	mu       sync.Mutex
	key      string    // required API key, empty: any or none; guarded by mu
	next     int       // turn; guarded by mu
	ids      int       // ids used so far; guarded by mu
	requests []Request // guarded by mu
	errs     []error   // guarded by mu
}

// Handler returns a server for a script, which must not be used elsewhere.
func Handler(script *Script) *Server { return &Server{script: script} }

// Start serves a script until the test ends, and returns the URL at which the server listens: add
// /v1 for the APIs of OpenAI. The test fails if a request fits no turn or is at fault, or a turn
// is unused.
func Start(t testing.TB, script *Script) (*Server, string) {
	t.Helper()
	s := Handler(script)
	listener := httptest.NewServer(s)
	t.Cleanup(func() {
		listener.CloseClientConnections()
		listener.Close()
		if err := s.Err(); err != nil {
			t.Errorf("modeltest: %v", err)
		}
	})
	return s, listener.URL
}

// Open starts a server and opens a model on it that accepts images and files. api is "chat",
// "responses", "messages" or "text", as [provider.Options.API]. Nothing is retried: a test that wants that wraps
// the model with [model.Retry].
func Open(t testing.TB, api string, script *Script) model.Model {
	t.Helper()
	s, url := Start(t, script)
	const key = "key-of-the-test"
	s.Require(key)
	m, err := OpenAt(url, api, key)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// OpenAt opens a model on the server at url.
func OpenAt(url, api, key string) (model.Model, error) {
	name := map[string]string{"chat": "openai", "responses": "openai-responses", "messages": "anthropic", "text": "text"}[api]
	return provider.Open(name+"/scripted", provider.Options{
		BaseURL: url + "/v1",
		Key:     key,
		Env:     func(string) string { return "" },
		Info:    func(i *model.Info) { i.Images, i.Files, i.Window = true, true, 100_000 },
		Retry:   &model.RetryOptions{Attempts: 1},
	})
}

// Require sets the API key that requests must have from now on. Before that, the key is not
// checked.
func (s *Server) Require(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

func (s *Server) lets(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.key == "" || key == s.key
}

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Err returns the faults of requests, and the unused turns.
func (s *Server) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := append([]error(nil), s.errs...)
	for i := s.next; i < len(s.script.Turns); i++ {
		errs = append(errs, fmt.Errorf("turn %d was not asked for: %+v", i+1, s.script.Turns[i].When))
	}
	return errors.Join(errs...)
}

// api holds the differences between the APIs.
type api interface {
	// read checks a request as the real server does.
	read(body []byte, h http.Header) (*Request, error)
	// events returns an answer as the events of a stream.
	events(a *answer) []event
	// whole returns an answer as one object.
	whole(a *answer) any
	// fail returns an error in two forms, both as the real server writes them: the body of a
	// response, and an event of a stream.
	fail(kind, message string) (any, event)
}

// event is an event of a stream.
type event struct {
	name string // empty: none
	data any    // a string is sent as it is
}

// answer is an answer to write.
type answer struct {
	*Turn
	id, model string
	usageOf   bool // a chat wants the usage in its stream
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var a api
	switch strings.TrimPrefix(r.URL.Path, "/v1") {
	case "/chat/completions":
		a = chatAPI{}
	case "/responses":
		a = responsesAPI{}
	case "/messages":
		a = messagesAPI{}
	}
	if a == nil || r.Method != http.MethodPost {
		http.Error(w, `{"error":{"message":"Unknown request URL","type":"invalid_request_error"}}`, http.StatusNotFound)
		return
	}
	if key := r.Header.Get("X-Api-Key") + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); !s.lets(key) {
		s.refuse(w, a, http.StatusUnauthorized, "authentication_error", "invalid x-api-key")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		s.refuse(w, a, http.StatusRequestEntityTooLarge, "request_too_large", err.Error())
		return
	}
	req, err := a.read(body, r.Header)
	if err != nil {
		s.fault(fmt.Errorf("a request is at fault: %w: %s", err, body))
		s.refuse(w, a, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	req.Body = body
	turn, id, err := s.turn(req)
	if err != nil {
		s.fault(err)
		s.refuse(w, a, http.StatusBadRequest, "invalid_request_error", err.Error())
		return
	}
	if req.API == "text" {
		turn = inText(turn)
	}
	s.write(w, r, a, req, &answer{Turn: turn, id: id, model: req.Model})
}

// turn finds the turn of a request.
func (s *Server) turn(req *Request) (*Turn, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, *req)
	s.ids++
	id := fmt.Sprintf("%d", s.ids)
	give := func(t Turn) (*Turn, string, error) {
		t.Answer = append([]Piece(nil), t.Answer...)
		for i, p := range t.Answer {
			if p.Call != nil {
				c := *p.Call
				c.id = fmt.Sprintf("call_%s_%d", id, i)
				t.Answer[i].Call = &c
			}
		}
		return &t, id, nil
	}
	why := "no turn is left"
	if s.next < len(s.script.Turns) {
		t := s.script.Turns[s.next]
		if why = t.When.unfit(req); why == "" {
			s.next++
			return give(t)
		}
		why = fmt.Sprintf("it does not fit turn %d: %s", s.next+1, why)
	}
	for _, t := range s.script.Rules {
		if t.When.unfit(req) == "" {
			return give(t)
		}
	}
	if s.script.Answer != nil {
		return give(s.script.Answer(req))
	}
	if len(s.script.Rules) > 0 {
		why += fmt.Sprintf("; nor does it fit one of the %d rules", len(s.script.Rules))
	}
	return nil, "", fmt.Errorf("unexpected request: %s; the last text of the user is %q, the last results are %s", why, cut(req.User()), cut(fmt.Sprintf("%q", req.Results())))
}

func (s *Server) fault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.errs = append(s.errs, err)
}

func (s *Server) refuse(w http.ResponseWriter, a api, status int, kind, message string) {
	body, _ := a.fail(kind, message)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// write sends an answer with its fault.
func (s *Server) write(w http.ResponseWriter, r *http.Request, a api, req *Request, ans *answer) {
	f := ans.Fault
	if f == nil {
		f = &Fault{}
	}
	switch {
	case f.HTML:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<!doctype html><title>Welcome</title>")
		return
	case f.Status != 0:
		if f.After > 0 {
			w.Header().Set("Retry-After-Ms", fmt.Sprint(f.After.Milliseconds()))
		}
		s.refuse(w, a, f.Status, or(f.Code, kindOf(f.Status)), or(f.Message, http.StatusText(f.Status)))
		return
	case !req.Stream:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a.whole(ans))
		return
	}
	ans.usageOf = strings.Contains(string(req.Body), `"include_usage":true`)
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	events := a.events(ans)
	broken := f.Event || f.Cut || f.Hang || f.Garbage
	for i, e := range events {
		if broken && closing(e) {
			break
		}
		if i > 0 && f.Slow > 0 {
			select {
			case <-time.After(f.Slow):
			case <-r.Context().Done():
				return
			}
		}
		send(w, e)
	}
	switch {
	case f.Event:
		code := or(f.Code, "overloaded_error")
		_, e := a.fail(code, or(f.Message, code))
		send(w, e)
	case f.Garbage:
		send(w, event{name: "message_delta", data: `{"garbage`})
	case f.Hang:
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	case f.Cut:
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// closing reports whether an event ends an answer or its last piece.
func closing(e event) bool {
	if e.data == "[DONE]" {
		return true
	}
	data, _ := e.data.(object)
	switch data["type"] {
	case "message_delta", "message_stop", "response.completed", "response.incomplete", "content_block_stop", "response.output_item.done", "response.output_text.done", "response.function_call_arguments.done", "response.content_part.done":
		return true
	}
	choices, _ := data["choices"].([]object)
	return len(choices) > 0 && choices[0]["finish_reason"] != nil
}

func send(w http.ResponseWriter, e event) {
	data, ok := e.data.(string)
	if !ok {
		text, err := json.Marshal(e.data)
		if err != nil {
			panic(err) // it consists of values that json can encode
		}
		data = string(text)
	}
	if e.name != "" {
		fmt.Fprintf(w, "event: %s\n", e.name)
	}
	fmt.Fprintf(w, "data: %s\n\n", data)
	_ = http.NewResponseController(w).Flush()
}

// inText writes the calls of an answer as text.
func inText(t *Turn) *Turn {
	out := *t
	out.Answer = nil
	for _, p := range t.Answer {
		if p.Call != nil {
			name, _ := json.Marshal(p.Call.Name)
			p = Piece{Text: fmt.Sprintf("\n```json\n{\"tool\": %s, \"arguments\": %s}\n```\n", name, model.Arguments(p.Call.arguments()))}
		}
		out.Answer = append(out.Answer, p)
	}
	return &out
}

// pieces splits a text as models do.
func pieces(text string) []string {
	var all []string
	for start, i := 0, 0; i < len(text); i++ {
		if i+1 == len(text) || text[i+1] == ' ' || i-start > 12 && text[i+1] < 0x80 {
			all = append(all, text[start:i+1])
			start = i + 1
		}
	}
	return all
}

// calls reports whether an answer has calls.
func (a *answer) calls() bool {
	for _, p := range a.Answer {
		if p.Call != nil {
			return true
		}
	}
	return false
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// kindOf returns the type of the error for a status.
func kindOf(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// object is a JSON object.
type object = map[string]any
