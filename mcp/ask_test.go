package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

type color struct {
	Color string `json:"color" title:"Color" enum:"red,green" enumTitles:"Red,Green" default:"green"`
}

// one serves a single tool, called "ask".
func one[In, Out any](h func(context.Context, In) (Out, error)) *mcp.Server {
	s := &mcp.Server{Name: "one", Version: "1"}
	mcp.AddTool(s, mcp.Tool{Name: "ask"}, h)
	return s
}

// answering is a client whose user gives one answer to everything.
func answering(action string, content map[string]any) *mcp.Client {
	return &mcp.Client{Name: "c", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: action, Content: content}, nil
	}}
}

// bothEras runs a test on the newest revision of each era, in memory.
func bothEras(t *testing.T, body func(t *testing.T, rev mcp.Revision)) {
	for _, rev := range []mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28} {
		t.Run(string(rev), func(t *testing.T) { body(t, rev) })
	}
}

// A pending question takes precedence over the handler's result, and over an error that the handler
// has dropped.
func TestPendingQuestionWins(t *testing.T) {
	bothEras(t, func(t *testing.T, rev mcp.Revision) {
		s := one(func(ctx context.Context, _ struct{}) (string, error) {
			c, err := mcp.Elicit[color](ctx, "Which?")
			if err != nil {
				return "a default", nil
			}
			return c.Color, nil
		})
		session := mcptest.Connect(t, s, answering("accept", map[string]any{"color": "red"}), rev)
		if got, err := mcp.CallAs[string](t.Context(), session, "ask", nil); err != nil || got != "red" {
			t.Errorf("ask = %q, %v; want red", got, err)
		}
	})
	t.Run("a panic after it", func(t *testing.T) {
		s := one(func(ctx context.Context, _ struct{}) (string, error) {
			c, err := mcp.Elicit[color](ctx, "Which?")
			if err != nil {
				panic(err)
			}
			return c.Color, nil
		})
		session := mcptest.Connect(t, s, answering("accept", map[string]any{"color": "red"}), mcp.V2026_07_28)
		if got, err := mcp.CallAs[string](t.Context(), session, "ask", nil); err != nil || got != "red" {
			t.Errorf("ask = %q, %v; want red", got, err)
		}
	})
}

// Questions asked before the first error is returned travel in one round.
func TestSeveralQuestionsAtOnce(t *testing.T) {
	bothEras(t, func(t *testing.T, rev mcp.Revision) {
		var runs atomic.Int64
		s := one(func(ctx context.Context, _ struct{}) (string, error) {
			runs.Add(1)
			a, errA := mcp.Elicit[color](ctx, "First?")
			b, errB := mcp.Elicit[color](ctx, "Second?")
			c, errC := mcp.Elicit[color](ctx, "Third?", mcp.QuestionKey("third"))
			if err := errors.Join(errA, errB, errC); err != nil {
				return "", err
			}
			return a.Color + b.Color + c.Color, nil
		})
		session := mcptest.Connect(t, s, answering("accept", map[string]any{"color": "red"}), rev)
		if got, err := mcp.CallAs[string](t.Context(), session, "ask", nil); err != nil || got != "redredred" {
			t.Errorf("ask = %q, %v; want redredred", got, err)
		}
		want := int64(1)
		if rev == mcp.V2026_07_28 {
			want = 2
		}
		if got := runs.Load(); got != want {
			t.Errorf("the handler ran %d times, want %d", got, want)
		}
	})
}

