package chat

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"

	"github.com/patchbay-dev/patchbay/cmd/patchbay/internal/terminal"
)

const (
	maxEdited  = 1 << 20         // bytes of a message from an editor
	editorTime = 5 * time.Second // for an editor to end when the chat ends
)

// editorCommand returns the command of the person's editor: that of $VISUAL or $EDITOR, which may have
// arguments, else vi or notepad. It is split into words as a shell does, but no shell runs, so that
// nothing in it is expanded.
func editorCommand(env func(string) string) ([]string, error) {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		value := strings.TrimSpace(env(name))
		if value == "" {
			continue
		}
		if _, err := exec.LookPath(value); err == nil { // a path with spaces
			return []string{value}, nil
		}
		if runtime.GOOS == "windows" {
			value = strings.ReplaceAll(value, `\`, `\\`)
		}
		words, err := split(value)
		if err != nil {
			return nil, fmt.Errorf("$%s: %w", name, err)
		}
		return words, nil
	}
	if runtime.GOOS == "windows" {
		return []string{"notepad"}, nil
	}
	return []string{"vi"}, nil
}

// edited is the end of an editor.
type edited struct {
	text string
	err  error
}

// edit opens the input in the person's editor. The input changes when the editor ends without an error.
func (u *ui) edit() tea.Cmd {
	if u.external == nil {
		return nil
	}
	words, err := editorCommand(os.Getenv)
	if err != nil {
		u.note("%v", err)
		return nil
	}
	text := u.input.String()
	u.menu.close()
	return u.external(func(in, out *os.File) (string, error) { return runEditor(u.c.ctx, words, text, in, out) })
}

// runEditor has the person edit a text on a terminal. The file is in a folder that only they can read.
func runEditor(ctx context.Context, words []string, text string, in, out *os.File) (string, error) {
	dir, err := os.MkdirTemp("", "patchbay-message-")
	if err != nil {
		return "", err
	}
	keep := false
	defer func() {
		if !keep {
			os.RemoveAll(dir)
		}
	}()
	file := filepath.Join(dir, "message.md")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], file)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, out
	cmd.Cancel = func() error {
		if cmd.Process.Signal(syscall.SIGTERM) == nil { // an editor may keep what was written
			return nil
		}
		return cmd.Process.Kill()
	}
	cmd.WaitDelay = editorTime
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("the message is unchanged: %s: %w; $VISUAL or $EDITOR names the editor", words[0], err)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("the message is unchanged: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEdited+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("the message is unchanged: %w", err)
	case len(data) > maxEdited:
		keep = true
		return "", fmt.Errorf("the message is unchanged: more than %d MiB; the text stays in %s", maxEdited>>20, file)
	case !utf8.Valid(data):
		keep = true
		return "", errors.New("the message is unchanged: what was written is not UTF-8; it stays in " + file)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// written takes the text from the editor.
func (u *ui) written(e edited) {
	if e.err != nil {
		u.note("%v", e.err)
		return
	}
	u.input.set(e.text)
}

// otherProgram is another program on the terminal, while the chat is paused.
type otherProgram struct {
	run           func() (string, error)
	release, back func()
	end           edited
}

func (g *otherProgram) Run() error {
	g.release()
	defer g.back()
	g.end.text, g.end.err = g.run()
	return nil
}

func (g *otherProgram) SetStdin(io.Reader)  {}
func (g *otherProgram) SetStdout(io.Writer) {}
func (g *otherProgram) SetStderr(io.Writer) {}

// otherPrograms returns the function that runs another program on the terminal of a painter.
func otherPrograms(p *painter, in, out *os.File, state func() *terminal.RawState, back func()) func(func(in, out *os.File) (string, error)) tea.Cmd {
	return func(run func(in, out *os.File) (string, error)) tea.Cmd {
		g := &otherProgram{
			run: func() (string, error) { return run(in, out) },
			release: func() {
				p.pause()
				state().Release()
			},
			back: func() {
				state().Restore() // what Raw finds is what the chat leaves at its end
				back()
			},
		}
		return tea.Exec(g, func(error) tea.Msg { return g.end })
	}
}
