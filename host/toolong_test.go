package host_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/host/provider"
	"github.com/patchbay-dev/patchbay/internal/long"
	"github.com/patchbay-dev/patchbay/mcp"
)

// narrow is a model server that accepts requests up to a number of bytes, and counts those it
// rejects.
type narrow struct {
	most     int
	says     string // the body of a rejection
	rejected atomic.Int32
	of       *modeltest.Server
}

func (s *narrow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if len(body) > s.most {
		s.rejected.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, s.says)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.of.ServeHTTP(w, r)
}

// open returns a model at the server whose window is not known.
func (s *narrow) open(t *testing.T, api string, answer func(*modeltest.Request) []modeltest.Piece) model.Model {
	t.Helper()
	s.of = modeltest.Handler(&modeltest.Script{Answer: func(r *modeltest.Request) modeltest.Turn { return modeltest.Turn{Answer: answer(r)} }})
	if s.says == "" {
		s.says = `{"error":{"message":"This request is longer than the context window."}}`
	}
	at := httptest.NewServer(s)
	t.Cleanup(at.Close)
	t.Cleanup(func() {
		if err := s.of.Err(); err != nil {
			t.Error(err)
		}
	})
	name := map[string]string{"chat": "openai", "responses": "openai-responses", "messages": "anthropic", "text": "text"}[api]
	m, err := provider.Open(name+"/scripted", provider.Options{BaseURL: at.URL + "/v1", Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	return model.Retry(m, nil)
}

// eachAPI runs a test with every API of the providers.
func eachAPI(t *testing.T, f func(t *testing.T, api string)) {
	for _, api := range []string{"chat", "responses", "messages", "text"} {
		t.Run(api, func(t *testing.T) { f(t, api) })
	}
}

// A conversation goes on however long it is, although nobody has said how much fits the window and
// none of it is summarised, and so does its summary.
func TestTooLongIsOvercome(t *testing.T) {
	eachAPI(t, func(t *testing.T, api string) {
		s := &narrow{most: 12_000}
		m := s.open(t, api, func(*modeltest.Request) []modeltest.Piece { return []modeltest.Piece{{Text: "Noted."}} })
		c := newHost(t, &host.Host{Model: m, Limits: host.Limits{SummariseAt: -1}}).NewConversation()
		for i := range 12 {
			r, err := c.Send(t.Context(), fmt.Sprintf("Note %d: %s", i, strings.Repeat("long ", 500)))
			if err != nil || r.Text != "Noted." {
				t.Fatalf("message %d: Send = %+v, %v", i, r, err)
			}
		}
		if s.rejected.Load() == 0 {
			t.Error("nothing was too long")
		}
		if n := len(c.Snapshot()); n != 24 {
			t.Errorf("%d entries are kept, want all 24", n)
		}
		if r, err := c.Summarise(t.Context(), ""); err != nil || r.Text != "Noted." {
			t.Errorf("Summarise = %+v, %v", r, err)
		}
	})
}

// A message that can never fit is an error. The conversation goes on after it, and can be
// summarised before.
func TestTooLongMessage(t *testing.T) {
	eachAPI(t, func(t *testing.T, api string) {
		s := &narrow{most: 12_000}
		m := s.open(t, api, func(*modeltest.Request) []modeltest.Piece { return []modeltest.Piece{{Text: "Noted."}} })
		c := newHost(t, &host.Host{Model: m}).NewConversation()
		if _, err := c.Send(t.Context(), strings.Repeat("long ", 4000)); err == nil || s.rejected.Load() != 1 {
			t.Errorf("Send = %v after %d rejections, want the error of the first", err, s.rejected.Load())
		}
		if r, err := c.Summarise(t.Context(), ""); err != nil || r.Text != "Noted." {
			t.Errorf("Summarise = %+v, %v", r, err)
		}
		if _, err := c.Undo(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r, err := c.Send(t.Context(), "short"); err != nil || r.Text != "Noted." {
			t.Errorf("Send = %+v, %v", r, err)
		}
	})
}

// A single turn goes on too: with results that are longer than the window, with more steps than fit
// it, and with calls whose arguments are long; with summaries of it and without.
func TestTooLongTurn(t *testing.T) {
	long.WithoutRace(t)
	const steps = 12
	for name, size := range map[string]struct{ result, arguments, summariseAt int }{
		"results": {6_000, 1, -1}, "one result": {20_000, 1, -1}, "arguments": {1, 3_000, -1},
		"summarised results": {6_000, 1, 0}, "summarised arguments": {1, 3_000, 0}, "one result after summaries": {20_000, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			eachAPI(t, func(t *testing.T, api string) {
				s := &narrow{most: 16_000}
				n, seen, summaries := 0, 0, 0
				m := s.open(t, api, func(r *modeltest.Request) []modeltest.Piece {
					if !strings.Contains(string(r.Body), "Count them all.") {
						t.Errorf("step %d: the task was left out", n)
					}
					if strings.Contains(string(r.Body), "Write a summary of this conversation") {
						summaries++
						return []modeltest.Piece{{Text: "They are being counted."}}
					}
					if n > 0 && strings.Contains(string(r.Body), fmt.Sprintf("number %d ", n)) {
						seen++
					}
					if n++; n > steps {
						return []modeltest.Piece{{Text: "All."}}
					}
					return []modeltest.Piece{{Call: &modeltest.Call{Name: "srv_page", Arguments: map[string]any{"n": n, "text": strings.Repeat("a", size.arguments)}}}}
				})
				srv := &mcp.Server{Name: "srv", Version: "1"}
				mcp.AddTool(srv, mcp.Tool{Name: "page"}, func(_ context.Context, in struct {
					N    int    `json:"n"`
					Text string `json:"text"`
				}) (string, error) {
					return fmt.Sprintf("number %d %s", in.N, strings.Repeat("r", size.result)), nil
				})
				c := newHost(t, &host.Host{Model: m, Allow: []string{"*"}, Limits: host.Limits{SummariseAt: size.summariseAt}}, inMemory("srv", srv)).NewConversation()
				r, err := c.Send(t.Context(), "Count them all.")
				if err != nil || r.Text != "All." || r.Steps != steps+1 {
					t.Fatalf("Send = %+v, %v", r, err)
				}
				if seen != steps {
					t.Errorf("the model has seen %d of %d results", seen, steps)
				}
				if s.rejected.Load() == 0 {
					t.Error("nothing was too long")
				}
				if n := len(c.Snapshot()); n != 2*steps+2+summaries || summaries > 0 != (size.summariseAt == 0) {
					t.Errorf("%d entries are kept, want all %d, and %d summaries", n, 2*steps+2, summaries)
				}
			})
		})
	}
}
