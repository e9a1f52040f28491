package stdio

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/patchbay-dev/patchbay/internal/wine"
)

func init() {
	if os.Getenv("STDIO_TEST") == "args" {
		json.NewEncoder(os.Stdout).Encode(ownArgs())
		lines(func(string) {})
		os.Exit(0)
	}
}

// ownArgs returns the arguments of this process as the C runtime of Windows reads them, and with it
// node and Python: between quotes, two quotes are one. For Go they also end the quotes.
func ownArgs() (args []string) {
	arg, quoted, began := []byte(nil), false, false
	line := windows.UTF16PtrToString(windows.GetCommandLine())
	for i := 0; i <= len(line); i++ {
		backslashes := len(line[i:]) - len(strings.TrimLeft(line[i:], `\`))
		i += backslashes
		quote := i < len(line) && line[i] == '"'
		if quote {
			arg = append(arg, line[i-backslashes:i-backslashes+backslashes/2]...)
		} else {
			arg = append(arg, line[i-backslashes:i]...)
		}
		began = began || backslashes > 0
		switch {
		case quote && (backslashes%2 == 1 || quoted && strings.HasPrefix(line[i:], `""`)):
			arg = append(arg, '"')
			i += 1 - backslashes%2
		case quote:
			quoted, began = !quoted, true
		case i < len(line) && (quoted || line[i] != ' ' && line[i] != '\t'):
			arg, began = append(arg, line[i]), true
		case began:
			args, arg, began = append(args, string(arg)), nil, false
		}
	}
	return args[1:]
}

// A batch file, found by its name without an extension, passes on its arguments as they are, and
// none of them runs a command.
func TestBatchFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "the programs (x86)")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	script := "@echo off\r\n\"" + strings.ReplaceAll(os.Args[0], "%", "%%") + "\" %*\r\n"
	if err := os.WriteFile(filepath.Join(dir, "tool.cmd"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+";"+os.Getenv("PATH"))
	t.Setenv("STDIO_SECRET", "expanded")
	for _, args := range [][]string{
		nil,
		{"-y", "@scope/server@1.0", `C:\Users\me\Documents`},
		{"two words", "", `C:\Program Files\`, "tab\there", "é日"},
		{`{"a":"b c"}`, `say "hi"`, `back\"slash`, `"`, `\\"`},
		{"a&echo b", "x|y", "<in", ">out", "^caret", "(p)", "a=b,c;d", "!x!", "~"},
		{`"&echo injected&"`, `x" & echo injected`},
		{"%STDIO_SECRET%", "100%", `"%STDIO_SECRET%"`, "%%", "%1"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			if strings.Contains(strings.Join(args, ""), "%") {
				wine.Skip(t, "its cmd.exe does not know %variable:~,%")
			}
			for _, name := range []string{"tool", filepath.Join(dir, "tool"), filepath.Join(dir, "tool.cmd")} {
				var line []byte
				err := wine.Retry(func() error {
					cmd := exec.Command(name, args...)
					cmd.Env = append(os.Environ(), "STDIO_TEST=args")
					child, err := Start(cmd, 0, nil)
					if err != nil {
						return err
					}
					t.Cleanup(func() { child.Conn().Close() })
					line, err = child.Conn().Read(nil)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				if json.Unmarshal(line, &got) != nil || !slices.Equal(got, args) {
					t.Errorf("%s got %s, want %q", name, line, args)
				}
			}
		})
	}
	if _, err := Start(exec.Command("tool", "one\ntwo"), 0, nil); err == nil || !strings.Contains(err.Error(), `argument 1, "one\ntwo", has a line break`) {
		t.Errorf("Start with a line break: %v", err)
	}
}
