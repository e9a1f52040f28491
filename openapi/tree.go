package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/pattern"
)

// MaxBytes bounds the length of a document.
const MaxBytes = 32 << 20

// maxDepth bounds the nesting of a document, and of what its references lead to.
const maxDepth = 128

// maxValues bounds the values of a document: each takes about 100 bytes.
const maxValues = 4 << 20

// node is a value of a document, which is JSON or YAML, with its place. It is not changed after it is read.
type node struct {
	kind    byte   // '{', '[', '"', '0', 't', 'f' or 'n'
	text    string // of a string, its content; of a number, its literal
	members []member
	items   []*node
	line    int32 // from 1
	column  int32 // from 1, in bytes
}

type member struct {
	name  string
	value *node
}

// get returns the member of a name, nil without one or if n is nil or not an object.
func (n *node) get(name string) *node {
	if n == nil {
		return nil
	}
	for i := range n.members {
		if n.members[i].name == name {
			return n.members[i].value
		}
	}
	return nil
}

// string returns the content of the member of a name that is a string.
func (n *node) string(name string) string {
	if m := n.get(name); m != nil && m.kind == '"' {
		return m.text
	}
	return ""
}

// bool reports whether the member of a name is true.
func (n *node) bool(name string) bool {
	m := n.get(name)
	return m != nil && m.kind == 't'
}

// list returns the items of the member of a name that is an array.
func (n *node) list(name string) []*node {
	if m := n.get(name); m != nil {
		return m.items
	}
	return nil
}

// parse reads JSON, or YAML.
func parse(data []byte) (*node, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("it has more than %d MiB", MaxBytes>>20)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) {
		return nil, errors.New("it is not text in UTF-8")
	}
	first := bytes.TrimLeft(data, " \t\r\n")
	switch {
	case len(first) == 0:
		return nil, errors.New("it is empty")
	case first[0] == '{':
		return parseJSON(data)
	case first[0] == '<':
		return nil, errors.New("it is HTML or XML, not an OpenAPI document; give the address of the document itself, which ends in .json or .yaml most often")
	}
	return parseYAML(data)
}

// jsonReader reads a tree and counts lines on the way.
type jsonReader struct {
	dec       *jsontext.Decoder
	data      []byte
	text      string // data, of which the texts of nodes are parts
	line      int32
	lineStart int // of the line that is counted
	counted   int // bytes of data
	values    int

	// Nodes are allocated in blocks. Members and items are those of objects and arrays that are not closed yet.
	nodes   []node
	members []member
	items   []*node
}

func (r *jsonReader) node(kind jsontext.Kind, pos int) *node {
	if len(r.nodes) == 0 {
		r.nodes = make([]node, 256)
	}
	n := &r.nodes[0]
	r.nodes = r.nodes[1:]
	line, column := r.at(pos)
	n.kind, n.line, n.column = byte(kind), int32(line), int32(column)
	return n
}

func parseJSON(data []byte) (*node, error) {
	r := &jsonReader{data: data, text: string(data), line: 1}
	r.dec = jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true))
	n, err := r.value(0)
	if err == nil {
		if _, err = r.dec.ReadToken(); errors.Is(err, io.EOF) {
			return n, nil
		}
		err = errors.New("text follows after its end")
	}
	pos := len(data)
	var wrong *jsontext.SyntacticError
	if errors.As(err, &wrong) {
		pos, err = min(int(wrong.ByteOffset), len(data)), wrong.Err
	}
	line, column := r.at(pos)
	return nil, &Fault{line, column, "", fmt.Sprintf("it is not valid JSON: %v", err)}
}

// at returns the line and the column of an offset; offsets do not decrease from call to call.
func (r *jsonReader) at(pos int) (line, column int) {
	for {
		i := bytes.IndexByte(r.data[r.counted:max(pos, r.counted)], '\n')
		if i < 0 {
			break
		}
		r.counted += i + 1
		r.lineStart = r.counted
		r.line++
	}
	r.counted = max(pos, r.counted)
	return int(r.line), pos - r.lineStart + 1
}

