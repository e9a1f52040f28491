package skills

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// Bounds of front matter. It is a header for people to read, not a document.
const (
	maxFrontmatter = 64 << 10 // bytes
	maxDepth       = 16
)

// frontmatter reads the front matter of a SKILL.md: the text between a first line "---" and the
// next such line, as a JSON object whose members are in the order of the file.
//
// The YAML is that of its core schema: null, booleans, numbers, and everything else is a string,
// dates too. This package refuses anchors, aliases and tags, keys that are not strings and
// duplicate keys, infinities, and more than one document.
func frontmatter(file []byte) (json.RawMessage, error) {
	file = bytes.TrimPrefix(file, []byte("\ufeff"))
	line, rest, ok := bytes.Cut(file, []byte("\n"))
	if !ok || string(bytes.TrimSuffix(line, []byte("\r"))) != "---" {
		return nil, errors.New(`no front matter: the first line must be "---"`)
	}
	var text []byte
	for end := false; !end; {
		if line, rest, ok = bytes.Cut(rest, []byte("\n")); !ok && len(line) == 0 {
			return nil, errors.New(`the front matter has no end: a second line "---" is missing`)
		}
		if end = string(bytes.TrimRight(line, " \t\r")) == "---"; !end {
			text = append(append(text, line...), '\n')
		}
		if len(text) > maxFrontmatter {
			return nil, fmt.Errorf("the front matter is longer than %d bytes", maxFrontmatter)
		}
	}
	if !utf8.Valid(text) {
		return nil, errors.New("the front matter is not UTF-8")
	}
	var doc, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&doc); err != nil && err != io.EOF {
		return nil, fmt.Errorf("front matter: %w", err)
	}
	if err := dec.Decode(&second); err != io.EOF {
		return nil, errors.New("front matter: more than one document")
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("front matter: want fields, such as a name and a description")
	}
	out, err := appendNode(nil, doc.Content[0], maxDepth)
	if err != nil {
		return nil, fmt.Errorf("front matter: %w", err)
	}
	return out, nil
}

// appendNode appends a YAML value as JSON.
func appendNode(dst []byte, n *yaml.Node, depth int) ([]byte, error) {
	at := func(format string, args ...any) error { return faultAt(n, format, args...) }
	switch {
	case n.Anchor != "" || n.Kind == yaml.AliasNode:
		return nil, at("anchors and aliases are not read")
	case n.Style&yaml.TaggedStyle != 0:
		return nil, at("the tag %q is not read", n.Tag)
	case depth == 0:
		return nil, at("nested deeper than %d", maxDepth)
	}
	var err error
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
			return jsonx.AppendString(dst, n.Value), nil
		}
		raw, err := plain(n.Value)
		if err != nil {
			return nil, at("%w", err)
		}
		return append(dst, raw...), nil
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, e := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendNode(dst, e, depth-1); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case yaml.MappingNode:
		seen := map[string]bool{}
		dst = append(dst, '{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				return nil, faultAt(key, "a key is not a string")
			}
			name, err := appendNode(nil, key, 1)
			if err != nil {
				return nil, err
			}
			if name[0] != '"' || key.Tag == "!!merge" {
				return nil, faultAt(key, "the key %q is not a string", text.Short(key.Value))
			}
			if seen[key.Value] {
				return nil, faultAt(key, "the key %q comes twice", text.Short(key.Value))
			}
			seen[key.Value] = true
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendNode(append(append(dst, name...), ':'), n.Content[i+1], depth-1); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	}
	return nil, at("neither text, a list nor fields")
}

// faultAt adds the line of the file to a fault; the first line is "---".
func faultAt(n *yaml.Node, format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{n.Line + 1}, args...)...)
}

// plain returns the JSON of an unquoted scalar in the core schema of YAML 1.2.
func plain(s string) (json.RawMessage, error) {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return json.RawMessage("null"), nil
	case "true", "True", "TRUE":
		return json.RawMessage("true"), nil
	case "false", "False", "FALSE":
		return json.RawMessage("false"), nil
	}
	digits := strings.TrimLeft(s, "+-")
	switch {
	case len(s)-len(digits) > 1, digits == "":
	case strings.EqualFold(digits, ".inf"), strings.EqualFold(s, ".nan"):
		return nil, fmt.Errorf("%s has no form in JSON: put it in quotes", s)
	case strings.HasPrefix(s, "0x"), strings.HasPrefix(s, "0o"):
		if v, err := strconv.ParseUint(s, 0, 64); err == nil && !strings.Contains(s, "_") {
			return strconv.AppendUint(nil, v, 10), nil
		}
	case strings.Trim(digits, "0123456789") == "":
		digits = strings.TrimLeft(digits[:len(digits)-1], "0") + digits[len(digits)-1:]
		if s[0] == '-' && digits != "0" {
			digits = "-" + digits
		}
		return json.RawMessage(digits), nil
	case strings.Trim(digits, "0123456789.eE+-") == "" && strings.ContainsAny(digits, "0123456789"):
		if v, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(v, 0) {
			return jsonx.Marshal(v)
		}
	}
	return jsonx.AppendString(nil, s), nil
}
