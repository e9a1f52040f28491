package rules

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/internal/yamlfile"
)

// Bounds of a file.
const (
	maxRules = 1000
	maxName  = 100  // bytes of a rule's name
	maxWhen  = 8000 // characters of a condition
)

// Load reads a file. Its faults are [Problems].
func Load(path string) (*Set, error) {
	data, err := yamlfile.Load(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse reads the content of a file. Faults are [Problems] and name the file as path.
func Parse(path string, data []byte) (*Set, error) {
	r := &reader{Reader: yamlfile.Reader{Path: path}}
	set := r.read(data)
	if faults := r.Faults(); len(faults) > 0 {
		return nil, faults
	}
	sum := sha256.Sum256(data)
	set.digest = "sha256:" + hex.EncodeToString(sum[:])
	return set, nil
}

// reader reads one file, or a condition alone.
type reader struct {
	yamlfile.Reader
	alone bool
}

func (r *reader) read(data []byte) *Set {
	root := r.Root(data, "rules:")
	if root == nil {
		return nil
	}
	set := &Set{path: r.Path}
	if !r.Mapping(root, "the file", map[string]func(*yaml.Node){
		"default": func(n *yaml.Node) { set.allow = r.effect(n) },
		"rules":   func(n *yaml.Node) { r.rules(n, set) },
	}) {
		return nil
	}
	if set.rules == nil && len(r.Faults()) == 0 {
		r.Fault(root, "add rules:", "the file has no rules")
	}
	return set
}

// effect reads allow or deny.
func (r *reader) effect(n *yaml.Node) (allow bool) {
	switch text := r.Text(n, "an effect"); text {
	case "allow":
		return true
	case "deny", "":
		return false
	default:
		r.Fault(n, "use allow or deny", "unknown effect %s", yamlfile.Quote(text))
		return false
	}
}

func (r *reader) rules(n *yaml.Node, set *Set) {
	if n.Kind != yaml.SequenceNode {
		r.Fault(n, "begin each rule with \"- name:\"", "rules must be a list")
		return
	}
	set.rules = []*rule{}
	if len(n.Content) > maxRules {
		r.Fault(n, "", "there are %d rules, over the limit of %d", len(n.Content), maxRules)
		return
	}
	lines := map[string]int{}
	for _, node := range n.Content {
		one := r.rule(node)
		if one == nil {
			continue
		}
		if at, twice := lines[one.name]; twice && one.name != "" {
			r.Fault(node, "name it differently", "rule %s is in line %d already", yamlfile.Quote(one.name), at)
		}
		lines[one.name] = node.Line
		set.rules = append(set.rules, one)
	}
}

// rule reads one rule. It returns nil if the rule is invalid.
func (r *reader) rule(n *yaml.Node) *rule {
	one := &rule{line: n.Line}
	var effect, when, scopes, reason, show *yaml.Node
	named := false
	if !r.Mapping(n, "a rule", map[string]func(*yaml.Node){
		"name": func(n *yaml.Node) {
			named = true
			if one.name = r.Text(n, "name"); one.name == "" || len(one.name) > maxName || strings.ContainsAny(one.name, "\r\n") {
				r.Fault(n, "", "a rule's name is one line of 1 to %d bytes", maxName)
			}
		},
		"when":   func(n *yaml.Node) { when = n },
		"effect": func(n *yaml.Node) { effect, one.allow = n, r.effect(n) },
		"scopes": func(n *yaml.Node) { scopes, one.scopes = n, r.scopes(n) },
		"show": func(n *yaml.Node) {
			if show = n; n.Decode(&one.show) != nil {
				r.Fault(n, "use true or false", "show must be true or false")
			}
		},
		"reason": func(n *yaml.Node) { reason, one.reason = n, r.Text(n, "reason") },
	}) {
		return nil
	}
	if !named {
		r.Fault(n, "add name:", "a rule has no name")
	}
	if effect == nil {
		r.Fault(n, "add effect: allow or effect: deny", "rule %s has no effect", yamlfile.Quote(one.name))
	}
	if when == nil {
		r.Fault(n, "add when:; when: true is always", "rule %s has no condition", yamlfile.Quote(one.name))
	} else {
		r.compile(when, one)
	}
	for what, n := range map[string]*yaml.Node{"scopes": scopes, "reason": reason, "show": show} {
		if n != nil && one.allow {
			r.Fault(n, "remove it", "%s is for refusals, but rule %s allows", what, yamlfile.Quote(one.name))
		}
	}
	if show != nil && scopes == nil {
		r.Fault(show, "add scopes:", "show needs scopes, and rule %s has none", yamlfile.Quote(one.name))
	}
	return one
}

// scopes reads a list of scopes, or one.
func (r *reader) scopes(n *yaml.Node) (list []string) {
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		if nodes = n.Content; len(nodes) == 0 {
			r.Fault(n, "remove it", "the list of scopes is empty")
		}
	}
	for _, n := range nodes {
		s := r.Text(n, "a scope")
		if s != "" && strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\\' }) {
			r.Fault(n, "", "%s is not a scope (RFC 6749, 3.3)", yamlfile.Quote(s))
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
		if at > len(r.Lines) {
			return n.Line, n.Column
		}
		indent := 0
		for _, text := range r.Lines[n.Line:] {
			if t := bytes.TrimLeft(text, " "); len(bytes.TrimSpace(t)) > 0 {
				indent = len(text) - len(t)
				break
			}
		}
		return at, indent + column + 1
	case n.Style == yaml.FoldedStyle || line > 1 || n.Line < 1 || n.Line > len(r.Lines):
		return n.Line, n.Column
	}
	start := n.Column
	if n.Style == yaml.DoubleQuotedStyle || n.Style == yaml.SingleQuotedStyle {
		start++
	}
	// The expression may be in the file unchanged.
	if text := []rune(string(r.Lines[n.Line-1])); start-1 > len(text) || !strings.HasPrefix(string(text[start-1:]), n.Value) {
		return n.Line, n.Column
	}
	return n.Line, start + column
}
