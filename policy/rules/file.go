package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Bounds of a file.
const (
	maxFile  = 1 << 20 // bytes
	maxRules = 1000
	maxName  = 100  // bytes of a rule's name
	maxWhen  = 8000 // characters of a condition
)

// Load reads a file. Its faults are [Problems].
func Load(path string) (*Set, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads the content of a file. Path is its name in the faults, which are [Problems].
func Parse(path string, data []byte) (*Set, error) {
	r := &reader{path: path}
	set := r.read(data)
	if len(r.faults) > 0 {
		slices.SortStableFunc(r.faults, func(a, b Problem) int {
			if a.Line != b.Line {
				return a.Line - b.Line
			}
			return a.Column - b.Column
		})
		return nil, r.faults
	}
	return set, nil
}

// reader reads one file.
type reader struct {
	path   string
	lines  [][]byte
	faults Problems
}

func (r *reader) fault(n *yaml.Node, fix, format string, args ...any) {
	r.faultAt(max(n.Line, 1), max(n.Column, 1), fix, format, args...)
}

func (r *reader) faultAt(line, column int, fix, format string, args ...any) {
	r.faults = append(r.faults, Problem{r.path, line, column, fmt.Sprintf(format, args...), fix})
}

func (r *reader) read(data []byte) *Set {
	if len(data) > maxFile {
		r.faultAt(1, 1, "", "the file has more than %d bytes", maxFile)
		return nil
	}
	if !utf8.Valid(data) {
		r.faultAt(1, 1, "", "the file is not text in UTF-8")
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if t := bytes.TrimSpace(data); len(t) > 0 && t[0] == '{' {
		// YAML wants no tabs where JSON may have them.
		data = bytes.ReplaceAll(data, []byte{'\t'}, []byte{' '})
	}
	r.lines = bytes.Split(data, []byte{'\n'})
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		r.faultAt(1, 1, "begin with rules:", "the file is empty")
		return nil
	} else if err != nil {
		r.syntax(err)
		return nil
	}
	if err := dec.Decode(&more); err == nil {
		r.fault(&more, "keep one", "the file has several documents")
		return nil
	} else if !errors.Is(err, io.EOF) {
		r.syntax(err)
		return nil
	}
	set := &Set{path: r.path}
	if !r.mapping(doc.Content[0], "the file", map[string]func(*yaml.Node){
		"default": func(n *yaml.Node) { set.allow = r.effect(n) },
		"rules":   func(n *yaml.Node) { r.rules(n, set) },
	}) {
		return nil
	}
	if set.rules == nil && len(r.faults) == 0 {
		r.fault(doc.Content[0], "add rules:", "the file has no rules")
	}
	return set
}

var atLine = regexp.MustCompile(`^line (\d+): `)

// syntax is a fault that YAML reports.
func (r *reader) syntax(err error) {
	text, line := strings.TrimPrefix(err.Error(), "yaml: "), 1
	if m := atLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	r.faultAt(line, 1, "", "%s", text)
}

// mapping calls a function for each member of a mapping.
func (r *reader) mapping(n *yaml.Node, what string, members map[string]func(*yaml.Node)) bool {
	if n.Kind != yaml.MappingNode {
		r.fault(n, "", "%s must be a mapping, name: value", what)
		return false
	}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		f := members[key.Value]
		switch {
		case f == nil || key.Kind != yaml.ScalarNode:
			r.fault(key, nearest(key.Value, names), "%s has no member %s", what, quote(key.Value))
		case seen[key.Value]:
			r.fault(key, "keep one", "%s has %s twice", what, quote(key.Value))
		case value.Kind == yaml.AliasNode || value.Anchor != "":
			r.fault(value, "write it out", "%s: anchors and aliases are not taken", key.Value)
		default:
			seen[key.Value] = true
			f(value)
		}
	}
	return true
}

// text reads a scalar, whatever YAML makes of it.
func (r *reader) text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.fault(n, "", "%s must be text", what)
		return ""
	}
	return n.Value
}

// effect reads allow or deny.
func (r *reader) effect(n *yaml.Node) (allow bool) {
	switch text := r.text(n, "an effect"); text {
	case "allow":
		return true
	case "deny", "":
		return false
	default:
		r.fault(n, "use allow or deny", "there is no effect %s", quote(text))
		return false
	}
}

