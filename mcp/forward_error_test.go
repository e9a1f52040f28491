package mcp_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

// A legacy caller with a user interface that fails dismisses the question of a modern server
// behind: in the modern era an error cannot be the answer to a question (T-24).
func TestForwardedQuestionThatFails(t *testing.T) {
	back := &mcp.Server{Name: "back", Version: "1"}
	type form struct {
		Color string `json:"color"`
	}
	mcp.AddTool(back, mcp.Tool{Name: "ask"}, func(ctx context.Context, _ struct{}) (string, error) {
		_, err := mcp.Elicit[form](ctx, "Which color?")
		if errors.Is(err, mcp.ErrDismissed) {
			return "dismissed", nil
		}
		return "", err
	})
	mid := mcptest.Connect(t, back, &mcp.Client{Name: "mid", Version: "1"}, mcp.V2026_07_28)
	caller := &mcp.Client{Name: "front", Version: "1", OnElicit: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return nil, errors.New("the display is broken")
	}}
	front := mcptest.Connect(t, &mcp.Server{Name: "gw", Version: "1", Handler: mid}, caller, mcp.V2025_11_25)
	res, err := front.CallTool(t.Context(), "ask", nil)
	if err != nil || !strings.Contains(res.Text(), "dismissed") {
		t.Errorf("call = %v, %v, want the tool to see a dismissed question", res, err)
	}
}
