package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"

	"github.com/patchbay-dev/patchbay/mcp"
)

// A tool asks the language model of its caller.
func ExampleSample() {
	srv := &mcp.Server{Name: "notes"}
	mcp.AddTool(srv, mcp.Tool{Name: "summarize"}, func(ctx context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		res, err := mcp.Sample(ctx, &mcp.SampleRequest{
			SystemPrompt: "Summarize in one word.",
			Messages:     []mcp.SampleMessage{{Role: "user", Content: []mcp.Content{mcp.Text(in.Text)}}},
			MaxTokens:    100,
		})
		if errors.Is(err, mcp.ErrNotSupported) {
			return in.Text, nil // the caller has no model
		}
		if err != nil {
			return "", err
		}
		return res.Text(), nil
	})

	client := &mcp.Client{OnSample: func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
		fmt.Println("the model is asked:", r.SystemPrompt) // ask one here
		return &mcp.SampleResult{Role: "assistant", Model: "small", StopReason: "endTurn", Content: []mcp.Content{mcp.Text("Rain.")}}, nil
	}}
	s, err := client.Open(context.Background(), srv)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println(mcp.CallAs[string](context.Background(), s, "summarize", map[string]string{"text": "It rained all week."}))
	// Output:
	// the model is asked: Summarize in one word.
	// Rain. <nil>
}

func ExampleConfirm() {
	srv := &mcp.Server{Name: "disk"}
	mcp.AddTool(srv, mcp.Tool{Name: "erase"}, func(ctx context.Context, _ struct{}) (string, error) {
		yes, err := mcp.Confirm(ctx, "Erase the disk?")
		if errors.Is(err, mcp.ErrDeclined) || err == nil && !yes {
			return "kept", nil
		}
		if err != nil {
			return "", err
		}
		return "erased", nil
	})
	client := &mcp.Client{OnElicit: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		fmt.Println(r.Message)
		return nil, mcp.ErrDeclined
	}}
	s, err := client.Open(context.Background(), srv)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println(mcp.CallAs[string](context.Background(), s, "erase", nil))
	// Output:
	// Erase the disk?
	// kept <nil>
}

func ExampleRoots() {
	srv := &mcp.Server{Name: "files"}
	mcp.AddTool(srv, mcp.Tool{Name: "where"}, func(ctx context.Context, _ struct{}) (string, error) {
		roots, err := mcp.Roots(ctx)
		if err != nil || len(roots) == 0 {
			return "nowhere", err
		}
		return roots[0].URI, nil
	})
	client := &mcp.Client{Roots: func(context.Context) ([]mcp.Root, error) {
		return []mcp.Root{{URI: "file:///home/ada/work", Name: "work"}}, nil
	}}
	s, err := client.Open(context.Background(), srv)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	fmt.Println(mcp.CallAs[string](context.Background(), s, "where", nil))
	// Output: file:///home/ada/work <nil>
}

// Log records of a tool reach its caller, at the level that the caller asks for.
func ExampleLog() {
	srv := &mcp.Server{Name: "backup"}
	mcp.AddTool(srv, mcp.Tool{Name: "save"}, func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Log(ctx).Debug("looking at files")
		mcp.Log(ctx).Warn("file skipped", "path", "a.tmp")
		return "saved", nil
	})
	s, err := (&mcp.Client{LogLevel: slog.LevelInfo}).Open(context.Background(), srv)
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	res, err := s.CallTool(context.Background(), "save", nil, mcp.OnLog(func(m mcp.LogMessage) {
		fmt.Println(m.Level, string(m.Data))
	}))
	fmt.Println(res.Text(), err)
	// Output:
	// WARN {"message":"file skipped","path":"a.tmp"}
	// saved <nil>
}
