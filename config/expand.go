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
	inputs    func(id string) (Input, bool)
}

// piece is a part of a value: text, or an input that nobody was asked for yet.
type piece struct {
	text  string
	from  string // where text is from, in words; empty: from the file
	input string // the id of an input; text is empty

	variable string // of the environment that text is from; empty: from none
	secret   bool   // text is a password
}

// expand takes s apart and replaces its variables, or tells what is wrong with the
// first one that cannot be. The texts name variables, never their values.
func (e *expander) expand(s string) (out []piece, text, fix string) {
	for {
		before, rest, found := strings.Cut(s, "${")
		if before != "" {
			out = append(out, piece{text: before})
		}
		if !found {
			return out, "", ""
		}
		ref, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, "${ without its }", "write ${NAME}"
		}
		p, text, fix := e.variable(ref)
		if text != "" {
			return nil, text, fix
		}
		out = append(out, p)
		s = after
	}
}

func (e *expander) variable(ref string) (p piece, text, fix string) {
	if id, ok := strings.CutPrefix(ref, "input:"); ok {
		if _, ok := e.inputs(id); !ok {
			return p, "there is no input " + quote(bare(id)), `add {"type": "promptString", "id": "` + bare(id) + `", "description": "..."} to "inputs"`
		}
		return piece{input: id}, "", ""
	}
	switch ref {
	case "userHome":
		if home := e.home(); home != "" {
			return piece{text: home, from: "the home folder"}, "", ""
		}
		return p, "the home folder for ${userHome} is not known", "set HOME, or write the folder"
	case "workspaceFolder":
		return piece{text: e.workspace, from: "the folder of the file"}, "", ""
	case "workspaceFolderBasename":
		return piece{text: filepath.Base(e.workspace), from: "the folder of the file"}, "", ""
	case "pathSeparator", "/":
		return piece{text: string(filepath.Separator), from: "this system"}, "", ""
	}
	name, fallback, hasFallback := strings.Cut(ref, ":-")
	name, prefixed := strings.CutPrefix(name, "env:")
	if strings.Contains(fallback, "${") {
		return p, "a variable inside the default of ${" + bare(name) + "}", "write a plain default after :-"
	}
	if name == "" || !prefixed && !variableName.MatchString(name) {
		return p, "unknown variable " + form(name), "write ${NAME}, ${NAME:-default}, ${input:ID}, ${userHome} or ${workspaceFolder}"
	}
	value, set := e.env(name)
	switch {
	case hasFallback && value == "":
		return piece{text: fallback, from: "the default of " + bare(name) + ", which is not set"}, "", ""
	case !set:
		return p, "the environment variable " + bare(name) + " is not set", "set it, or write ${" + bare(name) + ":-default}"
	}
	return piece{text: value, from: bare(name) + " of the environment", variable: name}, "", ""
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
