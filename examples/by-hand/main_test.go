package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/mcp"
	"github.com/patchbay-dev/patchbay/mcptest"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "serve" { // the test started itself as the server
		main()
		return
	}
	m.Run()
}

// A client of the SDK drives the server on both revisions, and finds no fault in its frames.
func TestByHand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, rev := range []mcp.Revision{legacy, modern, ""} {
		client := &mcp.Client{Name: "test", Version: "1", OnFrame: mcptest.Check(t, rev, true, nil)}
		if rev != "" {
			client.Revisions = []mcp.Revision{rev}
		}
		s, err := client.Start(t.Context(), exec.CommandContext(context.Background(), self, "serve"))
		if err != nil {
			t.Fatalf("%s: %v", rev, err)
		}
		if got := s.Revision(); got != rev && rev != "" || rev == "" && got != modern {
			t.Errorf("the revision is %s, want %s", got, rev)
		}
		if name := s.Server().Name; name != "by-hand" {
			t.Errorf("%s: the name is %q", rev, name)
		}
		var tools []string
		for tool, err := range s.Tools(t.Context()) {
			if err != nil {
				t.Fatalf("%s: %v", rev, err)
			}
			tools = append(tools, tool.Name)
		}
		if !slices.Equal(tools, []string{"shout"}) {
			t.Errorf("%s: the tools are %q", rev, tools)
		}
		if got, err := mcp.CallAs[string](t.Context(), s, "shout", map[string]string{"text": "hello"}); err != nil || got != "HELLO!" {
			t.Errorf("%s: shout = %q, %v", rev, got, err)
		}
		if res, err := s.CallTool(t.Context(), "shout", map[string]int{"text": 1}); err != nil || !res.IsError {
			t.Errorf("%s: shout of a number = %v, %v", rev, res, err)
		}
		if _, err := s.CallTool(t.Context(), "whisper", nil); err == nil {
			t.Errorf("%s: a tool that is not there was called", rev)
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: Close: %v", rev, err)
		}
	}
}

// The exchanges in docs/wire.md are what the server says, byte for byte.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	var in, want, got bytes.Buffer
	for line := range strings.Lines(string(page)) {
		if sent, ok := strings.CutPrefix(line, "→ "); ok {
			in.WriteString(sent)
		} else if answer, ok := strings.CutPrefix(line, "← "); ok {
			want.WriteString(answer)
		}
	}
	if err := serve(&in, &got); err != nil {
		t.Fatal(err)
	}
	if want.Len() == 0 || got.String() != want.String() {
		t.Errorf("the page has\n%s\nand the server says\n%s", &want, &got)
	}
}
