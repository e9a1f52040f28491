package chat

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/patchbay-dev/patchbay/host"
)

// inLines runs a chat in lines with the actor and the theatre, and returns its output and its
// panic.
func inLines(t *testing.T, lines ...string) (out string, panicked string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		h := &host.Host{Model: actor{}}
		defer h.Close()
		c := New(h, Options{Lines: true})
		if err := h.Add(theatre(ctx)); err != nil {
			t.Fatal(err)
		}
		read := func(context.Context) (string, error) {
			if len(lines) == 0 {
				return "", io.EOF
			}
			line := lines[0]
			lines = lines[1:]
			return line, nil
		}
		var b strings.Builder
		defer func() {
			out = b.String()
			if v := recover(); v != nil {
				panicked = fmt.Sprint(v)
			}
		}()
		if err := c.Lines(ctx, read, &b); err != nil {
			t.Errorf("Lines: %v", err)
		}
	})
	return out, panicked
}

// TestLineThatGoesOn joins a line that ends in a backslash and the next one, if there is one.
func TestLineThatGoesOn(t *testing.T) {
	out, _ := inLines(t, `one\`, `two`, `three\`)
	if !strings.Contains(out, "You said: one\ntwo\n") || !strings.Contains(out, "You said: three\n") {
		t.Errorf("two messages, the first of two lines, came out as:\n%s", out)
	}
}

// TestListsInLines: lists are as wide as their content.
func TestListsInLines(t *testing.T) {
	out, _ := inLines(t, "/resources", "/prompts", "/tools", "/servers", "/help")
	if !strings.Contains(out, "theatre:play://programme") {
		t.Errorf("the resource is not listed:\n%s", out)
	}
	for line := range strings.Lines(out) {
		if len(line) > 200 {
			t.Errorf("a line of %d characters: %.100q", len(line), line)
		}
	}
}

// TestPanicInLines: a panic ends the chat, and the error has the stack.
func TestPanicInLines(t *testing.T) {
	_, panicked := inLines(t, "panic")
	if !strings.Contains(panicked, "the actor fell off the stage") || !strings.Contains(panicked, "stage_test.go") {
		t.Errorf("Lines panics with %q", panicked)
	}
}
