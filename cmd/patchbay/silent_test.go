package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// A command without output says why (trap 25): one that waits at a terminal for a host's messages,
// and a call whose result has no content.
func TestOnIdleIsExplained(t *testing.T) {
	var out, stderr strings.Builder
	a := newApp(t.Context(), strings.NewReader(""), &out, &stderr)
	a.noteStdio()
	if stderr.Len() > 0 {
		t.Errorf("without a terminal it says %q", &stderr)
	}
	a.tty.in = true
	a.noteStdio()
	if !strings.Contains(stderr.String(), "waiting for MCP messages on standard input") {
		t.Errorf("at a terminal it says %q", &stderr)
	}
	for result, want := range map[string]bool{
		`{"content":[]}`: true,
		`{"content":[{"type":"text","text":"x"}]}`:        false,
		`{"content":[],"structuredContent":{"answer":1}}`: false,
	} {
		stderr.Reset()
		if err := a.showResult(json.RawMessage(result), ""); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(stderr.String(), "without content"); got != want {
			t.Errorf("%s: said so %v, want %v: %q", result, got, want, &stderr)
		}
	}
}
