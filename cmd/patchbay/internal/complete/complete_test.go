package complete

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestOtherShells lets the installed shells parse their scripts.
func TestOtherShells(t *testing.T) {
	for shell, flags := range map[string][]string{"zsh": {"-n"}, "fish": {"--no-execute"}} {
		t.Run(shell, func(t *testing.T) {
			path, err := exec.LookPath(shell)
			if err != nil {
				t.Skipf("there is no %s", shell)
			}
			cmd := exec.Command(path, flags...)
			cmd.Stdin = strings.NewReader(Script(shell))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", shell, err, out)
			}
		})
	}
}

func TestSplit(t *testing.T) {
	tests := []struct {
		line string
		want []string
		ok   bool
	}{
		{"", []string{""}, true},
		{"a b", []string{"a", "b"}, true},
		{"a b ", []string{"a", "b", ""}, true},
		{`a 'b c' "d\"e" f\ g`, []string{"a", "b c", `d"e`, "f g"}, true},
		{"x | a b", []string{"a", "b"}, true},
		{"a 'b", nil, false},
		{`a "b\"`, nil, false},
		{`a ''`, []string{"a", ""}, true},
	}
	for _, tt := range tests {
		if got, ok := Split(tt.line); ok != tt.ok || !slices.Equal(got, tt.want) {
			t.Errorf("Split(%q) = %q, %v, want %q, %v", tt.line, got, ok, tt.want, tt.ok)
		}
	}
}

// A quote that is open at the cursor is completed inside.
func TestOpenQuote(t *testing.T) {
	list := []Candidate{{Text: "person=3rd singular"}, {Text: `person=3 "$x"`}, {Text: "person=3's"}, {Text: "tense=3"}}
	tests := []struct{ line, want string }{
		{`patchbay call conjugate "person=3`, "person=3rd singular\n" + `person=3 \"\$x\"` + "\nperson=3's\n"},
		{`patchbay call conjugate person="3`, "3rd singular\n" + `3 \"\$x\"` + "\n3's\n"},
		{`patchbay call conjugate person='3rd s`, "3rd singular\n"},
	}
	for _, tt := range tests {
		var out strings.Builder
		r, ok := Parse([]string{"bash", tt.line, " \t\n\"'><=;|&(:"})
		if !ok {
			t.Errorf("%s: nothing to complete", tt.line)
			continue
		}
		if r.Write(&out, list); out.String() != tt.want {
			t.Errorf("%s: got\n%swant\n%s", tt.line, out.String(), tt.want)
		}
	}
}

// The name of a server must not become a command of the shell.
func TestForBash(t *testing.T) {
	tests := []struct{ candidate, current, want string }{
		{"evil$(rm -rf)`x`;'\"", "ev", "evil\\$\\(rm\\ -rf\\)\\`x\\`\\;\\'\\\""},
		{"size=small", "size=s", "small"},
		{"http://x/y", "http:", "//x/y"},
		{"日本", "", "日本"},
	}
	for _, tt := range tests {
		if got := forBash(tt.candidate, tt.current, " \t\n\"'><=;|&(:"); got != tt.want {
			t.Errorf("forBash(%q, %q) = %s, want %s", tt.candidate, tt.current, got, tt.want)
		}
	}
}