// A question with a wording that changes from run to run needs a name to be answered.
func TestVolatileWording(t *testing.T) {
	var n atomic.Int64
	ask := func(opts ...mcp.AskOption) *mcp.Server {
		return one(func(ctx context.Context, _ struct{}) (string, error) {
			c, err := mcp.Elicit[color](ctx, fmt.Sprintf("Which, at %d?", n.Add(1)), opts...)
			return c.Color, err
		})
	}
	client := answering("accept", map[string]any{"color": "red"})
	_, err := mcp.CallAs[string](t.Context(), mcptest.Connect(t, ask(), client, mcp.V2026_07_28), "ask", nil)
	if err == nil || !strings.Contains(err.Error(), "mcp.QuestionKey") {
		t.Errorf("without a name: %v; want an error that names mcp.QuestionKey", err)
	}
	got, err := mcp.CallAs[string](t.Context(), mcptest.Connect(t, ask(mcp.QuestionKey("which")), client, mcp.V2026_07_28), "ask", nil)
	if err != nil || got != "red" {
		t.Errorf("with a name: %q, %v; want red", got, err)
	}
}

func TestTwoQuestionsOfOneKey(t *testing.T) {
	s := one(func(ctx context.Context, _ struct{}) (string, error) {
		_, errA := mcp.Elicit[color](ctx, "First?", mcp.QuestionKey("k"))
		_, errB := mcp.Elicit[color](ctx, "Second?", mcp.QuestionKey("k"))
		return "", errors.Join(errA, errB)
	})
	session := mcptest.Connect(t, s, answering("accept", map[string]any{"color": "red"}), mcp.V2026_07_28)
	if _, err := session.CallTool(t.Context(), "ask", nil); err == nil || !strings.Contains(err.Error(), "the key") {
		t.Errorf("CallTool = %v; want an error about the key", err)
	}
}

