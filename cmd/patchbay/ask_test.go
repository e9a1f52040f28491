package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// atTerminal runs the program as if a person typed input at a terminal without colours.
func atTerminal(t *testing.T, input string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	t.Setenv("HOME", t.TempDir()) // without the configuration of the person who runs the tests
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	var out, talk strings.Builder
	a := newApp(t.Context(), strings.NewReader(input), &out, &talk)
	a.tty = terminals{in: true, out: true, err: true, width: 80, errWidth: 80}
	a.talk.Width = 80
	code = a.run(args)
	return out.String(), talk.String(), code
}

// TestFormInTerminal fills in a form with every kind of field, with mistakes, and changes an answer
// before it is sent.
//
// Ledger: ELIC-26-003, ELIC-26-004, ELIC-26-005, ELIC-26-014, ELIC-26-029, ELIC-26-030, ELIC-2506-002, -003.
func TestFormInTerminal(t *testing.T) {
	input := strings.Join([]string{
		"2",              // untitledSingle by number
		"nope", "second", // titledSingle by an unknown name, by the wrong name,
		"Second option",         // and by its title
		"",                      // legacyEnum is left out
		"1, option3",            // untitledMulti by number and name
		"value1",                // titledMulti by value
		"edit",                  // change the answers first
		"", ":skip", "", "", "", // the second is left out
		"y",
	}, "\n") + "\n"
	stdout, stderr, code := atTerminal(t, input, "call", "everything/test_elicitation_sep1330_enums")
	golden(t, "enums", stderr)
	want := `Elicitation completed: action=accept, content={"titledMulti":["value1"],"untitledMulti":["option1","option3"],"untitledSingle":"option2"}` + "\n"
	if stdout != want || code != 0 {
		t.Errorf("printed %q with exit code %d, want %q with 0", stdout, code, want)
	}
}

// TestDefaultsInTerminal accepts the defaults of a form with Enter (ELIC-26-014); invalid values
// are asked for again.
func TestDefaultsInTerminal(t *testing.T) {
	stdout, stderr, code := atTerminal(t, "\nold\n31\n\n\n\n\n", "call", "everything/test_elicitation_sep1034_defaults")
	golden(t, "defaults", stderr)
	if code != 0 || !strings.Contains(stdout, `action=accept`) || !strings.Contains(stdout, `"age":31`) {
		t.Errorf("printed %q with exit code %d, want the defaults but for the age", stdout, code)
	}
}

// TestRefusalInTerminal declines and cancels at every step (ELIC-26-004).
func TestRefusalInTerminal(t *testing.T) {
	tests := []struct{ name, input, want string }{
		{"word for decline", ":decline\n", "action=decline"},
		{"word for cancel", "Ada\n:cancel\n", "action=cancel"},
		{"end of input", "", "action=cancel"},
		{"end of input later", "Ada\n", "action=cancel"},
		{"no at the review", "Ada\nada@example.com\nn\n", "action=decline"},
		{"cancel at the review", "Ada\nada@example.com\n:cancel\n", "action=cancel"},
		{"accepted", "Ada\nada@example.com\n\n", "action=accept"},
		{"a word in the text is text", ":decline me\nada@example.com\n\n", "action=accept"},
		{"nothing where something is required", "\nAda\nada@example.com\n\n", "action=accept"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, revision := range []string{"2025-06-18", "2026-07-28"} {
				stdout, stderr, _ := atTerminal(t, tt.input, "call", "everything/test_elicitation", "message=Who?", "--revision", revision)
				if !strings.Contains(stdout, tt.want) {
					t.Errorf("%s: typed %q, printed %q, want %s in it; the dialog was:\n%s", revision, tt.input, stdout, tt.want, stderr)
				}
			}
		})
	}
}

// TestPageInTerminal shows a page to visit and asks for consent.
//
// Ledger: ELIC-26-006, ELIC-26-037, ELIC-26-038, ELIC-26-040.
func TestPageInTerminal(t *testing.T) {
	page := "https://login.example.com/start?id=1"
	for input, want := range map[string]string{"y\n": "agreed", "what\nn\n": "did not want", "": "did not want"} {
		stdout, stderr, _ := atTerminal(t, input, "call", "everything/visit_page", "url="+page)
		if !strings.Contains(stderr, "\n  "+page+"\n") || !strings.Contains(stderr, "page is at login.example.com.") {
			t.Errorf("the question %q does not show the whole URL and its host", stderr)
		}
		if !strings.Contains(stdout, want) && !(input == "y\n" && !strings.Contains(stdout, "did not want")) {
			t.Errorf("typed %q, printed %q, want %q in it", input, stdout, want)
		}
	}
}

// TestTerminalIsNotObeyed: control characters in text of a server, which would move the cursor or
// change colours, are made visible.
func TestTerminalIsNotObeyed(t *testing.T) {
	stdout, _, _ := atTerminal(t, "", "call", "everything/echo", `{"message":"\u001b[31mred\u009b2J\u202e"}`)
	if strings.ContainsAny(stdout, "\x1b\u009b\u202e") {
		t.Errorf("printed %q to a terminal, want no control characters", stdout)
	}
	if !strings.Contains(stdout, "␛[31mred") {
		t.Errorf("printed %q, want the text with a picture of the control character", stdout)
	}
}

// golden compares a dialog with a file. PATCHBAY_UPDATE=1 writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "dialog", name+".txt")
	if os.Getenv("PATCHBAY_UPDATE") != "" {
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the dialog differs from %s (-want +got):\n%s", path, diff)
	}
}
