package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxBytes bounds the length of a file.
const MaxBytes = 1 << 20

// Load reads the content of a file, or the beginning of one that is too long for Root.
func Load(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}

// Reader reads one file and collects its faults, which name it by Path.
type Reader struct {
	Path  string
	Lines [][]byte // of the file, once Root has read it

	faults Problems
}

// Fault records a fault at a node.
func (r *Reader) Fault(n *yaml.Node, fix, format string, args ...any) {
	r.FaultAt(max(n.Line, 1), max(n.Column, 1), fix, format, args...)
}

// FaultAt records a fault at a place.
func (r *Reader) FaultAt(line, column int, fix, format string, args ...any) {
	r.faults = append(r.faults, Problem{r.Path, line, column, fmt.Sprintf(format, args...), fix})
}

// Faults returns all faults in the order of the file, none if there are none.
func (r *Reader) Faults() Problems {
	slices.SortStableFunc(r.faults, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return r.faults
}

// Root returns the outermost node of a file; nil, with a fault, if the file cannot be read or is
// empty. The argument begin is the proposal for an empty file.
func (r *Reader) Root(data []byte, begin string) *yaml.Node {
	if len(data) > MaxBytes {
		r.FaultAt(1, 1, "", "the file has more than %d bytes", MaxBytes)
		return nil
	}
	if !utf8.Valid(data) {
		r.FaultAt(1, 1, "", "the file is not text in UTF-8")
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if t := bytes.TrimSpace(data); len(t) > 0 && t[0] == '{' {
		// YAML does not allow tabs where JSON does.
		data = bytes.ReplaceAll(data, []byte{'\t'}, []byte{' '})
	}
	r.Lines = bytes.Split(data, []byte{'\n'})
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
		r.FaultAt(1, 1, "begin with "+begin, "the file is empty")
		return nil
	} else if err != nil {
		r.syntax(err)
		return nil
	}
	if err := dec.Decode(&more); err == nil {
		r.Fault(&more, "keep one", "the file has several documents")
		return nil
	} else if !errors.Is(err, io.EOF) {
		r.syntax(err)
		return nil
	}
	return doc.Content[0]
}

// Mapping calls the function of each member of a mapping; other members are faults. It reports
// whether the node is a mapping.
func (r *Reader) Mapping(n *yaml.Node, what string, members map[string]func(*yaml.Node)) bool {
	names := slices.Sorted(maps.Keys(members))
	return r.Members(n, what, func(key, value *yaml.Node) {
		f := members[key.Value]
		if f == nil {
			r.Fault(key, Nearest(key.Value, names), "%s has no member %s", what, Quote(key.Value))
			return
		}
		f(value)
	})
}

// Members calls a function for each member of a mapping. It reports whether the node is a
// mapping.
func (r *Reader) Members(n *yaml.Node, what string, do func(key, value *yaml.Node)) bool {
	if n.Kind != yaml.MappingNode {
		r.Fault(n, spaced(n.Value), "%s must be a mapping, name: value", what)
		return false
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Anchor != "":
			r.Fault(key, "write it out", "a name in %s must be text, with no anchor or alias", what)
		case seen[key.Value]:
			r.Fault(key, "keep one", "%s has %s twice", what, Quote(key.Value))
		case value.Kind == yaml.AliasNode || value.Anchor != "":
			r.Fault(value, "write it out", "%s: anchors and aliases are not supported", key.Value)
		default:
			seen[key.Value] = true
			do(key, value)
		}
	}
	return true
}

// Text returns the text of a scalar of any YAML type.
func (r *Reader) Text(n *yaml.Node, what string) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.Fault(n, "", "%s must be text", what)
		return ""
	}
	return n.Value
}
