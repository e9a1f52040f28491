package config

import "bytes"

var utf8BOM = []byte("\xef\xbb\xbf")

// strip turns JSON with comments into JSON of the same length: comments, trailing commas and a
// byte order mark become spaces, line breaks and strings stay, so that offsets do not change.
// Valid JSON is returned unchanged.
//
// A block comment without an end is left in place, for the parser to report.
func strip(src []byte) []byte {
	out := bytes.Clone(src)
	if bytes.HasPrefix(out, utf8BOM) {
		blank(out[:len(utf8BOM)])
	}
	comma := -1       // offset of a comma followed only by space and comments
	last := byte('[') // last byte that is neither space nor comment; '[': no value before
	for i := 0; i < len(out); {
		switch c := out[i]; {
		case c == '"':
			i = stringEnd(out, i)
			comma, last = -1, '"'
		case c == '/' && bytes.HasPrefix(out[i:], []byte("//")):
			end := len(out)
			if n := bytes.IndexAny(out[i:], "\n\r"); n >= 0 {
				end = i + n
			}
			blank(out[i:end])
			i = end
		case c == '/' && bytes.HasPrefix(out[i:], []byte("/*")):
			n := bytes.Index(out[i+2:], []byte("*/"))
			if n < 0 {
				return out
			}
			blank(out[i : i+2+n+2])
			i += 2 + n + 2
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		default:
			if (c == '}' || c == ']') && comma >= 0 {
				out[comma] = ' '
			}
			comma = -1
			if c == ',' && last != '[' && last != '{' && last != ',' && last != ':' {
				comma = i
			}
			last = c
			i++
		}
	}
	return out
}

// stringEnd returns the offset after the string that begins at i, or the end
// of the text or line if it does not end.
func stringEnd(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		case '\n':
			return i
		}
	}
	return len(b)
}

// blank overwrites b with spaces, line breaks excepted.
func blank(b []byte) {
	for i, c := range b {
		if c != '\n' && c != '\r' {
			b[i] = ' '
		}
	}
}
