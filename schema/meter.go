package schema

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxChain bounds how many subschemas may apply to one and the same value by
// way of each other ($ref, allOf and the like). With maxDepth it bounds the
// stack of a validation.
const maxChain = 256

// meter makes every part of a compiled schema report what its evaluation
// costs. The library calls the format of a subschema early in each evaluation,
// so that is where the report goes out; a subschema that fails even earlier,
// at its type, enum or const, is paid for by the one above it.
type meter struct {
	spend  func(int)
	chains map[*jsonschema.Schema]int // longest chain from here, or openChain
	todo   []*jsonschema.Schema
	err    error
}

// openChain marks a subschema whose chains are being followed.
const openChain = -1

// attach meters s and everything it leads to.
func (m *meter) attach(s *jsonschema.Schema) {
	for m.todo = append(m.todo, s); len(m.todo) > 0; {
		last := len(m.todo) - 1
		s, m.todo = m.todo[last], m.todo[:last]
		m.chain(s)
	}
}

// chain meters s and what applies to the same value, and returns the longest
// chain that starts at s. What applies to members and items is left for later.
func (m *meter) chain(s *jsonschema.Schema) int {
	if n, ok := m.chains[s]; ok {
		if n == openChain {
			m.fail(errors.New("the schema refers to itself without going into the value"))
			return 0
		}
		return n
	}
	m.chains[s] = openChain
	same := inPlace(s)
	longest := 0
	for _, sub := range same {
		longest = max(longest, m.chain(sub))
	}
	m.chains[s] = longest + 1
	if longest+1 > maxChain {
		m.fail(fmt.Errorf("more than %d subschemas lead to each other", maxChain))
	}
	children := below(s)
	m.todo = append(m.todo, children...)
	s.Format = m.wrap(s, same, children)
	return longest + 1
}

func (m *meter) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// wrap returns the format of s with the report in front.
func (m *meter) wrap(s *jsonschema.Schema, same, children []*jsonschema.Schema) *jsonschema.Format {
	spend, format := m.spend, s.Format
	fixed := 1
	for _, sub := range same {
		fixed += weight(sub)
	}
	heaviest := 0
	for _, sub := range children {
		heaviest = max(heaviest, weight(sub))
	}
	perMember := len(same) + 1 + len(s.PatternProperties)
	wrapped := &jsonschema.Format{Validate: func(v any) error {
		cost := fixed
		switch v := v.(type) {
		case map[string]any:
			cost += perMember * len(v)
			if heaviest > 1 {
				for name := range v {
					if sub, ok := s.Properties[name]; ok {
						cost += weight(sub)
					} else {
						cost += min(heaviest, 1000)
					}
				}
			}
		case []any:
			cost += perMember * len(v) * max(1, heaviest)
			if s.UniqueItems {
				cost += min(len(v), 20) * countValues(v)
			}
		case string:
			if s.Pattern != nil {
				cost += 2 + len(v)/8
			}
		}
		spend(cost)
		if format == nil {
			return nil
		}
		return format.Validate(v)
	}}
	if format != nil {
		wrapped.Name = format.Name
	}
	return wrapped
}

// weight is what it costs to see that a value is not the type, enum or const
// of s.
func weight(s *jsonschema.Schema) int {
	n := 1
	if s.Enum != nil {
		n += countValues(s.Enum.Values)
	}
	if s.Const != nil {
		n += countValues(*s.Const)
	}
	return n
}

func countValues(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += countValues(e)
		}
	case []any:
		for _, e := range v {
			n += countValues(e)
		}
	}
	return n
}

// inPlace lists the subschemas that apply to the same value as s.
func inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	var list []*jsonschema.Schema
	add := func(subs ...*jsonschema.Schema) {
		for _, sub := range subs {
			if sub != nil {
				list = append(list, sub)
			}
		}
	}
	add(s.Ref, s.RecursiveRef, s.Not, s.If, s.Then, s.Else)
	if s.DynamicRef != nil {
		add(s.DynamicRef.Ref)
	}
	add(s.AllOf...)
	add(s.AnyOf...)
	add(s.OneOf...)
	for _, sub := range s.DependentSchemas {
		add(sub)
	}
	for _, d := range s.Dependencies {
		if sub, ok := d.(*jsonschema.Schema); ok {
			add(sub)
		}
	}
	return list
}

// below lists the subschemas that apply to members and items.
func below(s *jsonschema.Schema) []*jsonschema.Schema {
	var list []*jsonschema.Schema
	add := func(sub any) {
		switch sub := sub.(type) {
		case *jsonschema.Schema:
			if sub != nil {
				list = append(list, sub)
			}
		case []*jsonschema.Schema:
			list = append(list, sub...)
		}
	}
	for _, sub := range s.Properties {
		add(sub)
	}
	for _, sub := range s.PatternProperties {
		add(sub)
	}
	for _, sub := range []any{
		s.AdditionalProperties, s.PropertyNames, s.UnevaluatedProperties,
		s.Items, s.AdditionalItems, s.PrefixItems, s.Items2020, s.Contains, s.UnevaluatedItems,
		s.ContentSchema,
	} {
		add(sub)
	}
	return list
}

// dynamicAnchors returns the JSON pointers of the objects in doc that have a
// $dynamicAnchor or a $recursiveAnchor.
func dynamicAnchors(doc any, at string) []string {
	var found []string
	switch doc := doc.(type) {
	case map[string]any:
		if doc["$dynamicAnchor"] != nil || doc["$recursiveAnchor"] != nil {
			found = append(found, at)
		}
		for _, name := range sortedKeys(doc) {
			found = append(found, dynamicAnchors(doc[name], at+"/"+pointerToken(name))...)
		}
	case []any:
		for i, e := range doc {
			found = append(found, dynamicAnchors(e, fmt.Sprintf("%s/%d", at, i))...)
		}
	}
	return found
}

// pointerToken escapes a name for a JSON pointer in a URI fragment.
func pointerToken(name string) string {
	name = strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c == '_' || c == '-' || c == '.' || c == '~' || c == '$' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// errPatternInput is panicked with, and recovered in compiled.run, for a text
// that is too long for a pattern: a Regexp cannot return an error.
var errPatternInput = fmt.Errorf("has a text of more than %d bytes where a pattern is to be matched", maxPatternInput)

// boundedPattern refuses to match long texts.
type boundedPattern struct {
	re   *regexp.Regexp
	text string // as it stands in the schema
}

func (p boundedPattern) String() string { return p.text }

func (p boundedPattern) MatchString(s string) bool {
	if len(s) > maxPatternInput {
		panic(errPatternInput)
	}
	return p.re.MatchString(s)
}

// compilePattern compiles a pattern of a foreign schema. They are written for
// ECMAScript, whose \u00e9 Go spells \x{00e9}.
func compilePattern(pattern string) (jsonschema.Regexp, error) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '\\' && i+1 < len(pattern) {
			if pattern[i+1] == 'u' && i+6 <= len(pattern) {
				if _, err := strconv.ParseUint(pattern[i+2:i+6], 16, 16); err == nil {
					b.WriteString(`\x{` + pattern[i+2:i+6] + `}`)
					i += 5
					continue
				}
			}
			b.WriteByte(pattern[i])
			i++
		}
		b.WriteByte(pattern[i])
	}
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, err
	}
	return boundedPattern{re, pattern}, nil
}
