package chat

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/tmux"
)

func TestEditorCommand(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my editors")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "ed.exe")
	if err := os.WriteFile(own, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	standard := map[bool]string{true: "notepad", false: "vi"}[runtime.GOOS == "windows"]
	for _, tt := range []struct {
		visual, editor string
		want           []string
	}{
		{"", "", []string{standard}},
		{"code --wait", "nano", []string{"code", "--wait"}},
		{" ", "nano", []string{"nano"}},
		{own, "", []string{own}},
		{`"` + own + `" -f`, "", []string{own, "-f"}},
		{`ed '$(touch x)' ;`, "", []string{"ed", "$(touch x)", ";"}},
		{`"ed`, "", nil},
	} {
		got, err := editorCommand(func(name string) string {
			return map[string]string{"VISUAL": tt.visual, "EDITOR": tt.editor}[name]
		})
		if !slices.Equal(got, tt.want) || (err != nil) != (tt.want == nil) {
			t.Errorf("editor of VISUAL=%q EDITOR=%q = %q, %v; want %q", tt.visual, tt.editor, got, err, tt.want)
		}
	}
}

// ctrl-X ctrl-E opens the message in an editor, on the chat's terminal, and takes what it wrote. ctrl-C
// in an editor does not end the chat. A failed editor leaves the message. Nothing of it is left on disk.
func TestExternalEditor(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "edit")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(script, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	temp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(temp, 0o700); err != nil {
		t.Fatal(err)
	}
	write(`[ "$1" = -x ] || exit 9
ls -ld "$(dirname "$2")" "$2" | cut -c1-10 >"$(dirname "$0")/modes"
echo "editing: $(cat "$2")"; read word; printf '%s\nsecond 日本\n\n' "$word" >>"$2"`)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	x := tmux.Start(t, 80, 24, []string{stage + "=talk", "VISUAL=" + script + " -x", "TMPDIR=" + temp}, "sh", "-c", `"$0"; stty -a | grep -o -e "-*isig"`, self)
	x.Wait(prompted)
	x.Type("draft ")
	x.Press("C-x", "C-e")
	x.Wait(`(?m)^editing: draft`)
	x.Press("C-c")
	x.Type("first")
	x.Press("Enter")
	x.Wait(`❯ draft .*first\n  second 日本\n`)
	x.Press("Enter")
	x.Wait(`You said: draft`)
	if modes, err := os.ReadFile(filepath.Join(dir, "modes")); err != nil || string(modes) != "drwx------\n-rw-------\n" {
		t.Errorf("the file and its folder have the modes %q, %v", modes, err)
	}
	write("exit 3")
	x.Type("kept")
	x.Press("C-x", "C-e")
	x.Wait(`the message is unchanged:[\s\S]*exit\s+status 3[\s\S]*❯ kept`)
	x.Press("C-e")
	x.Type("!")
	x.Wait(`❯ kept!`)
	x.Press("C-c", "C-c")
	x.Wait(`(?m)^isig\nexit 0$`) // the terminal is as before
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
}
