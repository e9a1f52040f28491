package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// The caller's model writes the result, on every revision.
func TestSummary(t *testing.T) {
	model := func(_ context.Context, r *mcp.SampleRequest) (*mcp.SampleResult, error) {
		if text := r.Messages[0].Content[0].(mcp.TextContent).Text; !strings.HasSuffix(text, "All is well.") || r.MaxTokens != 200 {
			t.Errorf("the model is asked %q, for %d tokens", text, r.MaxTokens)
		}
		return &mcp.SampleResult{Role: "assistant", Model: "test", Content: []mcp.Content{mcp.Text("Fine.")}}, nil
	}
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{OnSample: model} }, func(t *testing.T, s *mcp.Session) {
		if got, err := mcp.CallAs[string](t.Context(), s, "summarise", Article{"All is well."}); err != nil || got != "Fine." {
			t.Errorf("summarise = %q, %v", got, err)
		}
	})
}

// A refusal is an answer that a model can act on. Toward 2026-07-28 it ends the call of the client.
func TestRefusal(t *testing.T) {
	for _, rev := range mcp.Revisions() {
		refuse := func(context.Context, *mcp.SampleRequest) (*mcp.SampleResult, error) { return nil, mcp.ErrDeclined }
		s := mcptest.Connect(t, newServer(), &mcp.Client{OnSample: refuse}, rev)
		_, err := mcp.CallAs[string](t.Context(), s, "summarise", Article{"All is well."})
		if err == nil || rev < mcp.V2026_07_28 != strings.Contains(err.Error(), "read the text itself") || rev == mcp.V2026_07_28 && !errors.Is(err, mcp.ErrDeclined) {
			t.Errorf("%s: a user who refuses: %v", rev, err)
		}
	}
}
