package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func newServer() *mcp.Server {
	srv := &mcp.Server{Name: "kiosk"}
	mcp.AddTool(srv, mcp.Tool{Name: "order", Description: "Order a drink"}, func(_ context.Context, in struct {
		Drink string `json:"drink" enum:"tea,milk"`
		Cups  int    `json:"cups" min:"1" doc:"how many"`
		Note  string `json:"note,omitempty"`
	}) (string, error) {
		if in.Cups > 9 {
			return "", errors.New("the pot holds 9 cups")
		}
		return fmt.Sprint(in.Cups, " ", in.Drink, in.Note), nil
	})
	return srv
}

// A choice and the arguments make a call; an argument that does not fit is asked for again.
func TestUse(t *testing.T) {
	mcptest.Every(t, newServer, func() *mcp.Client { return &mcp.Client{} }, func(t *testing.T, s *mcp.Session) {
		var out bytes.Buffer
		got, err := use(t.Context(), s, strings.NewReader("1\ntea\nmany\n2\n\n"), &out)
		if err != nil || got != "2 tea" {
			t.Errorf("use = %q, %v, after\n%s", got, err, &out)
		}
		if !strings.Contains(out.String(), "1 order - Order a drink") || strings.Count(out.String(), "cups (integer) how many: ") != 2 {
			t.Errorf("the user saw\n%s", &out)
		}
	})
}

func TestBadChoice(t *testing.T) {
	s := mcptest.Connect(t, newServer(), &mcp.Client{}, mcp.V2026_07_28)
	if _, err := use(t.Context(), s, strings.NewReader("2\n"), io.Discard); err == nil || !strings.Contains(err.Error(), `"2" is not a number from 1 to 1`) {
		t.Errorf("tool 2 of 1: %v", err)
	}
	if _, err := use(t.Context(), s, strings.NewReader("1\ntea\n10\n\n"), io.Discard); err == nil || err.Error() != "the pot holds 9 cups" {
		t.Errorf("a tool that fails: %v", err)
	}
	if _, err := use(t.Context(), s, strings.NewReader("1\n"), io.Discard); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the input ends early: %v", err)
	}
}
