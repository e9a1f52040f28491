// Package scripted is a server for tests that speaks the wire format of each provider of language
// models, as its public documentation and issues have it: see the pages that package providers names.
// The last message decides on the answer ([Say], [OneCall] and so on), so that foreign clients can have
// the same conversations as our own. It refuses requests that the provider refuses.
package scripted

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Messages of the user, and what the server does.
const (
	Say      = "Say good day."                   // answers [Hello], after a thought if its models have some
	OneCall  = "What is 2 plus 3?"               // calls add; after the result, answers "It is RESULT."
	TwoCalls = "What are 2 plus 3 and 3 plus 4?" // calls add twice; then answers "It is RESULT, RESULT."
	Again    = "Thank you. Say good day."        // as Say
	Look     = "What is in the picture?"         // answers [Hello] if it gets the picture
	Cut      = "Tell a long story."              // an answer that is cut off
	TooLong  = "Read everything."                // refused: the request is too long for its Window
	Limited  = "Hurry. Say good day."            // refused with HTTP 429 the first time, then as Say
	Dropped  = "Hold the line. Say good day."    // the stream ends in the middle the first time, then as Say
	Breaks   = "Do your best."                   // ends with the provider's own sign of a failure, if it has one
)

const (
	Hello  = "Good day."
	Key    = "key-of-the-test"
	Window = 4096 // tokens of each model
	Model  = "the-model"
)

// Server is the server of one provider. It is safe for concurrent use.
type Server struct {
	d *dialect

	mu      sync.Mutex
	seen    map[string]int  // how often a message came; guarded by mu
	bodies  []string        // of the requests for answers; guarded by mu
	signed  map[string]bool // signatures that were sent; guarded by mu
	pathsOf []string        // guarded by mu
}

// New returns the server of a provider, or nil if there is none.
func New(provider string) *Server {
	d := dialects[provider]
	if d == nil {
		return nil
	}
	return &Server{d: d, seen: map[string]int{}, signed: map[string]bool{}}
}

// Address returns the host and the path at which the provider's documentation has its API.
func (s *Server) Address() (host, path string) { return s.d.host, s.d.path }

// Bodies returns the bodies of the requests for answers so far.
func (s *Server) Bodies() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.bodies...)
}

// Paths returns the method and path of all requests so far.
func (s *Server) Paths() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.pathsOf...)
}

// answer is what the model says.
type answer struct {
	thought, text string
	calls         []call
	finish        string // "stop", "tool_calls", "length" or the provider's own
}

type call struct{ id, name, arguments string }

// refusal is an error in place of an answer.
type refusal struct {
	status int
	body   string
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.pathsOf = append(s.pathsOf, r.Method+" "+r.URL.Path)
	s.mu.Unlock()
	if told, ok := s.d.told[r.Method+" "+r.URL.Path]; ok && r.URL.Path != s.d.path+"/models" {
		if given, want := r.Header.Get("X-Goog-Api-Key"), s.d.name == "gemini"; want && given != Key {
			s.refuse(w, *s.d.noKey)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, told)
		return
	}
	if !s.d.open && !s.d.lets(r.Header) {
		s.refuse(w, *s.d.noKey)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET " + s.d.path + "/models":
		if s.d.list == "" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, s.d.list)
	case "POST " + s.d.path + "/" + s.d.answers:
		s.mu.Lock()
		s.bodies = append(s.bodies, string(body))
		s.mu.Unlock()
		s.answer(w, r, body)
	default:
		http.NotFound(w, r)
	}
}

func (s *Server) refuse(w http.ResponseWriter, no refusal) {
	w.Header().Set("Content-Type", "application/json")
	if no.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "0.01")
	}
	w.WriteHeader(no.status)
	fmt.Fprint(w, no.body)
}

// request is a request for an answer, as far as it is read here.
type request struct {
	Model         string          `json:"model"`
	Stream        bool            `json:"stream"`
	StreamOptions json.RawMessage `json:"stream_options"`
	Messages      []message       `json:"messages"`
	Tools         []any           `json:"tools"`

	members map[string]json.RawMessage
}

