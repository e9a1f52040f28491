package jsonx

import (
	"bytes"
	"encoding/json"
	"iter"
	"math/bits"
)

// KindOf returns the kind of a raw value: '{', '[', '"', '0' for a number, 't', 'f', 'n', or 0
// when no value begins there. It looks only at the first byte that is not white space.
func KindOf(raw []byte) byte {
	if i := skipSpace(raw, 0); i < len(raw) {
		return kinds[raw[i]]
	}
	return 0
}

// kinds is the kind of value that begins with a byte.
var kinds = [256]byte{
	'{': '{', '[': '[', '"': '"', 't': 't', 'f': 'f', 'n': 'n',
	'-': '0', '0': '0', '1': '0', '2': '0', '3': '0', '4': '0', '5': '0', '6': '0', '7': '0', '8': '0', '9': '0',
}

// OrObject returns raw, or {} if that is empty.
func OrObject(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage(`{}`)
	}
	return raw
}

// Only returns the value of a member of a valid object that has no other members; else nil.
func Only(obj json.RawMessage, name string) (value json.RawMessage) {
	for n, v := range Members(obj) {
		if value != nil || string(n) != name {
			return nil
		}
		value = v
	}
	return value
}

// Members yields the members of a valid object in order. The name is unescaped and valid only
// until the next step; the value is a sub-slice of obj. Anything but an object has no members.
func Members(obj []byte) iter.Seq2[[]byte, json.RawMessage] {
	return func(yield func([]byte, json.RawMessage) bool) {
		for at, ok := firstMember(obj); ok; at, ok = nextMember(obj, at.end) {
			if !yield(at.text(obj), obj[at.value:at.end:at.end]) {
				return
			}
		}
	}
}

// Elements yields the elements of a valid array, as sub-slices of arr. Anything but an array has
// no elements.
func Elements(arr []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		i := skipSpace(arr, 0)
		if i >= len(arr) || arr[i] != '[' {
			return
		}
		for i = skipSpace(arr, i+1); i < len(arr) && arr[i] != ']'; {
			end := skipValue(arr, i)
			if !yield(arr[i:end:end]) {
				return
			}
			i = skipSpace(arr, end)
			if i >= len(arr) || arr[i] != ',' {
				return
			}
			i = skipSpace(arr, i+1)
		}
	}
}

// Lookup returns the value of a member of a valid object, as a sub-slice of obj.
func Lookup(obj []byte, name string) (value json.RawMessage, ok bool) {
	at := find(obj, name)
	if at < 0 {
		return nil, false
	}
	end := skipValue(obj, at)
	return obj[at:end:end], end > at
}

// LookupPath is [Lookup] along a path: with "a" and "b" it returns the member "b" of the member
// "a". Without names it returns obj.
func LookupPath(obj []byte, names ...string) (value json.RawMessage, ok bool) {
	if len(names) == 0 {
		return obj, true
	}
	for _, name := range names[:len(names)-1] {
		at := find(obj, name)
		if at < 0 {
			return nil, false
		}
		obj = obj[at:] // where its value ends makes no difference
	}
	return Lookup(obj, names[len(names)-1])
}

// find returns the position of the value of a member of the object that b begins with; negative: there is none.
func find(b []byte, name string) int {
	i := skipSpace(b, 0)
	for open := byte('{'); i < len(b) && b[i] == open; open = ',' {
		m, ok := nameAt(b, i+1)
		if !ok {
			return -1
		}
		if m.is(b, name) {
			return m.value
		}
		if i = skipValue(b, m.value); i == m.value {
			return -1
		}
		i = skipSpace(b, i)
	}
	return -1
}

// member is the position of a member in an object: obj[name:value] is the quoted name, the colon
// and the space around it, obj[value:end] is the value.
type member struct {
	name, nameEnd int // with the quotes
	value, end    int
	escaped       bool
}

func (m member) text(obj []byte) []byte {
	body := obj[m.name+1 : m.nameEnd-1]
	if m.escaped {
		return appendUnescaped(nil, body)
	}
	return body
}

func (m member) is(obj []byte, name string) bool {
	if m.escaped {
		return string(m.text(obj)) == name
	}
	return string(obj[m.name+1:m.nameEnd-1]) == name
}

func firstMember(obj []byte) (m member, ok bool) {
	i := skipSpace(obj, 0)
	if i >= len(obj) || obj[i] != '{' {
		return m, false
	}
	return memberAt(obj, i+1)
}

