package config

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expander replaces variables in the values of one file.
type expander struct {
	env       func(string) (string, bool)
	workspace string // absolute folder of the file
}

// expand returns s with its variables replaced, or what is wrong with the
// first one that cannot be. The texts name variables, never their values.
func (e *expander) expand(s string) (out, text, fix string) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "${")
		b.WriteString(before)
		if !found {
			return b.String(), "", ""
		}
		ref, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", "${ without its }", "write ${NAME}"
		}
		value, text, fix := e.variable(ref)
		if text != "" {
			return "", text, fix
		}
		b.WriteString(value)
		s = after
	}
}

func (e *expander) variable(ref string) (value, text, fix string) {
	if id, ok := strings.CutPrefix(ref, "input:"); ok {
		return "", "the input ${input:" + bare(id) + "} is not supported yet", "set an environment variable and write ${env:NAME}"
	}
	switch ref {
	case "userHome":
		if home := e.home(); home != "" {
			return home, "", ""
		}
		return "", "the home folder for ${userHome} is not known", "set HOME, or write the folder"
	case "workspaceFolder":
		return e.workspace, "", ""
	}
	name, fallback, hasFallback := strings.Cut(ref, ":-")
	name, prefixed := strings.CutPrefix(name, "env:")
	if strings.Contains(fallback, "${") {
		return "", "a variable inside the default of ${" + bare(name) + "}", "write a plain default after :-"
	}
	if name == "" || !prefixed && !variableName.MatchString(name) {
		return "", "unknown variable " + form(name), "write ${NAME}, ${NAME:-default}, ${userHome} or ${workspaceFolder}"
	}
	value, set := e.env(name)
	switch {
	case hasFallback && value == "":
		return fallback, "", ""
	case !set:
		return "", "the environment variable " + bare(name) + " is not set", "set it, or write ${" + bare(name) + ":-default}"
	}
	return value, "", ""
}

// form shows what kind of variable name asks for, such as ${config:...}. What
// stands between the braces by mistake may be a secret and is not shown.
func form(name string) string {
	kind, _, ok := strings.Cut(name, ":")
	if ok && variableName.MatchString(kind) {
		return "${" + bare(kind) + ":...}"
	}
	return "${...}"
}

// bare shows the name of a variable or input, in printable characters and
// bounded in length.
func bare(name string) string {
	if len(name) > 60 {
		name = name[:60]
	}
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, name)
}

func (e *expander) home() string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	if home, _ := e.env(name); home != "" {
		return home
	}
	home, _ := os.UserHomeDir() // an error gives "", which the caller reports
	return home
}

// workspaceOf returns the folder a configuration file belongs to: its own, the
// one above for .vscode/mcp.json, the current one for the user's file.
func workspaceOf(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(abs)
	if user, ok := userDir(); ok && dir == user {
		return os.Getwd()
	}
	if filepath.Base(dir) == ".vscode" {
		dir = filepath.Dir(dir)
	}
	return dir, nil
}
