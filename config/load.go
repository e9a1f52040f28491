package config

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// MaxBytes bounds a configuration file.
	MaxBytes = 1 << 20

	// A file that is no configuration at all should not scroll the terminal.
	maxProblems = 100
)

// File is one configuration file.
type File struct {
	Path     string
	Servers  []Server // in the order of the file
	Warnings []Problem
}

// Load reads the configuration file at path. env looks variables up as
// [os.LookupEnv] does, which is used if env is nil.
//
// When the file can be read and is wrong, the error is [Problems] with every
// fault in it. Variables of a disabled server are looked up too, but one that
// cannot be replaced leaves that value as it was written.
func Load(path string, env func(string) (string, bool)) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("read configuration: %s is over %d bytes: is it the right file?", path, MaxBytes)
	}
	return parse(path, data, env)
}

func parse(path string, data []byte, env func(string) (string, bool)) (*File, error) {
	if env == nil {
		env = os.LookupEnv
	}
	workspace, err := workspaceOf(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	l := &loader{file: &File{Path: path}, data: data, expander: expander{env: env, workspace: workspace}}
	l.load()
	byPlace := func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	}
	slices.SortStableFunc(l.problems, byPlace)
	slices.SortStableFunc(l.file.Warnings, byPlace)
	if len(l.problems) > 0 {
		return nil, l.problems
	}
	return l.file, nil
}

// loader collects what one file says and what is wrong with it.
type loader struct {
	file     *File
	data     []byte
	problems Problems
	expander expander
	above    map[string]member // what "patchbay" at the top says of servers, by name
}

func (l *loader) at(pos int, text, fix string) Problem {
	before := bytes.TrimPrefix(l.data[:min(pos, len(l.data))], utf8BOM)
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return Problem{
		Path: l.file.Path,
		Line: bytes.Count(before, []byte("\n")) + 1, Column: utf8.RuneCount(line) + 1,
		Text: text, Fix: fix,
	}
}

func (l *loader) fail(pos int, text, fix string) {
	if len(l.problems) < maxProblems {
		l.problems = append(l.problems, l.at(pos, text, fix))
	}
}

func (l *loader) warn(pos int, text, fix string) {
	if len(l.file.Warnings) < maxProblems {
		l.file.Warnings = append(l.file.Warnings, l.at(pos, text, fix))
	}
}

func (l *loader) load() {
	if bytes.HasPrefix(l.data, []byte("\xff\xfe")) || bytes.HasPrefix(l.data, []byte("\xfe\xff")) {
		l.fail(0, "the file is UTF-16", "save it as UTF-8")
		return
	}
	root, err := parseTree(strip(l.data))
	if err != nil {
		syntax := err.(*syntaxError)
		l.fail(syntax.pos, syntax.text, syntax.fix)
		return
	}
	if root.kind != '{' {
		l.fail(root.pos, "the file is not a JSON object", `write {"mcpServers": {...}}`)
		return
	}
	lists, seen, servers := 0, make(map[string]int), make(map[string]int)
	l.above = make(map[string]member)
	if i := slices.IndexFunc(root.members, func(m member) bool { return m.name == "patchbay" }); i >= 0 {
		l.patchbay(root.members[i].value)
	}
	for _, m := range root.members {
		if l.twice(seen, m, "member") {
			continue
		}
		switch m.name {
		case "patchbay":
			lists++
		case "mcpServers", "servers":
			lists++
			l.servers(m, servers)
		case "inputs":
		default:
			if known := misspelt(m.name, []string{"mcpServers", "servers", "inputs", "patchbay"}); known != "" {
				l.warn(m.pos, "the member "+quote(m.name)+" is not read", "did you mean "+quote(known)+"?")
			}
		}
	}
	l.alone(servers)
	if lists == 0 {
		l.fail(root.pos, `neither "mcpServers" nor "servers" is here`, `write {"mcpServers": {"NAME": {"command": "..."}}}`)
	}
}

// twice reports a name that was there before.
func (l *loader) twice(seen map[string]int, m member, what string) bool {
	pos, ok := seen[m.name]
	if !ok {
		seen[m.name] = m.pos
		return false
	}
	first := l.at(pos, "", "")
	l.fail(m.pos, fmt.Sprintf("the %s %s is here twice, first in line %d", what, quote(m.name), first.Line), "rename or remove one")
	return true
}

// servers reads one list of servers; seen spans all lists of the file.
func (l *loader) servers(list member, seen map[string]int) {
	if list.value.kind != '{' {
		l.fail(list.value.pos, quote(list.name)+" is not an object", `write {"NAME": {"command": "..."}}`)
		return
	}
	for _, m := range list.value.members {
		if l.twice(seen, m, "server") {
			continue
		}
		switch {
		case strings.TrimSpace(m.name) == "":
			l.fail(m.pos, "a server without a name", "put a name between the quotes")
		case m.value.kind != '{':
			l.fail(m.value.pos, "the server "+quote(m.name)+" is not an object", `write {"command": "..."} or {"url": "..."}`)
		default:
			l.server(m, false)
		}
	}
}
