package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/schema"
)

// script answers the questions from a handler with the prepared answers.
type script struct {
	t testing.TB

	mu      sync.Mutex
	answers []any    // not used yet; guarded by mu
	asked   []string // guarded by mu
	over    bool     // the test has ended; guarded by mu
}

func newScript(t testing.TB, answers []any) *script {
	s := &script{t: t, answers: answers}
	t.Cleanup(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.over = true
	})
	return s
}

// client returns a client that supports every question.
func (s *script) client() *mcp.Client {
	return &mcp.Client{Name: "mcptest", OnElicit: s.elicit, OnSample: s.sample, Roots: s.roots}
}

// used fails the test if answers are unused.
func (s *script) used() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) > 0 {
		s.t.Errorf("%d answers were not used; the first is %#v", len(s.answers), s.answers[0])
	}
}

// next returns the answer to a question.
func (s *script) next(question string) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, question)
	if len(s.answers) == 0 {
		if !s.over {
			s.t.Errorf("no answer was prepared for the question: %s", question)
		}
		return nil, errors.New("mcptest: no answer was prepared for this question")
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	return a, nil
}

// unfit fails the test for an answer of the wrong kind.
func (s *script) unfit(question string, answer any, want string) error {
	err := fmt.Errorf("mcptest: the answer %#v does not fit the question %s; use %s", answer, question, want)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.t.Error(err)
	}
	return err
}

func (s *script) questions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

func (s *script) elicit(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	question := fmt.Sprintf("elicit %q", r.Message)
	if r.URL != "" {
		question = fmt.Sprintf("visit %s: %q", r.URL, r.Message)
	}
	answer, err := s.next(question)
	if err != nil {
		return nil, err
	}
	if err, ok := answer.(error); ok {
		switch {
		case errors.Is(err, mcp.ErrDeclined):
			return &mcp.ElicitResult{Action: "decline"}, nil
		case errors.Is(err, mcp.ErrDismissed):
			return &mcp.ElicitResult{Action: "cancel"}, nil
		}
		return nil, err
	}
	if r.URL != "" {
		if answer != nil && answer != true {
			return nil, s.unfit(question, answer, "nil, true or an error")
		}
		return &mcp.ElicitResult{Action: "accept"}, nil
	}
	content, ok := formContent(r.Schema, answer)
	if !ok {
		return nil, s.unfit(question, answer, "the fields of its form, or an error")
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}

// formContent makes the values of a form from an answer: an object, or the value of its only
// field. It reports whether they fit the form.
func formContent(raw json.RawMessage, answer any) (map[string]any, bool) {
	value, err := json.Marshal(answer)
	if err != nil {
		return nil, false
	}
	form, err := schema.FormOf(raw)
	if err != nil {
		return nil, false
	}
	var values map[string]json.RawMessage
	if json.Unmarshal(value, &values) != nil || values == nil {
		if len(form.Fields) != 1 {
			return nil, false
		}
		values = map[string]json.RawMessage{form.Fields[0].Name: value}
	}
	content := map[string]any{}
	filled := form.Defaults() // the client adds these
	for k, v := range values {
		content[k], filled[k] = v, v
	}
	return content, form.Check(filled) == nil
}

func (s *script) sample(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
	var texts []string
	for _, m := range r.Messages {
		for _, c := range m.Content {
			if text, ok := c.(mcp.TextContent); ok {
				texts = append(texts, text.Text)
			}
		}
	}
	question := fmt.Sprintf("sample %q", strings.Join(texts, "\n"))
	answer, err := s.next(question)
	if err != nil {
		return nil, err
	}
	switch a := answer.(type) {
	case *mcp.SampleResult:
		return a, nil
	case string:
		return &mcp.SampleResult{Role: "assistant", Model: "mcptest", StopReason: "endTurn", Content: []mcp.Content{mcp.Text(a)}}, nil
	case error:
		return nil, a
	}
	return nil, s.unfit(question, answer, "a *mcp.SampleResult, a string or an error")
}

func (s *script) roots(context.Context) ([]mcp.Root, error) {
	answer, err := s.next("roots")
	if err != nil {
		return nil, err
	}
	switch a := answer.(type) {
	case []mcp.Root:
		return a, nil
	case error:
		return nil, a
	}
	return nil, s.unfit("roots", answer, "a []mcp.Root or an error")
}

// run is one call of a handler to its end.
type run[Out any] struct {
	out       Out
	err       error
	questions []string
}

func runOnce[In, Out any](t testing.TB, rev mcp.Revision, handler func(context.Context, In) (Out, error), in In, answers []any) run[Out] {
	t.Helper()
	s := newScript(t, answers)
	var r run[Out]
	var mu sync.Mutex // the last run of the handler counts
	srv := &mcp.Server{Name: "mcptest"}
	mcp.AddTool(srv, mcp.Tool{Name: "handler"}, func(ctx context.Context, _ struct{}) (string, error) {
		out, err := handler(ctx, in)
		mu.Lock()
		defer mu.Unlock()
		r.out, r.err = out, err
		return "", err
	})
	session := Connect(t, srv, s.client(), rev)
	res, err := session.CallTool(context.Background(), "handler", nil, mcp.IdleTimeout(-1))
	session.Close()
	mu.Lock()
	defer mu.Unlock()
	if err != nil && r.err == nil {
		r.err = err
	} else if res != nil && res.IsError && r.err == nil {
		r.err = errors.New(res.Text())
	}
	s.used()
	r.questions = s.questions()
	return r
}

// outcome returns the end of a run as text, for comparison.
func (r run[Out]) outcome() string {
	if r.err != nil {
		return fmt.Sprintf("error %q", r.err)
	}
	if raw, err := json.Marshal(r.out); err == nil {
		return string(raw)
	}
	return fmt.Sprintf("%#v", r.out)
}

func list(questions []string) string {
	if len(questions) == 0 {
		return "  (none)"
	}
	return "  " + strings.Join(questions, "\n  ")
}
