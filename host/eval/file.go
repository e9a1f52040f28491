package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/internal/yamlfile"
	"github.com/patchbay-dev/patchbay/schema"
)

const (
	maxTasks = 1000
	maxTurns = 100
	maxRuns  = 1000
	maxDepth = 50 // of JSON values
)

// Load reads a file. If the file has faults, the error is of type [Problems].
func Load(path string) (*Suite, error) {
	data, err := yamlfile.Load(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse parses the content of a file. Faults name the file as path. If there are any, the error is
// of type [Problems].
func Parse(path string, data []byte) (*Suite, error) {
	r := &reader{yamlfile.Reader{Path: path}}
	s := &Suite{Name: strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}
	if root := r.Root(data, "tasks:"); root != nil {
		r.suite(root, s)
	}
	if faults := r.Faults(); len(faults) > 0 {
		return nil, faults
	}
	return s, nil
}

// reader reads one file.
type reader struct{ yamlfile.Reader }

func (r *reader) suite(n *yaml.Node, s *Suite) {
	tasks := false
	ok := r.Mapping(n, "the file", map[string]func(*yaml.Node){
		"servers":  func(n *yaml.Node) { r.servers(n, s) },
		"models":   func(n *yaml.Node) { s.Models = r.texts(n, "models") },
		"judge":    func(n *yaml.Node) { s.Judge = r.Text(n, "judge") },
		"runs":     func(n *yaml.Node) { s.Runs = r.count(n, "runs", 1, maxRuns) },
		"parallel": func(n *yaml.Node) { s.Parallel = r.count(n, "parallel", 1, 64) },
		"system":   func(n *yaml.Node) { s.System = r.Text(n, "system") },
		"allow":    func(n *yaml.Node) { s.Allow = r.patterns(n, "allow") },
		"tasks":    func(n *yaml.Node) { tasks = true; r.tasks(n, s) },
	})
	if ok && !tasks {
		r.Fault(n, "add tasks:", "the file has no tasks")
	}
}

// servers reads names of servers, or a mapping of servers as in mcp.json.
func (r *reader) servers(n *yaml.Node, s *Suite) {
	if n.Kind != yaml.MappingNode {
		s.Servers = r.texts(n, "servers")
		return
	}
	w := &writer{line: 1, column: 1}
	w.text(`{"mcpServers":`)
	if n.Line == 1 { // the file is JSON on one line
		w.line, w.column = n.Line, n.Column
	}
	if r.write(w, n, 0) {
		w.text("}")
		s.Inline = w.Bytes()
	}
}

func (r *reader) tasks(n *yaml.Node, s *Suite) {
	switch {
	case n.Kind != yaml.SequenceNode:
		r.Fault(n, `begin each task with "- name:"`, "tasks must be a list")
		return
	case len(n.Content) == 0:
		r.Fault(n, "add one", "the list of tasks is empty")
	case len(n.Content) > maxTasks:
		r.Fault(n, "", "there are %d tasks; the limit is %d", len(n.Content), maxTasks)
		return
	}
	lines := map[string]int{}
	for _, node := range n.Content {
		t := r.task(node)
		if t == nil {
			continue
		}
		if at, twice := lines[t.Name]; twice && t.Name != "" {
			r.Fault(node, "name it differently", "task %s is in line %d already", yamlfile.Quote(t.Name), at)
		}
		lines[t.Name] = node.Line
		s.Tasks = append(s.Tasks, t)
	}
}

func (r *reader) task(n *yaml.Node) *Task {
	t := &Task{Line: n.Line}
	if !r.Mapping(n, "a task", map[string]func(*yaml.Node){
		"name":     func(n *yaml.Node) { t.Name = r.Text(n, "name") },
		"prompt":   func(n *yaml.Node) { t.Prompt = r.Text(n, "prompt") },
		"turns":    func(n *yaml.Node) { r.turns(n, t) },
		"system":   func(n *yaml.Node) { t.System = r.Text(n, "system") },
		"runs":     func(n *yaml.Node) { t.Runs = r.count(n, "runs", 1, maxRuns) },
		"allow":    func(n *yaml.Node) { t.Allow = r.patterns(n, "allow") },
		"sampling": func(n *yaml.Node) { t.Sampling = r.truth(n, "sampling") },
		"answers":  func(n *yaml.Node) { t.Answers = r.values(n, "answers") },
		"expect":   func(n *yaml.Node) { r.expect(n, &t.Expect) },
	}) {
		return nil
	}
	if t.Name == "" || strings.ContainsAny(t.Name, "\r\n") {
		r.Fault(n, "add name:", "a task needs a one-line name")
	}
	switch prompt := strings.TrimSpace(t.Prompt) != ""; {
	case prompt && t.Turns != nil:
		r.Fault(n, "write the prompt as the first of the turns", "task %s has a prompt and turns", yamlfile.Quote(t.Name))
	case !prompt && t.Turns == nil:
		r.Fault(n, "add prompt: or turns:", "task %s has no prompt", yamlfile.Quote(t.Name))
	}
	return t
}

// turns reads a conversation.
func (r *reader) turns(n *yaml.Node, t *Task) {
	t.Turns = []Turn{}
	switch {
	case n.Kind != yaml.SequenceNode:
		r.Fault(n, `begin each turn with "- prompt:"`, "turns must be a list")
		return
	case len(n.Content) == 0:
		r.Fault(n, "add one", "the list of turns is empty")
	case len(n.Content) > maxTurns:
		r.Fault(n, "", "there are %d turns; the limit is %d", len(n.Content), maxTurns)
		return
	}
	for _, node := range n.Content {
		var turn Turn
		if r.Mapping(node, "a turn", map[string]func(*yaml.Node){
			"prompt": func(n *yaml.Node) { turn.Prompt = r.Text(n, "prompt") },
			"expect": func(n *yaml.Node) { r.expect(n, &turn.Expect) },
		}) && strings.TrimSpace(turn.Prompt) == "" {
			r.Fault(node, "add prompt:", "a turn has no prompt")
		}
		t.Turns = append(t.Turns, turn)
	}
}

func (r *reader) expect(n *yaml.Node, e *Expect) {
	r.Mapping(n, "expect", map[string]func(*yaml.Node){
		"calls": func(n *yaml.Node) {
			if n.Kind != yaml.SequenceNode {
				r.Fault(n, `begin each with "- tool:"`, "calls must be a list")
				return
			}
			for _, n := range n.Content {
				e.Calls = append(e.Calls, r.call(n))
			}
		},
		"ordered": func(n *yaml.Node) { e.Ordered = r.truth(n, "ordered") },
		"never":   func(n *yaml.Node) { e.Never = r.patterns(n, "never") },
		"answer":  func(n *yaml.Node) { r.answer(n, &e.Answer) },
		"steps":   func(n *yaml.Node) { e.Steps = r.count(n, "steps", 1, maxRuns) },
		"cost": func(n *yaml.Node) {
			var err error
			if e.Cost, err = strconv.ParseFloat(r.Text(n, "cost"), 64); err != nil || !(e.Cost > 0) || math.IsInf(e.Cost, 0) {
				r.Fault(n, "write a number, such as 0.05", "cost is not a price")
			}
		},
		"time": func(n *yaml.Node) {
			var err error
			if e.Time, err = time.ParseDuration(r.Text(n, "time")); err != nil || e.Time <= 0 {
				r.Fault(n, "write a number with its unit, such as 90s", "time is not a duration")
			}
		},
	})
}

// call reads an expected call: the pattern of a tool, or a mapping.
func (r *reader) call(n *yaml.Node) (c Call) {
	if n.Kind == yaml.ScalarNode {
		c.Tool = r.pattern(n)
		return c
	}
	if r.Mapping(n, "a call", map[string]func(*yaml.Node){
		"tool":      func(n *yaml.Node) { c.Tool = r.pattern(n) },
		"times":     func(n *yaml.Node) { c.Min = r.count(n, "times", 1, maxRuns); c.Max = c.Min },
		"min":       func(n *yaml.Node) { c.Min = r.count(n, "min", 1, maxRuns) },
		"max":       func(n *yaml.Node) { c.Max = r.count(n, "max", 1, maxRuns) },
		"arguments": func(n *yaml.Node) { c.Arguments = r.arguments(n) },
	}) && c.Tool == "" {
		r.Fault(n, "add tool: SERVER/TOOL", "a call has no tool")
	}
	if c.Max > 0 && c.Min > c.Max {
		r.Fault(n, "", "min is %d, but max is %d", c.Min, c.Max)
	}
	return c
}

func (r *reader) arguments(n *yaml.Node) (list []Argument) {
	r.Members(n, "arguments", func(key, value *yaml.Node) {
		a := Argument{Path: key.Value}
		if _, err := splitPath(a.Path); err != nil {
			r.Fault(key, "it looks like filter.tags[0]", "the path %s: %v", yamlfile.Quote(a.Path), err)
		}
		r.matcher(value, &a.Matcher)
		list = append(list, a)
	})
	return list
}

// matchers are the members that make a mapping a matcher rather than a value.
var matchers = []string{"equals", "contains", "regexp", "schema", "absent"}

// matcher reads an expected value: the value itself, or a mapping of matchers. A value that looks
// like such a mapping must be written with equals.
func (r *reader) matcher(n *yaml.Node, m *Matcher) {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 || !slices.Contains(matchers, n.Content[0].Value) {
		m.Equals = r.value(n)
		return
	}
	r.Mapping(n, "a matcher", map[string]func(*yaml.Node){
		"equals":   func(n *yaml.Node) { m.Equals = r.value(n) },
		"contains": func(n *yaml.Node) { m.Contains = r.Text(n, "contains") },
		"regexp":   func(n *yaml.Node) { m.Regexp = r.regexp(n) },
		"schema":   func(n *yaml.Node) { m.Schema = r.schema(n) },
		"absent":   func(n *yaml.Node) { m.Absent = r.truth(n, "absent") },
	})
}

func (r *reader) answer(n *yaml.Node, a *Answer) {
	if n.Kind == yaml.ScalarNode {
		a.Contains = r.texts(n, "answer")
		return
	}
	r.Mapping(n, "answer", map[string]func(*yaml.Node){
		"equals":   func(n *yaml.Node) { a.Equals = r.Text(n, "equals") },
		"contains": func(n *yaml.Node) { a.Contains = r.texts(n, "contains") },
		"lacks":    func(n *yaml.Node) { a.Lacks = r.texts(n, "lacks") },
		"regexp": func(n *yaml.Node) {
			for _, n := range r.list(n) {
				a.Regexp = append(a.Regexp, r.regexp(n))
			}
		},
		"schema": func(n *yaml.Node) { a.Schema = r.schema(n) },
		"judge":  func(n *yaml.Node) { a.Judge = r.texts(n, "judge") },
	})
}

// list returns the elements of a list; a node that is not a list counts as its only element.
func (r *reader) list(n *yaml.Node) []*yaml.Node {
	if n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return []*yaml.Node{n}
}

// texts reads a list of texts, or a single text.
func (r *reader) texts(n *yaml.Node, what string) (list []string) {
	for _, n := range r.list(n) {
		text := r.Text(n, what)
		if text == "" && n.Kind == yaml.ScalarNode {
			r.Fault(n, "write it, or remove it", "%s is empty", what)
		}
		list = append(list, text)
	}
	return list
}

func (r *reader) patterns(n *yaml.Node, what string) (list []string) {
	if n.Kind == yaml.MappingNode {
		r.Fault(n, "", "%s must be a list of tools", what)
		return nil
	}
	for _, n := range r.list(n) {
		list = append(list, r.pattern(n))
	}
	return list
}

// pattern reads SERVER/TOOL.
func (r *reader) pattern(n *yaml.Node) string {
	text := r.Text(n, "a tool")
	if text != "*" && !strings.Contains(text, "/") && n.Kind == yaml.ScalarNode {
		r.Fault(n, "write SERVER/TOOL, where * stands for any text", "%s does not name a tool", yamlfile.Quote(text))
	}
	return text
}

func (r *reader) count(n *yaml.Node, what string, least, most int) int {
	v, err := strconv.Atoi(r.Text(n, what))
	if err != nil || v < least || v > most {
		r.Fault(n, "", "%s is not a number from %d to %d", what, least, most)
		return 0
	}
	return v
}

func (r *reader) truth(n *yaml.Node, what string) (v bool) {
	if n.Decode(&v) != nil {
		r.Fault(n, "", "%s must be true or false", what)
	}
	return v
}

func (r *reader) regexp(n *yaml.Node) string {
	text := r.Text(n, "regexp")
	if _, err := regexp.Compile(text); err != nil {
		r.Fault(n, "see github.com/google/re2/wiki/Syntax", "%s is not a regular expression", yamlfile.Quote(text))
	}
	return text
}

func (r *reader) schema(n *yaml.Node) json.RawMessage {
	raw := r.value(n)
	if raw == nil {
		return nil
	}
	if _, err := schema.Compile(raw); err != nil {
		r.Fault(n, "", "the schema: %v", err)
	}
	return raw
}

func (r *reader) values(n *yaml.Node, what string) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	r.Members(n, what, func(key, value *yaml.Node) { all[key.Value] = r.value(value) })
	return all
}

// value returns a node as JSON, or nil with a fault if it cannot be written as JSON.
func (r *reader) value(n *yaml.Node) json.RawMessage {
	w := &writer{line: math.MaxInt} // on one line
	if !r.write(w, n, 0) {
		return nil
	}
	return w.Bytes()
}

// writer writes JSON whose values keep their lines and columns in the file.
type writer struct {
	bytes.Buffer
	line, column int
}

func (w *writer) text(s string) {
	w.WriteString(s)
	w.column += len(s)
}

// at writes white space up to the position of a node, unless that has passed.
func (w *writer) at(n *yaml.Node) {
	for w.line < n.Line {
		w.WriteByte('\n')
		w.line++
		w.column = 1
	}
	for w.line == n.Line && w.column < n.Column {
		w.WriteByte(' ')
		w.column++
	}
}

// write writes a node as JSON, and reports whether that is possible.
func (r *reader) write(w *writer, n *yaml.Node, depth int) bool {
	if depth > maxDepth {
		r.Fault(n, "", "the values are nested more than %d deep", maxDepth)
		return false
	}
	w.at(n)
	ok := true
	switch n.Kind {
	case yaml.MappingNode:
		w.text("{")
		first := true
		r.Members(n, "it", func(key, value *yaml.Node) {
			if !first {
				w.text(",")
			}
			first = false
			w.at(key)
			w.text(quoted(key.Value) + ":")
			ok = r.write(w, value, depth+1) && ok
		})
		w.text("}")
	case yaml.SequenceNode:
		w.text("[")
		for i, item := range n.Content {
			if i > 0 {
				w.text(",")
			}
			ok = r.write(w, item, depth+1) && ok
		}
		w.text("]")
	case yaml.ScalarNode:
		text, err := scalar(n)
		if err != nil {
			r.Fault(n, "put it in quotes", "%v", err)
			return false
		}
		w.text(text)
	default:
		r.Fault(n, "write it out", "anchors and aliases are not supported")
		return false
	}
	return ok
}

// scalar returns a scalar as JSON. A YAML date and the like is a string.
func scalar(n *yaml.Node) (string, error) {
	switch n.Tag {
	case "!!null":
		return "null", nil
	case "!!bool":
		var v bool
		err := n.Decode(&v)
		return strconv.FormatBool(v), err
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) { // as written, however long
			return n.Value, nil
		}
		var v float64
		if err := n.Decode(&v); err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
			return "", fmt.Errorf("%s is not a JSON number", yamlfile.Quote(n.Value))
		}
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	}
	return quoted(n.Value), nil
}

func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil { // cannot happen: it is a string
		panic(err)
	}
	return string(text)
}
