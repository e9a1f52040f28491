package config

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Dev are the settings of a server for people who develop it, as in VS Code.
type Dev struct {
	Dir string // absolute folder of the patterns

	// Watch are the patterns of the files that the server is made of, relative to Dir, with slashes:
	// ** stands for any folders, * for any text of a name. One that begins with ! excludes files.
	Watch []string

	// Debug is the debugger under which Command is started: "node" or "debugpy". Empty: none.
	Debug string
}

func (d Dev) equal(e Dev) bool {
	return d.Dir == e.Dir && slices.Equal(d.Watch, e.Watch) && d.Debug == e.Debug
}

// debuggers are the debuggers of "debug", with the prefix of the commands that they can start.
var debuggers = map[string]string{"node": "node", "debugpy": "python"}

// Debugs reports whether the debugger can start a command.
func (d Dev) Debugs(command string) bool {
	name := strings.ToLower(command[strings.LastIndexAny(command, `/\`)+1:])
	version, ok := strings.CutPrefix(strings.TrimSuffix(name, ".exe"), debuggers[d.Debug])
	return ok && d.Debug != "" && strings.Trim(version, "0123456789.") == ""
}

// dev reads the member "dev" of a server.
func (l *loader) dev(n *node, s *Server) {
	if n == nil {
		return
	}
	if n.kind != '{' {
		l.fail(n.pos, `"dev" is not an object`, `write {"watch": "src/**/*.ts"}`)
		return
	}
	s.Dev.Dir = s.workspace
	seen := make(map[string]int)
	for _, m := range n.members {
		if l.twice(seen, m, "member") {
			continue
		}
		switch m.name {
		case "watch":
			patterns := m.value.items
			if m.value.kind != '[' {
				patterns = []*node{m.value}
			}
			for _, p := range patterns {
				s.Dev.Watch = append(s.Dev.Watch, l.pattern(p, s.workspace))
			}
		case "debug":
			l.debug(m.value, s)
		default:
			l.unknown(m, ` of "dev"`, []string{"watch", "debug"})
		}
	}
}

// pattern reads a pattern of files below a folder.
func (l *loader) pattern(n *node, folder string) string {
	text, excludes := strings.CutPrefix(n.text, "!")
	if n.kind != '"' || strings.TrimSpace(text) == "" {
		l.fail(n.pos, `"watch" is not a pattern of files`, `write "src/**/*.ts", or a list of such patterns`)
		return ""
	}
	faults := len(l.problems)
	path := l.path("watch", &node{kind: '"', pos: n.pos, text: text})
	if len(l.problems) > faults {
		return ""
	}
	path, err := filepath.Rel(folder, path)
	path = filepath.ToSlash(path)
	switch {
	case err != nil || path == ".." || strings.HasPrefix(path, "../"):
		l.fail(n.pos, `"watch" names files outside of the folder of the file`, `write a pattern relative to that folder, such as "src/**/*.ts"`)
	case !doublestar.ValidatePattern(path):
		l.fail(n.pos, `"watch" has a [ or { without its end`, `write a pattern such as "src/**/*.{js,ts}"`)
	}
	if excludes {
		path = "!" + path
	}
	return path
}

// debug reads the debugger of a server.
func (l *loader) debug(n *node, s *Server) {
	const fix = `write {"type": "node"} or {"type": "debugpy"}`
	kind := n.member("type")
	if n.kind != '{' || kind == nil || kind.kind != '"' || debuggers[kind.text] == "" {
		l.fail(n.pos, `"debug" has no known type`, fix)
		return
	}
	for _, m := range n.members {
		l.unknown(m, ` of "debug"`, []string{"type"})
	}
	s.Dev.Debug = kind.text
	if s.Command != "" && !s.open("command") && !s.Dev.Debugs(s.Command) {
		// Only up debugs, and the file may have been written for another host.
		l.warn(kind.pos, quote(s.Dev.Debug)+" cannot debug the command "+quote(s.CommandLine()[0]),
			"start the server with "+debuggers[s.Dev.Debug]+`, or remove "debug"`)
	}
	if i := slices.IndexFunc(s.Args, func(arg string) bool {
		return strings.HasPrefix(arg, "--inspect") || arg == "debugpy"
	}); i >= 0 {
		l.fail(n.pos, `"debug" is here besides the argument `+quote(s.CommandLine()[i+1]), "keep one of them")
	}
}
