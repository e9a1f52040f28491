package host_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/host/modeltest"
	"github.com/patchbay-dev/patchbay/host/provider"
	"github.com/patchbay-dev/patchbay/mcp"
)

// cutter has a conversation with a scripted model, and records its events and the requests.
type cutter struct {
	*host.Conversation
	model  *modeltest.Server
	events []host.Event
}

func newCutter(t *testing.T, api string, window int, turns ...modeltest.Turn) *cutter {
	t.Helper()
	c := &cutter{}
	var url string
	c.model, url = modeltest.Start(t, &modeltest.Script{Turns: turns})
	name := map[string]string{"chat": "openai", "responses": "openai-responses", "messages": "anthropic"}[api]
	m, err := provider.Open(name+"/scripted", provider.Options{BaseURL: url + "/v1", Env: func(string) string { return "" }, Info: func(i *model.Info) { i.Window = window }})
	if err != nil {
		t.Fatal(err)
	}
	srv := &mcp.Server{Name: "files", Version: "1"}
	mcp.AddTool(srv, mcp.Tool{Name: "write"}, func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return "wrote " + in.Text, nil
	})
	c.Conversation = newHost(t, &host.Host{Model: m, Allow: []string{"*"}}, inMemory("files", srv)).NewConversation()
	c.OnEvent = func(e host.Event) { c.events = append(c.events, e) }
	return c
}

// noted returns the texts of the notes.
func (c *cutter) noted() (notes []string) {
	for _, e := range c.events {
		if e.Kind == host.Noted {
			notes = append(notes, e.Text)
		}
	}
	return notes
}

// user returns the last text of the user in a request, from 0.
func (c *cutter) user(t *testing.T, n int) string {
	t.Helper()
	all := c.model.Requests()
	if n >= len(all) {
		t.Fatalf("there were %d requests, want one more than %d", len(all), n)
	}
	return all[n].User()
}

func writing(arguments string) modeltest.Piece {
	return modeltest.Piece{Call: &modeltest.Call{Name: "files_write", Arguments: arguments}}
}

// An answer that was cut off is an answer, but the person, the program and, in the next turn, the
// model know that it was cut off, and by which bound.
func TestAnswerThatWasCutOff(t *testing.T) {
	for _, tt := range []struct {
		name   string
		window int
		usage  modeltest.Usage
		bound  string
	}{
		{"length", 100_000, modeltest.Usage{Input: 50, Output: 32}, "at the maximum length of an answer, 32 tokens"},
		{"window", 4096, modeltest.Usage{Input: 4000, Output: 96}, "at the window of the model, 4096 tokens"},
		{"not counted", 100_000, modeltest.Usage{}, "at the maximum length of an answer"},
	} {
		for _, api := range []string{"chat", "responses", "messages"} {
			t.Run(tt.name+"/"+api, func(t *testing.T) {
				c := newCutter(t, api, tt.window,
					modeltest.Turn{Answer: []modeltest.Piece{{Text: "Once upon a"}}, Stop: "length", Usage: tt.usage},
					modeltest.Turn{Answer: []modeltest.Piece{{Text: "time."}}})
				r, err := c.Send(t.Context(), "Tell me a story.")
				if err != nil || r.Text != "Once upon a" || r.Stop != model.StopLength || r.Steps != 1 {
					t.Errorf("Send = %+v, %v", r, err)
				}
				if notes := c.noted(); len(notes) != 1 || !strings.Contains(notes[0], "cut off "+tt.bound) {
					t.Errorf("notes %q, want one with %q", notes, tt.bound)
				}
				if e := c.events[len(c.events)-1]; e.Kind != host.Ended || e.Stop != model.StopLength {
					t.Errorf("the last event is %+v, want that the answer was cut off", e)
				}
				// A conversation that was kept and resumed knows it, too.
				again := newCutter(t, api, tt.window, modeltest.Turn{Answer: []modeltest.Piece{{Text: "time."}}})
				again.Entries = c.Snapshot()
				for _, c := range []*cutter{c, again} {
					if r, err := c.Send(t.Context(), "And then?"); err != nil || r.Stop != model.StopEnd {
						t.Errorf("Send = %+v, %v", r, err)
					}
					requests := c.model.Requests()
					last := requests[len(requests)-1]
					if got := string(last.Body); !strings.Contains(got, "[Your answer was cut off "+tt.bound) || !strings.HasSuffix(last.User(), "And then?") {
						t.Errorf("the next request has %q, want %q", got, tt.bound)
					}
				}
			})
		}
	}
}