// Refusals are errors that a handler can tell apart (ELIC-26-027).
func TestRefusals(t *testing.T) {
	for action, want := range map[string]error{"decline": mcp.ErrDeclined, "cancel": mcp.ErrDismissed} {
		t.Run(action, func(t *testing.T) {
			mcptest.Every(t, func() *mcp.Server {
				return one(func(ctx context.Context, _ struct{}) (string, error) {
					_, err := mcp.Elicit[color](ctx, "Which?")
					res, err2 := mcp.ElicitForm(ctx, "Which?", json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`))
					switch {
					case errors.Is(err, want) && err2 == nil && res.Action == action:
						return "understood", nil
					case err == nil:
						return "", errors.New("no error")
					}
					return "", errors.Join(err, err2)
				})
			}, func() *mcp.Client { return answering(action, nil) }, func(t *testing.T, s *mcp.Session) {
				got, err := mcp.CallAs[string](t.Context(), s, "ask", nil)
				if asks(s.Revision()) && (err != nil || got != "understood") {
					t.Errorf("ask = %q, %v", got, err)
				}
			})
		})
	}
}

// META-26-010, INIT-25-015, INIT-2503-002: a question that the caller did not declare is not sent.
// A modern caller gets the capability, an older one a tool error in words.
func TestUndeclaredQuestion(t *testing.T) {
	tests := []struct {
		name, required string
		ask            func(ctx context.Context) error
	}{
		{"elicitation", `{"elicitation":{"form":{}}}`, func(ctx context.Context) error {
			_, err := mcp.Elicit[color](ctx, "Which?")
			return err
		}},
		{"elicitation by URL", `{"elicitation":{"url":{}}}`, func(ctx context.Context) error {
			return mcp.ElicitURL(ctx, "Log in", "https://example.com/")
		}},
		{"sampling", `{"sampling":{}}`, func(ctx context.Context) error {
			_, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 1, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("x")}}}})
			return err
		}},
		{"roots", `{"roots":{}}`, func(ctx context.Context) error {
			_, err := mcp.Roots(ctx)
			return err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mcptest.Every(t, func() *mcp.Server {
				return one(func(ctx context.Context, _ struct{}) (string, error) {
					err := tt.ask(ctx)
					if !errors.Is(err, mcp.ErrNotSupported) || !errors.Is(err, errors.ErrUnsupported) {
						return "", fmt.Errorf("error %v is not ErrNotSupported", err)
					}
					return "", fmt.Errorf("cannot go on: %w", err)
				})
			}, func() *mcp.Client { return &mcp.Client{Name: "mute"} }, func(t *testing.T, s *mcp.Session) {
				res, err := s.CallTool(t.Context(), "ask", nil)
				if s.Revision() < mcp.V2026_07_28 {
					if err != nil || !res.IsError || !strings.Contains(res.Text(), tt.name) {
						t.Errorf("ask = %+v, %v; want a tool error that names %s", res, err, tt.name)
					}
					return
				}
				var rpc *mcp.Error
				if !errors.As(err, &rpc) || rpc.Code != mcp.CodeMissingCapability {
					t.Fatalf("ask = %v; want error %d", err, mcp.CodeMissingCapability)
				}
				if want := `{"requiredCapabilities":` + tt.required + `}`; string(rpc.Data) != want {
					t.Errorf("data = %s, want %s", rpc.Data, want)
				}
			})
		})
	}
}

// The rounds of a call are bounded on both sides.
func TestRoundsLimit(t *testing.T) {
	endless := func() *mcp.Server {
		return one(func(ctx context.Context, _ struct{}) (string, error) {
			for i := 0; ; i++ {
				if _, err := mcp.Elicit[color](ctx, fmt.Sprintf("Question %d?", i)); err != nil {
					return "", err
				}
			}
		})
	}
	t.Run("server", func(t *testing.T) {
		s := endless()
		s.Limits.Rounds = 3
		c := answering("accept", map[string]any{"color": "red"})
		_, err := mcptest.Connect(t, s, c, mcp.V2026_07_28).CallTool(t.Context(), "ask", nil)
		if err == nil || !strings.Contains(err.Error(), "Limits.Rounds") {
			t.Errorf("ask = %v; want an error that names Limits.Rounds", err)
		}
	})
	t.Run("client", func(t *testing.T) {
		s := endless()
		s.Limits.Rounds = 100
		c := answering("accept", map[string]any{"color": "red"})
		c.Limits.Rounds = 3
		_, err := mcptest.Connect(t, s, c, mcp.V2026_07_28).CallTool(t.Context(), "ask", nil)
		if err == nil || !strings.Contains(err.Error(), "Limits.Rounds") {
			t.Errorf("ask = %v; want an error that names Limits.Rounds", err)
		}
	})
}

// SAMP, ROOT, ELIC URL: the other questions, with their content, on every revision that
// has them.
func TestSampleRootsURL(t *testing.T) {
	mcptest.LeakCheck(t)
	mcptest.Every(t, func() *mcp.Server {
		s := &mcp.Server{Name: "s", Version: "1"}
		mcp.AddTool(s, mcp.Tool{Name: "sample"}, func(ctx context.Context, _ struct{}) (string, error) {
			half := 0.5
			res, err := mcp.Sample(ctx, &mcp.SampleRequest{
				MaxTokens: 10, SystemPrompt: "be brief", Temperature: &half, StopSequences: []string{"."},
				Preferences: &mcp.ModelPreferences{Hints: []string{"small"}, CostPriority: &half},
				Messages:    []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("ping")}}},
			})
			if err != nil {
				return "", err
			}
			return res.Text() + " of " + res.Model + " " + res.StopReason, nil
		})
		mcp.AddTool(s, mcp.Tool{Name: "roots"}, func(ctx context.Context, _ struct{}) (string, error) {
			roots, err := mcp.Roots(ctx)
			if err != nil {
				return "", err
			}
			return roots[0].URI + " " + roots[0].Name, nil
		})
		mcp.AddTool(s, mcp.Tool{Name: "visit"}, func(ctx context.Context, _ struct{}) (string, error) {
			return "visited", mcp.ElicitURL(ctx, "Please log in", "https://example.com/login?x=1&y=2")
		})
		return s
	}, func() *mcp.Client {
		return &mcp.Client{
			Name: "c",
			OnSample: func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
				if r.MaxTokens != 10 || r.SystemPrompt != "be brief" || *r.Temperature != 0.5 || r.StopSequences[0] != "." ||
					r.Preferences.Hints[0] != "small" || r.Messages[0].Role != "user" {
					return nil, fmt.Errorf("request %+v", r)
				}
				return &mcp.SampleResult{Content: []mcp.Content{mcp.Text("pong")}, Model: "tiny", StopReason: "endTurn"}, nil
			},
			Roots: func(context.Context) ([]mcp.Root, error) {
				return []mcp.Root{{URI: "file:///home/ada", Name: "Ada"}}, nil
			},
			OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				if r.URL != "https://example.com/login?x=1&y=2" || r.Message != "Please log in" {
					return nil, fmt.Errorf("request %+v", r)
				}
				return &mcp.ElicitResult{Action: "accept"}, nil
			},
		}
	}, func(t *testing.T, s *mcp.Session) {
		if got, err := mcp.CallAs[string](t.Context(), s, "sample", nil); err != nil || got != "pong of tiny endTurn" {
			t.Errorf("sample = %q, %v", got, err)
		}
		if got, err := mcp.CallAs[string](t.Context(), s, "roots", nil); err != nil || got != "file:///home/ada Ada" {
			t.Errorf("roots = %q, %v", got, err)
		}
		got, err := mcp.CallAs[string](t.Context(), s, "visit", nil)
		if s.Revision() < mcp.V2025_11_25 {
			if err == nil || !strings.Contains(err.Error(), "elicitation by URL") {
				t.Errorf("visit = %q, %v; want a tool error", got, err)
			}
		} else if err != nil || got != "visited" {
			t.Errorf("visit = %q, %v", got, err)
		}
	})
}

// T-79, T-174: tools and several blocks of a message need sampling.tools.
func TestSampleWithTools(t *testing.T) {
	mcptest.Every(t, func() *mcp.Server {
		return one(func(ctx context.Context, _ struct{}) (string, error) {
			res, err := mcp.Sample(ctx, &mcp.SampleRequest{
				MaxTokens: 10, ToolChoice: "auto",
				Tools: []*mcp.Tool{{Name: "look", InputSchema: json.RawMessage(`{"type":"object"}`)}},
				Messages: []mcp.SampleMessage{
					{Role: "user", Content: []mcp.Content{mcp.Text("look")}},
					{Role: "assistant", Content: []mcp.Content{mcp.ToolUseContent{ID: "1", Name: "look", Input: json.RawMessage(`{}`)}}},
					{Role: "user", Content: []mcp.Content{mcp.ToolResultContent{ToolUseID: "1", Result: mcp.ToolResult{Content: []mcp.Content{mcp.Text("a tree")}}}}},
				},
			})
			if err != nil {
				return "", err
			}
			use, ok := res.Content[1].(mcp.ToolUseContent)
			if !ok {
				return "", fmt.Errorf("content %#v", res.Content)
			}
			return res.Text() + use.Name + string(use.Input), nil
		})
	}, func() *mcp.Client {
		return &mcp.Client{Name: "c", OnSample: func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
			result, ok := r.Messages[2].Content[0].(mcp.ToolResultContent)
			if !ok || result.Result.Text() != "a tree" || r.ToolChoice != "auto" || r.Tools[0].Name != "look" {
				return nil, fmt.Errorf("request %+v", r)
			}
			return &mcp.SampleResult{Model: "m", StopReason: "toolUse", Content: []mcp.Content{
				mcp.Text("again"), mcp.ToolUseContent{ID: "2", Name: "look", Input: json.RawMessage(`{"far":true}`)}}}, nil
		}}
	}, func(t *testing.T, s *mcp.Session) {
		got, err := mcp.CallAs[string](t.Context(), s, "ask", nil)
		if s.Revision() < mcp.V2025_11_25 {
			if err == nil || !strings.Contains(err.Error(), "sampling with tools") {
				t.Errorf("ask = %q, %v; want a tool error", got, err)
			}
		} else if err != nil || got != `againlook{"far":true}` {
			t.Errorf("ask = %q, %v", got, err)
		}
	})
}

// ELIC-25: a form is sent in the form of its revision (T-72, T-75), and values that the user left
// out get their defaults.
func TestElicitDefaults(t *testing.T) {
	var form atomic.Pointer[string]
	mcptest.Every(t, func() *mcp.Server {
		return one(func(ctx context.Context, _ struct{}) (string, error) {
			c, err := mcp.Elicit[color](ctx, "Which?")
			return c.Color, err
		})
	}, func() *mcp.Client {
		return &mcp.Client{Name: "c", OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			shown := string(r.Schema)
			form.Store(&shown)
			return &mcp.ElicitResult{Action: "accept"}, nil
		}}
	}, func(t *testing.T, s *mcp.Session) {
		if !asks(s.Revision()) {
			t.Skip("no elicitation")
		}
		got, err := mcp.CallAs[string](t.Context(), s, "ask", nil)
		shown := *form.Load()
		if err != nil || got != "green" {
			t.Errorf("ask = %q, %v; want green, the default of %s", got, err, shown)
		}
		titled := strings.Contains(shown, "oneOf")
		if old := s.Revision() == mcp.V2025_06_18; titled == old {
			t.Errorf("the form is %s", shown)
		}
	})
}

// The client's answer is checked before a handler gets it (MRTR-26-021).
func TestElicitAnswerDoesNotFit(t *testing.T) {
	mcptest.LeakCheck(t)
	const form = `{"action":"accept","content":{"color":"blue"}}`
	s := one(func(ctx context.Context, _ struct{}) (string, error) {
		c, err := mcp.Elicit[color](ctx, "Which?")
		return c.Color, err
	})
	p := rawClient(t, s)
	p.send(modern(1, "tools/call", canElicit, `"name":"ask"`))
	state, qs := inputRequired(t, p.answer(1))
	for key := range qs {
		p.send(modern(2, "tools/call", canElicit, `"name":"ask","inputResponses":{`+quote(key)+`:`+form+`},"requestState":`+quote(state)))
	}
	m := p.answer(2)
	if !strings.Contains(string(m.Result), `"isError":true`) || !strings.Contains(string(m.Result), "color") {
		t.Errorf("got %s; want a tool error that names color", show(&m))
	}
}

// Outside of a call, nobody can be asked.
func TestAskOutsideOfACall(t *testing.T) {
	ctx := t.Context()
	if _, err := mcp.Confirm(ctx, "?"); !errors.Is(err, mcp.ErrNoCall) {
		t.Errorf("Confirm = %v", err)
	}
	if _, err := mcp.Once(ctx, "k", func(context.Context) (int, error) { return 1, nil }); !errors.Is(err, mcp.ErrNoCall) {
		t.Errorf("Once = %v", err)
	}
	if mcp.CallFrom(ctx) != nil {
		t.Error("CallFrom is not nil")
	}
	mcp.Progress(ctx, 1, 2, "")
	mcp.Log(ctx).Info("nothing")
}

// T-81, SAMP-26-008, -009: other servers' context is asked for only where that was declared, or
// cannot be.
func TestSampleIncludeContext(t *testing.T) {
	var got atomic.Pointer[string]
	mcptest.Every(t, func() *mcp.Server {
		return one(func(ctx context.Context, _ struct{}) (string, error) {
			_, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 1, IncludeContext: "thisServer",
				Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("x")}}}})
			return "", err
		})
	}, func() *mcp.Client {
		return &mcp.Client{Name: "c", OnSample: func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
			got.Store(&r.IncludeContext)
			return &mcp.SampleResult{Model: "m", Content: []mcp.Content{mcp.Text("y")}}, nil
		}}
	}, func(t *testing.T, s *mcp.Session) {
		if _, err := mcp.CallAs[string](t.Context(), s, "ask", nil); err != nil {
			t.Fatal(err)
		}
		want := "thisServer"
		if s.Revision() >= mcp.V2025_11_25 {
			want = ""
		}
		if *got.Load() != want {
			t.Errorf("includeContext is %q, want %q", *got.Load(), want)
		}
	})
}
