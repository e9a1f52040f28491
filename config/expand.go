package config

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/pattern"
)

var variableName = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]*$`)

// expander replaces variables in the values of one file.
type expander struct {
	env       func(string) (string, bool)
	workspace string // absolute folder of the file
	inputs    func(id string) (Input, bool)
}

// piece is a part of a value: text, or an input without a value yet.
type piece struct {
	text  string
	from  string // origin of text, in words; empty: the file
	input string // the id of an input; text is empty

	variable string // of the environment that text is from; empty: from none
	secret   bool   // text is a password
}

// unreplaced is the reason why a variable cannot be replaced. It names variables, never their
// values.
type unreplaced struct {
	text, fix string
	unset     bool // not set in the environment; the file is valid
}

// expand splits s and replaces its variables, or returns the fault of the first one that cannot
// be replaced.
func (e *expander) expand(s string) (out []piece, wrong *unreplaced) {
	for {
		before, rest, found := strings.Cut(s, "${")
		if before != "" {
			out = append(out, piece{text: before})
		}
		if !found {
			return out, nil
		}
		ref, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, &unreplaced{text: "${ without its }", fix: "write ${NAME}"}
		}
		p, wrong := e.variable(ref)
		if wrong != nil {
			return nil, wrong
		}
		out = append(out, p)
		s = after
	}
}

func (e *expander) variable(ref string) (p piece, wrong *unreplaced) {
	if id, ok := strings.CutPrefix(ref, "input:"); ok {
		if _, ok := e.inputs(id); !ok {
			return p, &unreplaced{text: "there is no input " + quote(bare(id)), fix: `add {"type": "promptString", "id": "` + bare(id) + `", "description": "..."} to "inputs"`}
		}
		return piece{input: id}, nil
	}
	switch ref {
	case "userHome":
		if home := e.home(); home != "" {
			return piece{text: home, from: "the home folder"}, nil
		}
		return p, &unreplaced{text: "the home folder for ${userHome} is not known", fix: "set HOME, or write the folder"}
	case "workspaceFolder":
		return piece{text: e.workspace, from: "the folder of the file"}, nil
	case "workspaceFolderBasename":
		return piece{text: filepath.Base(e.workspace), from: "the folder of the file"}, nil
	case "pathSeparator", "/":
		return piece{text: string(filepath.Separator), from: "this system"}, nil
	}
	name, fallback, hasFallback := strings.Cut(ref, ":-")
	name, prefixed := strings.CutPrefix(name, "env:")
	if strings.Contains(fallback, "${") {
		return p, &unreplaced{text: "a variable inside the default of ${" + bare(name) + "}", fix: "write a plain default after :-"}
	}
	if name == "" || !prefixed && !variableName().MatchString(name) {
		return p, &unreplaced{text: "unknown variable " + form(name), fix: "write ${NAME}, ${NAME:-default}, ${input:ID}, ${userHome} or ${workspaceFolder}"}
	}
	value, set := e.env(name)
	switch {
	case hasFallback && value == "":
		return piece{text: fallback, from: "the default of " + bare(name) + ", which is not set"}, nil
	case !set:
		return p, &unreplaced{"the environment variable " + bare(name) + " is not set", "set it, or write ${" + bare(name) + ":-default}", true}
	}
	return piece{text: value, from: bare(name) + " of the environment", variable: name}, nil
}

// form returns the kind of a variable, such as ${config:...}. Text between the braces may be a
// secret and is not shown.
func form(name string) string {
	kind, _, ok := strings.Cut(name, ":")
	if ok && variableName().MatchString(kind) {
		return "${" + bare(kind) + ":...}"
	}
	return "${...}"
}

// bare returns the name of a variable or input for people, in printable characters and clipped.
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