func (r *reader) rules(n *yaml.Node, set *Set) {
	if n.Kind != yaml.SequenceNode {
		r.fault(n, "begin each rule with \"- name:\"", "rules must be a list")
		return
	}
	set.rules = []*rule{}
	if len(n.Content) > maxRules {
		r.fault(n, "", "there are %d rules, and at most %d may be", len(n.Content), maxRules)
		return
	}
	lines := map[string]int{}
	for _, node := range n.Content {
		one := r.rule(node)
		if one == nil {
			continue
		}
		if at, twice := lines[one.name]; twice && one.name != "" {
			r.fault(node, "name it differently", "there is a rule %s in line %d", quote(one.name), at)
		}
		lines[one.name] = node.Line
		set.rules = append(set.rules, one)
	}
}

// rule reads one rule; nil if it is none.
func (r *reader) rule(n *yaml.Node) *rule {
	one := &rule{line: n.Line}
	var effect, when, scopes, reason, show *yaml.Node
	named := false
	if !r.mapping(n, "a rule", map[string]func(*yaml.Node){
		"name": func(n *yaml.Node) {
			named = true
			if one.name = r.text(n, "name"); one.name == "" || len(one.name) > maxName || strings.ContainsAny(one.name, "\r\n") {
				r.fault(n, "", "a rule's name is one line of 1 to %d bytes", maxName)
			}
		},
		"when":   func(n *yaml.Node) { when = n },
		"effect": func(n *yaml.Node) { effect, one.allow = n, r.effect(n) },
		"scopes": func(n *yaml.Node) { scopes, one.scopes = n, r.scopes(n) },
		"show": func(n *yaml.Node) {
			if show = n; n.Decode(&one.show) != nil {
				r.fault(n, "use true or false", "show must be true or false")
			}
		},
		"reason": func(n *yaml.Node) { reason, one.reason = n, r.text(n, "reason") },
	}) {
		return nil
	}
	if !named {
		r.fault(n, "add name:", "a rule has no name")
	}
	if effect == nil {
		r.fault(n, "add effect: allow or effect: deny", "rule %s has no effect", quote(one.name))
	}
	if when == nil {
		r.fault(n, "add when:; when: true is always", "rule %s has no condition", quote(one.name))
	} else {
		r.compile(when, one)
	}
	for what, n := range map[string]*yaml.Node{"scopes": scopes, "reason": reason, "show": show} {
		if n != nil && one.allow {
			r.fault(n, "remove it", "%s says more about a refusal, and rule %s allows", what, quote(one.name))
		}
	}
	if show != nil && scopes == nil {
		r.fault(show, "add scopes:", "show is for what scopes would allow, and rule %s has none", quote(one.name))
	}
	return one
}

// scopes reads a list of scopes, or one.
func (r *reader) scopes(n *yaml.Node) (list []string) {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		if nodes = n.Content; len(nodes) == 0 {
			r.fault(n, "remove it", "the list of scopes is empty")
		}
	}
	for _, n := range nodes {
		s := r.text(n, "a scope")
		if s != "" && strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }) {
			r.fault(n, "", "%s is no scope (RFC 6749, 3.3)", quote(s))
		}
		list = append(list, s)
	}
	return list
}

// place finds a place of an expression in the file: a line of it, from 1, and a column, from
// 0. Where YAML has folded lines or has escapes, it is the beginning of the expression.
func (r *reader) place(n *yaml.Node, line, column int) (int, int) {
	switch {
	case n.Style == yaml.LiteralStyle:
		at := n.Line + line // the text begins on the line below
		if at > len(r.lines) {
			return n.Line, n.Column
		}
		indent := 0
		for _, text := range r.lines[n.Line:] {
			if t := bytes.TrimLeft(text, " "); len(bytes.TrimSpace(t)) > 0 {
				indent = len(text) - len(t)
				break
			}
		}
		return at, indent + column + 1
	case n.Style == yaml.FoldedStyle || line > 1 || n.Line < 1 || n.Line > len(r.lines):
		return n.Line, n.Column
	}
	start := n.Column
	if n.Style == yaml.DoubleQuotedStyle || n.Style == yaml.SingleQuotedStyle {
		start++
	}
	// Is the expression in the file as it is?
	if text := []rune(string(r.lines[n.Line-1])); start-1 > len(text) || !strings.HasPrefix(string(text[start-1:]), n.Value) {
		return n.Line, n.Column
	}
	return n.Line, start + column
}
