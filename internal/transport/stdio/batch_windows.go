package stdio

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/windows"
)

// batch makes cmd.exe run a command that is a batch file, as npx is. Without it, Windows starts
// cmd.exe with arguments that are escaped for other programs, so that one with a quote or a percent
// sign could run commands.
func batch(cmd *exec.Cmd) error {
	if cmd.Err != nil || cmd.Path == "" || cmd.SysProcAttr != nil && cmd.SysProcAttr.CmdLine != "" {
		return nil
	}
	path := cmd.Path
	if cmd.Dir != "" && filepath.VolumeName(path) == "" && !os.IsPathSeparator(path[0]) {
		path = filepath.Join(cmd.Dir, path)
	}
	if found, err := exec.LookPath(path); err == nil {
		path = found // with its extension
	}
	if !isBatch(path) {
		return nil
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	system, err := windows.GetSystemDirectory()
	if err != nil {
		return err
	}
	line, err := batchLine(path, cmd.Args[min(1, len(cmd.Args)):])
	if err != nil {
		return err
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.Path, cmd.SysProcAttr.CmdLine = filepath.Join(system, "cmd.exe"), line
	return nil
}

// isBatch reports whether Windows runs a file with cmd.exe.
func isBatch(path string) bool {
	return slices.Contains([]string{".bat", ".cmd"}, strings.ToLower(filepath.Ext(path)))
}

// plain are the characters, besides letters and digits, that mean themselves to cmd.exe outside of
// quotes.
const plain = `#$*+-./:?@\_`

// batchLine returns the command line with which cmd.exe runs a batch file: the file, and then each
// program that it passes its arguments to, gets exactly args. The path is absolute.
func batchLine(path string, args []string) (string, error) {
	var line strings.Builder
	// Extensions are on, so that a percent sign can be written. Delayed expansion is off, so that an
	// exclamation mark is one. cmd.exe removes the outermost quotes.
	line.WriteString(`cmd.exe /d /e:on /v:off /s /c ""`)
	writeEscaped(&line, path)
	line.WriteByte('"')
	for i, arg := range args {
		if strings.ContainsAny(arg, "\x00\r\n") {
			return "", fmt.Errorf("argument %d, %.60q, has a line break or a zero byte, which cannot be passed to the batch file %q; name the program that it starts instead", i+1, arg, filepath.Base(path))
		}
		line.WriteByte(' ')
		if isPlain(arg) {
			line.WriteString(arg)
			continue
		}
		line.WriteByte('"')
		writeEscaped(&line, arg)
		// Programs read a backslash before a quote as part of it, unless it is doubled.
		line.WriteString(arg[len(strings.TrimRight(arg, `\`)):])
		line.WriteByte('"')
	}
	line.WriteByte('"')
	return line.String(), nil
}

func isPlain(arg string) bool {
	return arg != "" && !strings.HasSuffix(arg, `\`) && strings.IndexFunc(arg, func(r rune) bool {
		return r < 0x80 && !('a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' || strings.ContainsRune(plain, r)) || r == 0xA0
	}) < 0
}

// writeEscaped writes text between quotes.
func writeEscaped(line *strings.Builder, text string) {
	backslashes := 0
	for _, c := range []byte(text) {
		switch c {
		case '%':
			line.WriteString(`%%cd:~,`) // with the next %, no characters of the variable cd
		case '"':
			for range backslashes {
				line.WriteByte('\\')
			}
			line.WriteByte('"') // two quotes are one for programs, and leave cmd.exe between quotes
		}
		line.WriteByte(c)
		if backslashes++; c != '\\' {
			backslashes = 0
		}
	}
}
