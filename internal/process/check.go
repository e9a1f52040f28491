package process

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/patchbay-dev/patchbay/config"
	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// Check returns an error for a command that does not exist or would not speak over stdio, to
// distinguish it from a server that ends at once.
func Check(s config.Server) error {
	if s.Dir != "" {
		if info, err := os.Stat(s.Dir); err != nil || !info.IsDir() {
			return fmt.Errorf("the folder to start in, %q, does not exist", s.Dir)
		}
	}
	name := s.Command
	if setsPath(s.Env) && !strings.ContainsRune(name, filepath.Separator) {
		return nil // package guard finds it or reports the error
	}
	if s.Dir != "" && strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		name = filepath.Join(s.Dir, name)
	}
	if _, err := exec.LookPath(name); err != nil && !errors.Is(err, exec.ErrDot) {
		if words := strings.Fields(s.Command); len(words) > 1 && !isMissingPath(words[0]) {
			list, _ := jsonx.Marshal(words[1:])
			return &notFound{fmt.Sprintf("the command %q was not found or cannot be run; it has a space: write \"command\": %q, \"args\": %s", s.Command, words[0], list), err}
		}
		text := fmt.Sprintf("the command %q was not found or cannot be run", s.Command)
		if os.Getenv("PATCHBAY_IMAGE") == "scratch" {
			text += "; this container image has no other programs than patchbay, so it has remote and built-in servers only: use the image with Node, or one of your own"
		}
		return &notFound{text, err}
	} else if err != nil {
		return fmt.Errorf("%q is in the current folder; write %q to run it", s.Command, "."+string(filepath.Separator)+s.Command)
	}
	return CheckSelf(s.CommandLine())
}

// isMissingPath reports whether a word is a path that does not exist, such as the beginning of
// "C:\Program Files\tool.exe".
func isMissingPath(word string) bool {
	_, err := os.Stat(word)
	return strings.ContainsRune(word, filepath.Separator) && err != nil
}

func setsPath(env map[string]string) bool {
	for name := range env {
		if name == "PATH" || runtime.GOOS == "windows" && strings.EqualFold(name, "PATH") {
			return true
		}
	}
	return false
}

// notFound says that there is no such command. It wraps the error of [exec.LookPath], which its
// text leaves out.
type notFound struct {
	text string
	err  error
}

func (e *notFound) Error() string   { return e.text }
func (e *notFound) Unwrap() []error { return []error{e.err} }

// CheckSelf refuses a command line that makes patchbay serve HTTP: a command is spoken to over
// stdio, and would never answer.
func CheckSelf(line []string) error {
	at := slices.IndexFunc(line, func(word string) bool {
		name, _, _ := strings.Cut(strings.TrimSuffix(strings.ToLower(filepath.Base(word)), ".exe"), "@")
		return name == "patchbay"
	})
	if at < 0 || at+1 >= len(line) {
		return nil
	}
	verb, rest := line[at+1], line[at+2:]
	address := ""
	args := slices.Clone(line[1 : at+2])
	for i := 0; i < len(rest) && rest[i] != "--"; i++ {
		value, joined := strings.CutPrefix(rest[i], "--http=")
		switch {
		case rest[i] == "--stdio":
			return nil
		case joined:
			address = value
		case rest[i] == "--http" && i+1 < len(rest):
			i++
			address = rest[i]
		default:
			args = append(args, rest[i])
		}
	}
	switch {
	case verb == "up":
		args, address = slices.Insert(args, at+1, "--stdio"), cmp.Or(address, "127.0.0.1:7420")
	case verb == "serve" && address != "":
	default:
		return nil
	}
	if strings.HasSuffix(address, ":0") { // each start would get another port
		address = "127.0.0.1:7420"
	}
	text, err := jsonx.Marshal(args)
	if err != nil {
		return err
	}
	return fmt.Errorf(`it is a patchbay that serves HTTP, but a command must speak stdio: write "args": %s, or "url": "http://%s/mcp" instead of the command`, text, address)
}