// A call that was cut off is not made. The model is told why, and makes it again.
func TestCallThatWasCutOff(t *testing.T) {
	cutCall := writing(`{"text":"very lo`)
	for _, tt := range []struct {
		name   string
		answer []modeltest.Piece
		made   int // calls of it that are made
	}{
		{"alone", []modeltest.Piece{cutCall}, 0},
		{"after text", []modeltest.Piece{{Text: "I write it."}, cutCall}, 0},
		{"after a call", []modeltest.Piece{writing(`{"text":"one"}`), cutCall}, 1},
	} {
		for _, api := range []string{"chat", "responses", "messages"} {
			t.Run(tt.name+"/"+api, func(t *testing.T) {
				c := newCutter(t, api, 100_000,
					modeltest.Turn{Answer: tt.answer, Stop: "length", Usage: modeltest.Usage{Input: 5, Output: 32}},
					modeltest.Turn{Answer: []modeltest.Piece{writing(`{"text":"less"}`)}},
					modeltest.Turn{Answer: []modeltest.Piece{{Text: "Done."}}})
				r, err := c.Send(t.Context(), "Write it.")
				if err != nil || r.Text != "Done." || r.Steps != 3 || r.Stop != model.StopEnd {
					t.Fatalf("Send = %+v, %v", r, err)
				}
				if got := c.user(t, 1); !strings.Contains(got, "cut off at the maximum length of an answer, 32 tokens, in the middle of a call, which was not made") {
					t.Errorf("the model is told %q", got)
				}
				if notes := c.noted(); len(notes) != 1 || !strings.Contains(notes[0], "in the middle of a call") {
					t.Errorf("notes %q", notes)
				}
				made := 0
				for _, e := range c.events {
					if e.Kind == host.Started {
						made++
					}
				}
				if made != tt.made+1 {
					t.Errorf("%d calls were made, want %d", made, tt.made+1)
				}
			})
		}
	}
	t.Run("again and again", func(t *testing.T) {
		turn := modeltest.Turn{Answer: []modeltest.Piece{cutCall}, Stop: "length"}
		c := newCutter(t, "chat", 100_000, turn, turn)
		if r, err := c.Send(t.Context(), "Write it."); err != nil || r.Text != "" || r.Stop != model.StopLength {
			t.Errorf("Send = %+v, %v; want an empty answer that was cut off", r, err)
		}
	})
}

// A model whose reasoning took all tokens is told so, and not that its answer was empty.
func TestReasoningThatWasCutOff(t *testing.T) {
	c := newCutter(t, "chat", 100_000,
		modeltest.Turn{Answer: []modeltest.Piece{{Thinking: "Hm, let me see."}}, Stop: "length", Usage: modeltest.Usage{Input: 5, Output: 32}},
		modeltest.Turn{Answer: []modeltest.Piece{{Text: "42"}}})
	if r, err := c.Send(t.Context(), "Think."); err != nil || r.Text != "42" {
		t.Errorf("Send = %+v, %v", r, err)
	}
	if got := c.user(t, 1); !strings.Contains(got, "before its first word") || strings.Contains(got, "empty") {
		t.Errorf("the model is told %q", got)
	}
	if notes := c.noted(); !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, "before its first word") }) {
		t.Errorf("notes %q", notes)
	}
}