type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	Calls      []struct {
		ID       string `json:"id"`
		Function struct{ Name, Arguments string }
		Extra    struct {
			Google struct {
				Signature string `json:"thought_signature"`
			} `json:"google"`
		} `json:"extra_content"`
	} `json:"tool_calls"`
	Thought *string         `json:"reasoning_content"`
	Details json.RawMessage `json:"reasoning_details"`
}

// part is a part of a content.
type part struct {
	Type, Text string
	ImageURL   struct{ URL string }        `json:"image_url"`
	Source     struct{ Type, Data string } `json:"source"`      // Messages
	ToolUseID  string                      `json:"tool_use_id"` // Messages
	Content    json.RawMessage             `json:"content"`     // Messages
	Signature  string                      `json:"signature"`   // Messages
	ID         string                      `json:"id"`          // Messages
}

func partsOf(content json.RawMessage) (parts []part) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return []part{{Type: "text", Text: text}}
	}
	_ = json.Unmarshal(content, &parts)
	return parts
}

func textOf(content json.RawMessage) (text string) {
	for _, p := range partsOf(content) {
		text += p.Text
	}
	return text
}

// answer decides what to say.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, body []byte) {
	var req request
	if err := json.Unmarshal(body, &req); err != nil || len(req.Messages) == 0 {
		s.refuse(w, s.d.refuse("the request is not understood"))
		return
	}
	_ = json.Unmarshal(body, &req.members)
	if no := s.d.check(s, &req); no != nil {
		s.refuse(w, *no)
		return
	}
	last := req.Messages[len(req.Messages)-1]
	asked := textOf(last.Content)
	s.mu.Lock()
	s.seen[asked]++
	first := s.seen[asked] == 1
	s.mu.Unlock()
	a := answer{thought: s.d.thought, text: Hello, finish: "stop"}
	results := s.d.results(&req)
	switch {
	case results != nil:
		a.text = "It is " + strings.Join(results, ", ") + "."
	case asked == TooLong:
		s.refuse(w, s.d.tooLong)
		return
	case asked == Limited && first:
		s.refuse(w, s.d.limited)
		return
	case asked == OneCall || asked == TwoCalls:
		if len(req.Tools) == 0 {
			s.refuse(w, s.d.refuse("the request has no tools"))
			return
		}
		n := len(req.Messages)
		a.text, a.finish = "", "tool_calls"
		a.calls = []call{{s.d.id(n, 0), "add", `{"a":2,"b":3}`}}
		if asked == TwoCalls {
			a.calls = append(a.calls, call{s.d.id(n, 1), "add", `{"a":3,"b":4}`})
		}
	case asked == Look:
		found := false
		for _, p := range partsOf(last.Content) {
			found = found || strings.HasPrefix(p.ImageURL.URL, "data:image/png;base64,") || p.Source.Type == "base64" && p.Source.Data != ""
		}
		if !found {
			s.refuse(w, s.d.refuse("the last message has no picture"))
			return
		}
	case asked == Cut:
		a.text, a.finish = "Once upon", "length"
		if s.d.cut != "" {
			a.finish = s.d.cut
		}
	case asked == Breaks && s.d.breaks != "" && first:
		a.text, a.finish = "Well,", s.d.breaks
	}
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.d.whole(s, &req, a))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	events := s.d.stream(s, &req, a)
	if asked == Dropped && first {
		events = events[:len(events)-3] // without the end
	}
	for _, e := range events {
		_, _ = io.WriteString(w, e)
		w.(http.Flusher).Flush()
	}
	if asked == Dropped && first {
		panic(http.ErrAbortHandler) // closes the connection
	}
}

// Thinks reports whether the models of the provider show a thought.
func (s *Server) Thinks() bool { return s.d.thought != "" }

// Open reports whether the provider needs no key.
func (s *Server) Open() bool { return s.d.open }
