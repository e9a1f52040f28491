package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestPrompts(t *testing.T) {
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		res, err := s.GetPrompt(t.Context(), "caption", map[string]string{"style": "brief"})
		if err != nil || len(res.Messages) != 3 {
			t.Fatalf("caption = %v, %v", res, err)
		}
		picture, ok := res.Messages[1].Content.(mcp.ImageContent)
		if !ok || picture.MIMEType != "image/gif" || !bytes.Equal(picture.Data, dot) {
			t.Errorf("the picture is %v", res.Messages[1].Content)
		}
		if rules, ok := res.Messages[2].Content.(mcp.EmbeddedResource); !ok || !strings.HasPrefix(rules.Resource.Text, "At most") {
			t.Errorf("the rules are %v", res.Messages[2].Content)
		}
		if _, err := s.GetPrompt(t.Context(), "caption", map[string]string{"style": "sad"}); err == nil || !strings.Contains(err.Error(), "must be one of brief, formal, funny") {
			t.Errorf("a style that is not there: %v", err)
		}
		values, err := s.Complete(t.Context(), mcp.Feature{Kind: mcp.KindPrompt, Name: "caption"}, "style", "f", nil)
		if err != nil || !slices.Equal(values.Values, []string{"formal", "funny"}) {
			t.Errorf("completion = %v, %v", values, err)
		}
	})
}
