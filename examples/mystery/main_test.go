package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/host"
	"github.com/patchbay-dev/patchbay/host/model"
	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func call[Out any](t *testing.T, s *mcp.Session, tool string, args map[string]string) Out {
	t.Helper()
	out, err := mcp.CallAs[Out](t.Context(), s, tool, args)
	if err != nil {
		t.Fatalf("%s %v: %v", tool, args, err)
	}
	return out
}

// The story can be solved, only in its order, on every revision and wire. The model gets the
// facts that its character tells now and the conversation so far, and nothing else.
func TestSolve(t *testing.T) {
	var asked []*mcp.SampleRequest
	newClient := func() *mcp.Client {
		return &mcp.Client{Name: "c", OnSample: func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
			asked = append(asked, r)
			return &mcp.SampleResult{Content: []mcp.Content{mcp.Text("Aye.")}, Model: "m"}, nil
		}}
	}
	mcptest.Every(t, newServer, newClient, func(t *testing.T, s *mcp.Session) {
		asked = nil
		g := call[started](t, s, "start_game", nil)
		talk := func(to, say string, clues int) {
			t.Helper()
			got := call[answer](t, s, "talk", map[string]string{"game": g.Game, "to": to, "say": say})
			if got.Says != "Aye." || len(got.Clues) != clues {
				t.Errorf("%q to %s: %+v, want %d clues", say, to, got, clues)
			}
		}
		talk("teague", "What is in that sack, and whose is the key?", 0) // it is too early
		if last := asked[len(asked)-1]; strings.Contains(last.SystemPrompt, "rings") {
			t.Errorf("the model knows what the captain keeps to himself: %q", last.SystemPrompt)
		}
		talk("ines", "Did you see flour?", 0)
		talk("odile", "When did the clock stop?", 1)
		talk("odile", "When did the clock stop?", 0)
		if last := asked[len(asked)-1]; len(last.Messages) != 3 || last.Messages[1].Role != "assistant" {
			t.Errorf("the model is reminded of %d lines, want those before", len(last.Messages))
		}
		talk("ines", "Anyone on the stairs that night?", 1)
		talk("odile", "Who had the key?", 1)
		talk("teague", "Your boots are white with flour!", 1)
		if last := asked[len(asked)-1]; !strings.Contains(last.SystemPrompt, "rings") {
			t.Errorf("the captain does not say what he has to: %q", last.SystemPrompt)
		}
		if res, err := s.ReadResource(t.Context(), g.Notes); err != nil || strings.Count(res.Contents[0].Text, "\n- ") != 4 {
			t.Errorf("notes = %+v, %v", res, err)
		}
		if got := call[string](t, s, "accuse", map[string]string{"game": g.Game, "whom": "odile", "clue": "sack"}); !strings.Contains(got, "proves nothing") {
			t.Errorf("accuse = %q", got)
		}
		if got := call[string](t, s, "accuse", map[string]string{"game": g.Game, "whom": "Teague", "clue": "sack"}); !strings.Contains(got, "You have solved it") {
			t.Errorf("accuse = %q", got)
		}
		if res, err := s.CallTool(t.Context(), "talk", map[string]string{"game": g.Game, "to": "ines", "say": "hi"}); err != nil || !res.IsError {
			t.Errorf("after the end: %+v, %v", res, err)
		}
	})
}

// Without a model the characters state their facts. A player who is wrong three times has
// lost.
func TestWithoutModel(t *testing.T) {
	s := mcptest.Connect(t, newServer(), &mcp.Client{}, mcp.V2025_06_18)
	g := call[started](t, s, "start_game", nil)
	if got := call[answer](t, s, "talk", map[string]string{"game": g.Game, "to": "ines", "say": "hello"}); got.Says != "Ines Corvo shrugs." {
		t.Errorf("talk = %+v", got)
	}
	if got := call[answer](t, s, "talk", map[string]string{"game": g.Game, "to": "ines", "say": "What about Captain Teague?"}); !strings.HasPrefix(got.Says, "Teague? He was shouting") {
		t.Errorf("talk = %+v", got)
	}
	for range maxGuesses {
		call[string](t, s, "accuse", map[string]string{"game": g.Game, "whom": "teague", "clue": "quarrel"})
	}
	for _, args := range []map[string]string{{"game": g.Game, "whom": "ines", "clue": "quarrel"}, {"game": "none", "whom": "ines", "clue": "quarrel"}} {
		if res, err := s.CallTool(t.Context(), "accuse", args); err != nil || !res.IsError {
			t.Errorf("accuse %v = %+v, %v", args, res, err)
		}
	}
	if _, err := s.ReadResource(t.Context(), notesURI("none")); !errors.As(err, new(*mcp.Error)) {
		t.Errorf("notes of no game: %v", err)
	}
	if p, err := s.GetPrompt(t.Context(), "begin", nil); err != nil || len(p.Messages) != 1 {
		t.Errorf("begin = %+v, %v", p, err)
	}
}

// player is a model that plays the game and speaks for the characters.
type player struct{}

func (player) Info() model.Info { return model.Info{Name: "test/player"} }

func (player) Generate(_ context.Context, r *model.Request, _ func(model.Delta)) (*model.Response, error) {
	last := r.Messages[len(r.Messages)-1]
	res := &model.Response{Stop: model.StopEnd, Message: model.Message{Role: model.Assistant}}
	part := model.Part{Text: "done"}
	switch {
	case strings.HasPrefix(r.System, "You are Odile"):
		part.Text = "Nine eleven, my dear."
	case last.Parts[0].Result == nil:
		part = model.Part{Call: &model.Call{ID: "1", Name: "mystery_start_game", Arguments: []byte(`{}`)}}
	case last.Parts[0].Result.ID == "1":
		_, after, _ := strings.Cut(last.Parts[0].Result.Parts[0].Text, `"game":"`)
		part = model.Part{Call: &model.Call{ID: "2", Name: "mystery_talk", Arguments: []byte(`{"game":"` + after[:12] + `","to":"odile","say":"When did it stop?"}`)}}
	default:
		part.Text = last.Parts[0].Result.Parts[0].Text
	}
	res.Message.Parts = []model.Part{part}
	return res, nil
}

// A host passes a conversation with a character on.
func TestThroughHost(t *testing.T) {
	h := &host.Host{Model: player{}, Allow: []string{"mystery/*"}, AutoSample: true}
	defer h.Close()
	c := h.NewConversation()
	s := newServer()
	if err := h.Add(host.Server{Name: "mystery", Open: func(ctx context.Context, c *mcp.Client) (mcp.Handler, error) {
		return mcptest.Connect(t, s, c, mcp.V2026_07_28), nil
	}}); err != nil {
		t.Fatal(err)
	}
	reply, err := c.Send(t.Context(), "Ask Odile when it stopped.")
	if err != nil || !strings.Contains(reply.Text, "Nine eleven, my dear.") || !strings.Contains(reply.Text, "bakery side") {
		t.Errorf("the answer is %+v, %v", reply, err)
	}
}
