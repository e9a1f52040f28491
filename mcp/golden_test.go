package mcp_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// The wire of a small session on each revision: opening, list, calls, a question,
// errors (BASE-26-001, BASE-25-001). Reviewed like code; -mcptest.update rewrites.
func TestGolden(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		t.Run(string(rev), func(t *testing.T) {
			calc := func() *mcp.Server {
				s := &mcp.Server{Name: "calc", Title: "Calculator", Version: "1.0.0", Instructions: "Add."}
				mcp.AddTool(s, mcp.Tool{Name: "add", Title: "Addition", Description: "Add two numbers"}, add)
				mcp.AddTool(s, mcp.Tool{Name: "book"}, book)
				mcp.AddResource(s, mcp.Resource{URI: "calc:pi", Name: "pi"}, func(context.Context) (float64, error) { return 3.14, nil })
				return s
			}
			c, file := user(), "testdata/session-"+string(rev)+".txt"
			mcptest.Replay(t, file, calc())
			mcptest.Replay(t, file, mcptest.Mock(t, file))
			mcptest.Golden(t, file, calc(), c, rev, func(s *mcp.Session) {
				ctx := t.Context()
				for _, err := range s.Tools(ctx) {
					if err != nil {
						t.Error(err)
					}
				}
				s.CallTool(ctx, "add", Sum{1, 2})
				s.CallTool(ctx, "add", map[string]any{"a": 1})
				s.CallTool(ctx, "sub", Sum{1, 2})
				s.CallTool(ctx, "book", trip{"2026-12-24"})
				s.ReadResource(ctx, "calc:pi")
				s.ReadResource(ctx, "calc:e")
			})
		})
	}
}

// lab is a server with a tool for each behaviour. A value on begun says that the tool "hang" runs.
func lab() (srv *mcp.Server, begun chan struct{}) {
	begun = make(chan struct{}, 1)
	s := &mcp.Server{Name: "lab", Version: "1.0.0", Limits: mcp.Limits{PageSize: 4}}
	mcp.AddTool(s, mcp.Tool{Name: "count"}, func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "half")
		mcp.Log(ctx).Info("counting", "to", 2)
		mcp.Progress(ctx, 2, 2, "")
		return "counted", nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "hang"}, func(ctx context.Context, _ struct{}) (string, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return "", context.Cause(ctx)
	})
	mcp.AddTool(s, mcp.Tool{Name: "grow", Execution: mcp.ToolExecution{TaskSupport: mcp.TaskOptional}}, func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-time.After(2500 * time.Millisecond): // of the bubble
		case <-ctx.Done():
		}
		return "grown", ctx.Err()
	})
	mcp.AddTool(s, mcp.Tool{Name: "ask-model"}, func(ctx context.Context, _ struct{}) (string, error) {
		res, err := mcp.Sample(ctx, &mcp.SampleRequest{MaxTokens: 9, Messages: []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text("ping")}}}})
		if err != nil {
			return "", err
		}
		return res.Text(), nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "ask-roots"}, func(ctx context.Context, _ struct{}) (string, error) {
		roots, err := mcp.Roots(ctx)
		if err != nil {
			return "", err
		}
		return roots[0].URI, nil
	})
	mcp.AddTool(s, mcp.Tool{Name: "ask-user"}, func(ctx context.Context, _ struct{}) (string, error) {
		_, err := mcp.Confirm(ctx, "Go on?")
		return "", err
	})
	mcp.AddTool(s, mcp.Tool{Name: "fail"}, func(context.Context, struct{}) (string, error) { return "", errors.New("out of paper") })
	mcp.AddResource(s, mcp.Resource{URI: "lab:door", Name: "door"}, func(context.Context) (string, error) { return "closed", nil })
	mcp.AddTool(s, mcp.Tool{Name: "open"}, func(context.Context, struct{}) (string, error) {
		s.ResourceUpdated("lab:door")
		return "opened", nil
	})
	mcp.AddPrompt(s, mcp.Prompt{Name: "paint", Complete: map[string]mcp.CompleteFunc{"colour": func(_ context.Context, prefix string, _ map[string]string) ([]string, error) {
		return []string{prefix + "d", prefix + "dish"}, nil
	}}}, func(_ context.Context, in struct {
		Colour string `json:"colour"`
	}) (string, error) {
		return "Paint it " + in.Colour + ".", nil
	})
	return s, begun
}

