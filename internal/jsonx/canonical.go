package jsonx

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Canonical returns raw without white space and with the members of every object in one order, so
// that two spellings of one value give the same bytes. Numbers keep their spelling. Invalid JSON, and a value
// that is canonical already, is returned as it is.
func Canonical(raw []byte) []byte {
	if plain(raw, 0, plainDepth) == len(raw) {
		return raw
	}
	return formatted(raw)
}

// formatted is Canonical, whatever raw is.
func formatted(raw []byte) []byte {
	v := jsontext.Value(raw).Clone()
	if err := v.Format(jsontext.Multiline(false), jsontext.ReorderRawObjects(true)); err != nil {
		return raw
	}
	return v
}

// plainDepth is the depth to which plain looks.
const plainDepth = 32

// plain returns the end of the value at b[i] if [Canonical] leaves it as it is, whether it is valid or not; -1: that is not
// clear. The arguments of most calls are plain, and it takes much less time to see that than to format them.
func plain(b []byte, i, depth int) (end int) {
	if i >= len(b) || depth == 0 {
		return -1
	}
	switch b[i] {
	case '"':
		end, _ = plainString(b, i)
		return end
	case '{':
		var last []byte // name
		for first := true; ; first = false {
			if i++; first && i < len(b) && b[i] == '}' {
				return i + 1
			}
			start, escaped := i, false
			if i, escaped = plainString(b, i); escaped || i < 0 || i >= len(b) || b[i] != ':' {
				return -1
			}
			name := b[start+1 : i-1]
			if !first && bytes.Compare(last, name) >= 0 || bytes.ContainsFunc(name, beyondASCII) { // the order is that of UTF-16
				return -1
			}
			last = name
			if i = plain(b, i+1, depth-1); i < 0 || i >= len(b) || b[i] != ',' {
				return plainEnd(b, i, '}')
			}
		}
	case '[':
		for first := true; ; first = false {
			if i++; first && i < len(b) && b[i] == ']' {
				return i + 1
			}
			if i = plain(b, i, depth-1); i < 0 || i >= len(b) || b[i] != ',' {
				return plainEnd(b, i, ']')
			}
		}
	}
	start := i
	for i < len(b) && (b[i] >= '0' && b[i] <= '9' || b[i] >= 'a' && b[i] <= 'z' || b[i] == '-' || b[i] == '.' || b[i] == '+' || b[i] == 'E') {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// plainString returns the end of a string whose escapes are as short as they can be; -1: it is not one, or that is not
// clear.
func plainString(b []byte, i int) (end int, escaped bool) {
	if i >= len(b) || b[i] != '"' {
		return -1, false
	}
	if end, escaped = skipString(b, i); !escaped {
		return end, false
	}
	for text := b[i+1 : end-1]; ; {
		at := bytes.IndexByte(text, '\\')
		if at < 0 {
			return end, true
		}
		if at+1 == len(text) || bytes.IndexByte([]byte(`bfnrt"\`), text[at+1]) < 0 {
			return -1, true
		}
		text = text[at+2:]
	}
}

// plainEnd returns the end of an object or a list that ends with c.
func plainEnd(b []byte, i int, c byte) (end int) {
	if i < 0 || i >= len(b) || b[i] != c {
		return -1
	}
	return i + 1
}

func beyondASCII(r rune) bool { return r > '~' }
