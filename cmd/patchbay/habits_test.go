package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/complete"
)

// TestHintsRun runs the hint of each error (trap 47): it is a valid command with the flags that
// were typed.
func TestHintsRun(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(name, t.TempDir())
	}
	if err := os.WriteFile("c.json", []byte(`{"mcpServers": {"mine": {"builtin": "shop"}, "other": {"builtin": "sqlite"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		typed []string
		hint  string
		code  int // of the hint
	}{
		{[]string{"tools", "nothing", "-s", "mine", "--config", "c.json"}, "patchbay tools -s mine --config c.json", exitOK},
		{[]string{"tools", "--config=c.json"}, "patchbay tools -s mine --config c.json", exitOK},
		{[]string{"call", "categories", "--config", "c.json"}, "patchbay call categories -s mine --config c.json", exitOK},
		{[]string{"call", "categories", "--json", "--x", "1", "-s", "shop"}, "patchbay call categories --json x=1 -s shop", exitUsage}, // the tool has no x
		{[]string{"call", "products"}, "patchbay call products -s shop", exitOK},
		{[]string{"config", "remove", "nobody", "--config", "c.json"}, "patchbay config list --config c.json", exitOK},
		{[]string{"config", "add", "mine", "shop", "--config", "c.json"}, "patchbay config remove mine --config c.json", exitOK},
		{[]string{"prompts", "nothing", "-s", "everything", "--revision", "2025-06-18"}, "patchbay prompts -s everything --revision 2025-06-18", exitOK},
		{[]string{"tools", "x", "--header", "Authorization: Bearer sekrit", "-s", "everything"}, `patchbay tools -s everything --header "Authorization: $TOKEN"`, exitOK},
		{[]string{"tools", "--headr", "x"}, "patchbay help tools", exitOK},
		{[]string{"tools", "-s"}, "patchbay tools -s everything", exitOK},
		{[]string{"serve"}, "patchbay serve everything", exitOK},
	} {
		t.Run(strings.Join(tt.typed, " "), func(t *testing.T) {
			var said strings.Builder
			if code := run(t.Context(), tt.typed, strings.NewReader(""), io.Discard, &said); code == exitOK {
				t.Fatal("it succeeded, want an error with a hint")
			}
			_, hint, _ := strings.Cut(said.String(), "hint: ")
			hint = strings.TrimSuffix(hint, "\n")
			if hint != tt.hint {
				t.Fatalf("hint %q, want %q", hint, tt.hint)
			}
			words, ok := complete.Split(hint)
			if !ok {
				t.Fatalf("the hint %q cannot be taken apart", hint)
			}
			said.Reset()
			if words[1] == "serve" {
				return // it would serve the standard input of the test
			}
			if code := run(t.Context(), words[1:], strings.NewReader(""), io.Discard, &said); code != tt.code {
				t.Errorf("pasted %q: exit code %d, want %d: %s", hint, code, tt.code, said.String())
			}
		})
	}
}

// A host and port in the place of a tool is the server that the person means.
func TestServerAloneIsAnAddress(t *testing.T) {
	ownFolders(t)
	t.Chdir(t.TempDir())
	for name, alone := range map[string]bool{"localhost:7420/mcp": true, "127.0.0.1:7420": true, "create-product": false, "files/read": false} {
		a, _ := testApp(t)
		left := a.serverAlone(name)
		if (left == "") != alone || alone && a.Server != name {
			t.Errorf("serverAlone(%q) = %q, server %q", name, left, a.Server)
		}
		if _, err := a.target(); alone && (err == nil || !strings.Contains(err.Error(), "did you mean the URL http://"+name)) {
			t.Errorf("the error about %q is %v", name, err)
		}
	}
}