// The wire of each behaviour on each revision that has it, one file for both. Times are those of a
// bubble of synctest, so that polls are the same in each run. The wire of a stream that is resumed
// belongs to HTTP, and not to these frames; that of a task that is cancelled has no fixed order, as
// its notification may come before or after the answer.
func TestGoldenBehaviours(t *testing.T) {
	all := mcp.Revisions()
	for name, tt := range map[string]struct {
		revisions []mcp.Revision
		body      func(ctx context.Context, s *mcp.Session, begun chan struct{})
	}{
		"progress": {all, func(ctx context.Context, s *mcp.Session, _ chan struct{}) {
			s.CallTool(ctx, "count", nil, mcp.OnProgress(func(float64, float64, string) {}))
		}},
		"cancel": {all, func(ctx context.Context, s *mcp.Session, begun chan struct{}) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() { <-begun; cancel() }()
			s.CallTool(ctx, "hang", nil)
		}},
		"task": {[]mcp.Revision{mcp.V2025_11_25, mcp.V2026_07_28}, func(ctx context.Context, s *mcp.Session, _ chan struct{}) {
			task, err := s.StartTask(ctx, "grow", nil)
			if err != nil {
				return
			}
			task.Info(ctx)
			task.Wait(ctx)
		}},
		"subscription": {all, func(ctx context.Context, s *mcp.Session, _ chan struct{}) {
			events := 0
			for range s.Watch(ctx, "lab:door") {
				if events++; events == 2 {
					break
				}
				s.CallTool(ctx, "open", nil)
			}
		}},
		"sampling": {all, func(ctx context.Context, s *mcp.Session, _ chan struct{}) { s.CallTool(ctx, "ask-model", nil) }},
		"roots":    {all, func(ctx context.Context, s *mcp.Session, _ chan struct{}) { s.CallTool(ctx, "ask-roots", nil) }},
		"completion": {all, func(ctx context.Context, s *mcp.Session, _ chan struct{}) {
			s.Complete(ctx, mcp.Feature{Kind: mcp.KindPrompt, Name: "paint"}, "colour", "re", nil)
		}},
		"paging": {all, func(ctx context.Context, s *mcp.Session, _ chan struct{}) {
			for range s.Tools(ctx) {
			}
		}},
		"errors": {all, func(ctx context.Context, s *mcp.Session, _ chan struct{}) {
			s.CallTool(ctx, "fail", nil)
			s.CallTool(ctx, "none", nil)
			s.CallTool(ctx, "ask-user", nil) // the client cannot ask
			s.GetPrompt(ctx, "none", nil)
			s.GetPrompt(ctx, "paint", nil)
			s.ReadResource(ctx, "lab:none")
		}},
	} {
		for _, rev := range tt.revisions {
			t.Run(name+"/"+string(rev), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, begun := lab()
					c := &mcp.Client{Name: "user", Version: "1", LogLevel: slog.LevelInfo,
						OnSample: func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) {
							return &mcp.SampleResult{Role: "assistant", Model: "m", StopReason: "endTurn", Content: []mcp.Content{mcp.Text("pong")}}, nil
						},
						Roots: func(context.Context) ([]mcp.Root, error) { return []mcp.Root{{URI: "file:///lab"}}, nil },
					}
					mcptest.Golden(t, "testdata/"+name+"-"+string(rev)+".txt", srv, c, rev, func(s *mcp.Session) {
						tt.body(t.Context(), s, begun)
						synctest.Wait() // for what nobody waits for, such as cancellations
					})
					srv.Shutdown(t.Context())
				})
			})
		}
	}
}
