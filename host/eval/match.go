package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/schema"
)

// fault returns what is wrong with a value, or "". The argument there reports whether the value
// exists.
func (m *Matcher) fault(v json.RawMessage, there bool) string {
	switch {
	case m.Absent && there:
		return "is there: " + short(v)
	case m.Absent:
		return ""
	case !there:
		return "is missing"
	case m.Equals != nil && !equal(v, m.Equals):
		return fmt.Sprintf("is %s, not %s", short(v), short(m.Equals))
	case m.Contains != "" && !someText(v, func(s string) bool { return strings.Contains(s, m.Contains) }):
		return fmt.Sprintf("is %s, without %q", short(v), m.Contains)
	}
	if m.Regexp != "" {
		re, err := regexp.Compile(m.Regexp)
		if err != nil {
			return err.Error()
		}
		if !someText(v, re.MatchString) {
			return fmt.Sprintf("is %s, which does not match %s", short(v), m.Regexp)
		}
	}
	if m.Schema != nil {
		if err := fits(m.Schema, v); err != nil {
			return fmt.Sprintf("is %s: %v", short(v), err)
		}
	}
	return ""
}

func fits(s, v json.RawMessage) error {
	compiled, err := schema.Compile(s)
	if err != nil {
		return err
	}
	return compiled.Validate(v)
}

// someText reports whether passes accepts a value that is a text, or an element of a list. Numbers
// and the like count as their text.
func someText(v json.RawMessage, passes func(string) bool) bool {
	if jsonx.KindOf(v) == '[' {
		for e := range jsonx.Elements(v) {
			if jsonx.KindOf(e) != '[' && someText(e, passes) {
				return true
			}
		}
		return false
	}
	if s, err := jsonx.Unquote(v); err == nil {
		return passes(s)
	}
	return passes(string(v))
}

// equal reports whether two values are equal as JSON.
func equal(a, b json.RawMessage) bool {
	ka, kb := jsonx.KindOf(a), jsonx.KindOf(b)
	if ka != kb {
		return false
	}
	switch ka {
	case '{':
		x, y := members(a), members(b)
		if len(x) != len(y) {
			return false
		}
		for name, v := range x {
			if w, ok := y[name]; !ok || !equal(v, w) {
				return false
			}
		}
		return true
	case '[':
		return slices.EqualFunc(slices.Collect(jsonx.Elements(a)), slices.Collect(jsonx.Elements(b)), equal)
	case '"':
		x, err := jsonx.Unquote(a)
		y, err2 := jsonx.Unquote(b)
		return err == nil && err2 == nil && x == y
	case '0':
		return sameNumber(string(a), string(b))
	}
	return string(a) == string(b)
}

// sameNumber compares numbers exactly. Numbers too long for that are compared as text.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	const most = 400
	if len(a) > most || len(b) > most || bigExponent(a) || bigExponent(b) {
		return false
	}
	x, ok := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	return ok && ok2 && x.Cmp(y) == 0
}

func bigExponent(s string) bool {
	i := strings.IndexAny(s, "eE")
	if i < 0 {
		return false
	}
	e, err := strconv.Atoi(strings.TrimPrefix(s[i+1:], "+"))
	return err != nil || e > 400 || e < -400
}

func members(raw json.RawMessage) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for name, v := range jsonx.Members(raw) {
		all[string(name)] = v
	}
	return all
}

// at returns the value at a path.
func at(raw json.RawMessage, path string) (json.RawMessage, bool) {
	if v, ok := jsonx.Lookup(raw, path); ok { // a name that contains dots
		return v, true
	}
	parts, err := splitPath(path)
	if err != nil {
		return nil, false
	}
	for _, part := range parts {
		var ok bool
		if part.name != "" {
			raw, ok = jsonx.Lookup(raw, part.name)
		} else if jsonx.KindOf(raw) == '[' {
			i := 0
			for e := range jsonx.Elements(raw) {
				if i == part.index {
					raw, ok = e, true
					break
				}
				i++
			}
		}
		if !ok {
			return nil, false
		}
	}
	return raw, true
}

// A step of a path is a member, or, if it has no name, an element.
type step struct {
	name  string
	index int
}

// splitPath splits a path into names separated by dots, each followed by its indices.
func splitPath(path string) (list []step, err error) {
	for _, part := range strings.Split(path, ".") {
		name, rest, indexed := strings.Cut(part, "[")
		if name == "" {
			return nil, errors.New("a name is missing")
		}
		list = append(list, step{name: name})
		for indexed {
			var text string
			var ok bool
			if text, rest, ok = strings.Cut(rest, "]"); !ok {
				return nil, errors.New("a ] is missing")
			}
			i, err := strconv.Atoi(text)
			if err != nil || i < 0 {
				return nil, fmt.Errorf("%q is not an index", text)
			}
			list = append(list, step{index: i})
			if rest == "" {
				break
			}
			if rest, ok = strings.CutPrefix(rest, "["); !ok {
				return nil, errors.New("a dot is missing")
			}
		}
	}
	return list, nil
}

// short returns a value for display.
func short(raw json.RawMessage) string { return text.Clip(jsonx.Compact(nil, raw), 120) }