func (r *jsonReader) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it nests more than %d levels", maxDepth)
	}
	if r.values++; r.values > maxValues {
		return nil, fmt.Errorf("it has more than %d values", maxValues)
	}
	kind := r.dec.PeekKind()
	if kind != '{' && kind != '[' {
		value, err := r.dec.ReadValue()
		if err != nil {
			return nil, err
		}
		n := r.node(kind, int(r.dec.InputOffset())-len(value))
		switch kind {
		case '"':
			n.text, err = r.unquote(value)
		case '0':
			n.text = r.last(len(value))
		}
		return n, err
	}
	if _, err := r.dec.ReadToken(); err != nil {
		return nil, err
	}
	n := r.node(kind, int(r.dec.InputOffset())-1)
	members, items := len(r.members), len(r.items)
	for {
		switch r.dec.PeekKind() {
		case '}', ']':
			if _, err := r.dec.ReadToken(); err != nil {
				return nil, err
			}
			n.members, n.items = slices.Clone(r.members[members:]), slices.Clone(r.items[items:])
			r.members, r.items = r.members[:members], r.items[:items]
			return n, nil
		}
		var name string
		if kind == '{' {
			value, err := r.dec.ReadValue()
			if err == nil {
				name, err = r.unquote(value)
			}
			if err != nil {
				return nil, err
			}
		}
		value, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		if kind == '[' {
			r.items = append(r.items, value)
		} else {
			r.members = append(r.members, member{name, value})
		}
	}
}

// last returns the last bytes that were read.
func (r *jsonReader) last(n int) string {
	end := int(r.dec.InputOffset())
	return r.text[end-n : end]
}

// unquote returns the content of the string that was just read.
func (r *jsonReader) unquote(value jsontext.Value) (string, error) {
	if bytes.IndexByte(value, '\\') < 0 {
		return strings.Trim(r.last(len(value)), `"`), nil
	}
	text, err := jsontext.AppendUnquote(nil, value)
	return string(text), err
}

// maxMarks bounds what stands before values in YAML, whose reader takes about 500 bytes for each.
const maxMarks = 2 << 20

// marks counts the characters of YAML before which, or after which, a value stands.
func marks(data []byte) (n int) {
	for i, c := range data {
		switch c {
		case '\n', ',', '[', '{', ':', '?':
			n++
		case '-':
			if i+1 < len(data) && (data[i+1] == ' ' || data[i+1] == '\t' || data[i+1] == '\n' || data[i+1] == '\r') {
				n++
			}
		}
	}
	return n
}

func parseYAML(data []byte) (*node, error) {
	if marks(data) > maxMarks {
		return nil, errors.New("it is too large for YAML; convert it to JSON, which takes less memory to read")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		return nil, yamlFault(err)
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, &Fault{max(more.Line, 1), 1, "", "it has several YAML documents; keep one"}
	}
	c := &yamlReader{made: map[*yaml.Node]*node{}}
	n, err := c.value(doc.Content[0], 0)
	if err == nil && n.kind != '{' {
		err = &Fault{int(n.line), int(n.column), "", "it is not an object"}
	}
	return n, err
}

var yamlLine = pattern.Lazy(`^yaml: (?:line (\d+): )?`)

func yamlFault(err error) error {
	text := err.Error()
	m := yamlLine().FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("it is not valid YAML: %v", err)
	}
	line, _ := strconv.Atoi(m[1])
	return &Fault{max(line, 1), 1, "", "it is not valid YAML: " + text[len(m[0]):]}
}

// yamlReader makes nodes of those of YAML. An alias is the node that it names, so that many of them take no room.
type yamlReader struct {
	made   map[*yaml.Node]*node
	merged int // members
}

// maxMerged bounds the members that a document merges into mappings.
const maxMerged = 1 << 20

