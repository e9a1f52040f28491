package config

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/ownfile"
)

const (
	// MaxBytes bounds the length of a configuration file.
	MaxBytes = 1 << 20

	// A file that is not a configuration must not flood the terminal.
	maxProblems = 100
)

// File is one configuration file.
type File struct {
	Path     string
	Servers  []Server // in the order of the file
	Inputs   []Input
	Models   []Model // in the order of the file
	Hooks    []Hook  // in the order of the file
	Share    string  // default of Server.Share
	Model    string  // the chosen model: the name of a model, or "PROVIDER/NAME"; empty: none
	Warnings []Problem
	Unread   []Problem // members that this package does not read, and without a warning: another host may read them

	Text []byte // as it was read
}

// Load reads the configuration file at path. env looks variables up as
// [os.LookupEnv] does, which is used if env is nil.
//
// If the file is readable but wrong, the error is [Problems] with every fault. Variables of a
// disabled server are replaced too, but a value with one that cannot be replaced stays unchanged.
func Load(path string, env func(string) (string, bool)) (*File, error) {
	file, faults, err := Inspect(path, env)
	if err != nil {
		return nil, err
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return file, nil
}

// Inspect reads a configuration file as [Load] does. If the file has faults, it returns the valid
// servers besides.
func Inspect(path string, env func(string) (string, bool)) (file *File, faults Problems, err error) {
	data, err := readFile(path)
	if err != nil {
		return nil, nil, err
	}
	return parse(path, data, env)
}

// Parse is [Inspect] for a text that is already in memory.
func Parse(path string, data []byte, env func(string) (string, bool)) (file *File, faults Problems, err error) {
	return parse(path, data, env)
}

// readFile reads a configuration file.
func readFile(path string) ([]byte, error) {
	data, err := ownfile.ReadNow(path, MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("read configuration: %s is over %d bytes: is it the right file?", path, MaxBytes)
	}
	return data, nil
}

func parse(path string, data []byte, env func(string) (string, bool)) (*File, Problems, error) {
	l, err := newLoader(path, data, env)
	if err != nil {
		return nil, nil, err
	}
	l.load()
	other := func(p Problem) int { // problems of an envFile come last
		if p.Path == path {
			return 0
		}
		return 1
	}
	byPlace := func(a, b Problem) int {
		return cmp.Or(other(a)-other(b), strings.Compare(a.Path, b.Path), a.Line-b.Line, a.Column-b.Column)
	}
	slices.SortStableFunc(l.problems, byPlace)
	slices.SortStableFunc(l.file.Warnings, byPlace)
	slices.SortStableFunc(l.file.Unread, byPlace)
	return l.file, l.problems, nil
}

// loader collects the content and the faults of one file.
type loader struct {
	file       *File
	data       []byte
	breaks     []int // offsets of the line breaks in data
	problems   Problems
	expander   expander
	about      string // the server that is being read
	aboutModel string // the model that is being read

	unfinished bool              // the file need not have a list of servers
	above      map[string]member // settings of servers under "patchbay" at the top, by name
}

// line returns the line of an offset, from 1.
func (l *loader) line(pos int) int {
	n, _ := slices.BinarySearch(l.breaks, pos)
	return n + 1
}

// source returns a place in the file, as in Server.Source.
func (l *loader) source(pos int) string { return fmt.Sprintf("%s:%d", l.file.Path, l.line(pos)) }

func (l *loader) at(pos int, text, fix string) Problem {
	before := bytes.TrimPrefix(l.data[:min(pos, len(l.data))], utf8BOM)
	return Problem{
		Path: l.file.Path,
		Line: l.line(pos), Column: utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1,
		Text: text, Fix: fix, Server: l.about, Model: l.aboutModel,
	}
}

func (l *loader) fail(pos int, text, fix string) {
	if len(l.problems) < maxProblems { // checked first: finding a place takes time
		l.problems = append(l.problems, l.at(pos, text, fix))
	}
}

func (l *loader) warn(pos int, text, fix string) {
	if len(l.file.Warnings) < maxProblems {
		l.file.Warnings = append(l.file.Warnings, l.at(pos, text, fix))
	}
}

// unknown reports a member that is not in words: a warning if it resembles one of them, else
// unread. of names the object for people; empty: a server.
func (l *loader) unknown(m member, of string, words []string) {
	switch near := misspelt(m.name, words); {
	case near != "":
		l.warn(m.pos, "the member "+quote(m.name)+of+" is not read", "did you mean "+quote(near)+"?")
	case !slices.Contains(words, m.name):
		l.unread(m, of, "remove it, or leave it to another host")
	}
}

func (l *loader) unread(m member, of, fix string) {
	if len(l.file.Unread) < maxProblems {
		l.file.Unread = append(l.file.Unread, l.at(m.pos, "the member "+quote(m.name)+of+" is not read", fix))
	}
}

func newLoader(path string, data []byte, env func(string) (string, bool)) (*loader, error) {
	if env == nil {
		env = os.LookupEnv
	}
	workspace, err := workspaceOf(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	l := &loader{file: &File{Path: path, Text: data}, data: data}
	for i, c := range data {
		if c == '\n' {
			l.breaks = append(l.breaks, i)
		}
	}
	l.expander = expander{env: env, workspace: workspace, inputs: l.file.named}
	return l, nil
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
	// These two are needed to read the servers, and inputs to read models, wherever they are.
	home := homeOf(root)
	if inputs := home.member("inputs"); inputs != nil {
		l.inputs(inputs)
	}
	if own := root.member("patchbay"); own != nil {
		l.patchbay(own)
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
		case "mcp":
			if home == root {
				l.unread(m, "", `it needs an object "servers" or "inputs"`)
			} else {
				lists += l.wrapped(root, home, servers)
			}
		case "$schema":
		default:
			switch {
			case home != root: // the file is the settings of an editor
			case slices.Contains([]string{"model", "models", "share", "hooks"}, m.name):
				l.unread(m, "", `move it into "patchbay", or leave it to another host`)
			default:
				l.unknown(m, "", []string{"mcpServers", "servers", "inputs", "patchbay"})
			}
		}
	}
	l.alone(servers)
	if lists == 0 && !l.unfinished {
		l.fail(root.pos, `neither "mcpServers" nor "servers" is here`, `write {"mcpServers": {"NAME": {"command": "..."}}}`)
	}
}

// homeOf returns the object with the lists of servers and inputs: the file as a whole or, as in
// settings of VS Code, its member "mcp" if that has such a list.
func homeOf(root *node) *node {
	if n := root.member("mcp"); n != nil && (n.member("servers") != nil || n.member("inputs") != nil) {
		return n
	}
	return root
}

// wrapped reads the servers of "mcp", and returns the number of their lists. Lists beside "mcp"
// are faults.
func (l *loader) wrapped(root, home *node, servers map[string]int) (lists int) {
	for _, m := range root.members {
		if slices.Contains([]string{"mcpServers", "servers", "inputs"}, m.name) {
			l.fail(m.pos, fmt.Sprintf("%q is here and in \"mcp\" in line %d", m.name, l.line(home.pos)), "keep all servers and inputs in one of the two places")
		}
	}
	seen := make(map[string]int)
	for _, m := range home.members {
		switch {
		case l.twice(seen, m, "member"):
		case m.name == "servers":
			lists++
			l.servers(m, servers)
		case m.name == "inputs":
		default:
			l.unknown(m, ` of "mcp"`, []string{"servers", "inputs"})
		}
	}
	return lists
}

// twice reports a repeated name.
func (l *loader) twice(seen map[string]int, m member, what string) bool {
	pos, ok := seen[m.name]
	if !ok {
		seen[m.name] = m.pos
		return false
	}
	l.fail(m.pos, fmt.Sprintf("the %s %s is here twice, first in line %d", what, quote(m.name), l.line(pos)), "rename or remove one")
	return true
}

// servers reads one list of servers; seen spans all lists of the file.
func (l *loader) servers(list member, seen map[string]int) {
	if list.value.kind != '{' {
		l.fail(list.value.pos, quote(list.name)+" is not an object", `write {"NAME": {"command": "..."}}`)
		return
	}
	for _, m := range list.value.members {
		faults := len(l.problems)
		l.about = cmp.Or(m.name, NoName)
		switch {
		case l.twice(seen, m, "server"):
			l.unnamed(faults)
			l.file.Servers = slices.DeleteFunc(l.file.Servers, func(s Server) bool { return s.Name == m.name })
		case strings.TrimSpace(m.name) == "":
			l.fail(m.pos, "a server without a name", "put a name between the quotes")
			l.unnamed(faults)
		case m.value.kind != '{':
			l.fail(m.value.pos, "the server "+quote(m.name)+" is not an object", `write {"command": "..."} or {"url": "..."}`)
		default:
			l.server(m, false)
		}
	}
	l.about = ""
}

// unnamed marks the problems from an index on.
func (l *loader) unnamed(from int) {
	for i := from; i < len(l.problems); i++ {
		l.problems[i].unnamed = true
	}
}

// Standardize returns the JSON of a text with comments and trailing commas: a text of the same
// length with the same offsets. path is for its errors, which are [Problems].
func Standardize(path string, data []byte) ([]byte, error) {
	l, err := newLoader(path, data, nil)
	if err != nil {
		return nil, err
	}
	text := strip(data)
	if _, err := parseTree(text); err != nil {
		syntax := err.(*syntaxError)
		return nil, Problems{l.at(syntax.pos, syntax.text, syntax.fix)}
	}
	return text, nil
}