// nextMember returns the member after the value that ends at i.
func nextMember(obj []byte, i int) (m member, ok bool) {
	i = skipSpace(obj, i)
	if i >= len(obj) || obj[i] != ',' {
		return m, false
	}
	return memberAt(obj, i+1)
}

func memberAt(obj []byte, i int) (m member, ok bool) {
	if m, ok = nameAt(obj, i); ok {
		m.end = skipValue(obj, m.value)
	}
	return m, m.end > m.value
}

// nameAt returns a member without its end.
func nameAt(obj []byte, i int) (m member, ok bool) {
	m.name = skipSpace(obj, i)
	if m.name >= len(obj) || obj[m.name] != '"' {
		return m, false
	}
	m.nameEnd, m.escaped = skipString(obj, m.name)
	i = skipSpace(obj, m.nameEnd)
	if i >= len(obj) || obj[i] != ':' {
		return m, false
	}
	m.value = skipSpace(obj, i+1)
	return m, true
}

// skipString returns the position after the string that begins at b[i].
func skipString(b []byte, i int) (next int, escaped bool) {
	i++
	for far := i + longSkip; i+8 <= len(b); {
		m := quoteOrBackslash(load(b, i))
		if m != 0 {
			i += bits.TrailingZeros64(m) / 8
			if b[i] == '"' {
				return i + 1, escaped
			}
			escaped = true
			i += 2
			continue
		}
		if i += 8; i >= far {
			next, more := skipLong(b, i)
			return next, escaped || more
		}
	}
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1, escaped
		case '\\':
			escaped = true
			i++
		}
	}
	return len(b), escaped
}

// longSkip is the number of bytes of a string after which its end is searched eight bytes at a
// time.
const longSkip = 64

// skipLong continues at b[start], inside a string and not after an escaping backslash.
func skipLong(b []byte, start int) (next int, escaped bool) {
	next = skipBody(b, start)
	return next, bytes.IndexByte(b[start:next], '\\') >= 0
}

// skipText is skipString without the report of escapes.
func skipText(b []byte, i int) (next int) { return skipBody(b, i+1) }

// skipBody returns the position after the quote that ends the string around b[start], which must
// not follow an escaping backslash.
func skipBody(b []byte, start int) (next int) {
	for i := start; ; {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		i += n
		slashes := 0
		for i-slashes > start && b[i-slashes-1] == '\\' {
			slashes++
		}
		i++
		if slashes%2 == 0 {
			return i
		}
	}
}

// skipValue returns the position after the value that begins at b[i].
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipText(b, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth--; depth < 0 {
				return i
			}
			i++
		case ' ', '\t', '\r', '\n', ',', ':':
			if depth == 0 {
				return i
			}
			i++
			continue // a value did not end here
		default:
			for i < len(b) && !ends(b[i]) {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
	return i
}

// ends reports whether a number or literal ends before c.
func ends(c byte) bool {
	switch c {
	case ' ', '\t', '\r', '\n', ',', ':', '}', ']', '{', '[', '"':
		return true
	}
	return false
}

// Compact appends raw, which must be valid, without the white space between its tokens. Strings
// and numbers stay byte for byte.
func Compact(dst, raw []byte) []byte {
	start := 0 // raw[start:i] is not yet written
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '"':
			i = skipText(raw, i)
		case ' ', '\t', '\r', '\n':
			dst = append(dst, raw[start:i]...)
			i = skipSpace(raw, i)
			start = i
		default:
			i++
		}
	}
	return append(dst, raw[start:]...)
}

// AppendLine appends raw without its raw newlines and carriage returns, so that it fits in one
// line, valid or not. In valid JSON they are white space. All else stays byte for byte.
func AppendLine(dst, raw []byte) []byte {
	if bytes.IndexByte(raw, '\n') < 0 && bytes.IndexByte(raw, '\r') < 0 {
		return append(dst, raw...)
	}
	for _, c := range raw {
		if c != '\n' && c != '\r' {
			dst = append(dst, c)
		}
	}
	return dst
}

// Texts returns the texts that a member has in objects; none for an object without it, or with an empty one.
func Texts(objects []json.RawMessage, member string) (out []string) {
	for _, object := range objects {
		v, _ := Lookup(object, member)
		if text, err := Unquote(v); err == nil && text != "" {
			out = append(out, text)
		}
	}
	return out
}