func (c *yamlReader) value(y *yaml.Node, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, &Fault{y.Line, y.Column, "", fmt.Sprintf("it nests more than %d levels", maxDepth)}
	}
	if y.Kind == yaml.AliasNode {
		if n, ok := c.made[y.Alias]; ok && n == nil {
			return nil, &Fault{y.Line, y.Column, "", "the alias *" + y.Value + " contains itself"}
		} else if ok {
			return n, nil
		}
		y = y.Alias
	}
	n := &node{line: int32(y.Line), column: int32(y.Column)}
	if y.Anchor != "" {
		c.made[y] = nil
		defer func() { c.made[y] = n }()
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.kind = '{'
		for i := 0; i+1 < len(y.Content); i += 2 {
			key := y.Content[i]
			value, err := c.value(y.Content[i+1], depth+1)
			if err != nil {
				return nil, err
			}
			if key.Tag == "!!merge" {
				if !c.merge(n, value, map[string]bool{}) {
					return nil, &Fault{key.Line, key.Column, "", fmt.Sprintf("it merges more than %d members", maxMerged)}
				}
				continue
			}
			n.members = append(n.members, member{key.Value, value})
		}
	case yaml.SequenceNode:
		n.kind = '['
		for _, item := range y.Content {
			value, err := c.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, value)
		}
	default:
		n.scalar(y)
	}
	y.Content = nil // is not needed any more, and takes much memory
	return n, nil
}

// merge adds the members of a mapping, or of several, that n does not have. It reports whether that is within bounds.
func (c *yamlReader) merge(n, from *node, has map[string]bool) bool {
	if len(has) == 0 {
		for _, m := range n.members {
			has[m.name] = true
		}
		c.merged += len(n.members)
	}
	for _, item := range from.items {
		if c.merged++; c.merged > maxMerged || !c.merge(n, item, has) {
			return false
		}
	}
	for _, m := range from.members {
		if c.merged++; c.merged > maxMerged {
			return false
		}
		if !has[m.name] {
			has[m.name] = true
			n.members = append(n.members, m)
		}
	}
	return true
}

// atMost returns how much of a number of bytes the JSON of n leaves, about; below zero it is longer.
func (n *node) atMost(most int) int {
	most -= len(n.text) + 2
	for i := 0; i < len(n.items) && most >= 0; i++ {
		most = n.items[i].atMost(most)
	}
	for i := 0; i < len(n.members) && most >= 0; i++ {
		most = n.members[i].value.atMost(most - len(n.members[i].name))
	}
	return most
}

// scalar makes n a value of JSON. What JSON has no value for, such as a date or infinity, is its text.
func (n *node) scalar(y *yaml.Node) {
	n.kind, n.text = '"', y.Value
	switch y.Tag {
	case "!!null":
		n.kind, n.text = 'n', ""
	case "!!bool":
		n.kind, n.text = 'f', ""
		if strings.EqualFold(y.Value, "true") {
			n.kind = 't'
		}
	case "!!int", "!!float":
		if jsonx.Valid([]byte(y.Value), 1) == nil {
			n.kind = '0'
			return
		}
		var v float64
		if y.Decode(&v) == nil {
			if text := strconv.FormatFloat(v, 'f', -1, 64); jsonx.Valid([]byte(text), 1) == nil {
				n.kind, n.text = '0', text
			}
		}
	}
}

// appendJSON appends a value as JSON. Values that nest too deep, or come after maxSchema bytes, are null: few aliases of
// YAML may stand for very much.
func (n *node) appendJSON(dst []byte, depth int) []byte {
	if depth > maxDepth || len(dst) > maxSchema {
		return append(dst, "null"...)
	}
	switch n.kind {
	case '{':
		dst = append(dst, '{')
		for i, m := range n.members {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(jsonx.AppendString(dst, m.name), ':')
			dst = m.value.appendJSON(dst, depth+1)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i, item := range n.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = item.appendJSON(dst, depth+1)
		}
		return append(dst, ']')
	case '"':
		return jsonx.AppendString(dst, n.text)
	case '0':
		return append(dst, n.text...)
	case 't':
		return append(dst, "true"...)
	case 'f':
		return append(dst, "false"...)
	}
	return append(dst, "null"...)
}
