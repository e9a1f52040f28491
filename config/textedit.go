package config

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// A change of a file changes its text: untouched parts keep their comments, order and layout.
// Offsets are those of the tree.

// textEdit is one place of a text and its new content.
type textEdit struct {
	pos, end int
	text     string
}

// apply makes changes, which are in the order of the text and do not overlap.
func apply(data []byte, changes ...textEdit) []byte {
	var out []byte
	at := 0
	for _, c := range changes {
		out = append(append(out, data[at:c.pos]...), c.text...)
		at = c.end
	}
	return append(out, data[at:]...)
}

// layout is the indentation of a text.
type layout struct {
	newline string
	step    string // indentation of one level
}

func layoutOf(data []byte, root *node) layout {
	l := layout{"\n", "  "}
	if bytes.Contains(data, []byte("\r\n")) {
		l.newline = "\r\n"
	}
	if len(root.members) > 0 {
		if indent, first := indentOf(data, root.members[0].pos); first && indent != "" {
			l.step = indent
		}
	}
	return l
}

// indentOf returns the white space that the line of an offset begins with, and whether only white
// space is before it.
func indentOf(data []byte, pos int) (indent string, first bool) {
	line := data[bytes.LastIndexByte(data[:pos], '\n')+1 : pos]
	line = bytes.TrimPrefix(line, utf8BOM)
	rest := bytes.TrimLeft(line, " \t")
	return string(line[:len(line)-len(rest)]), len(rest) == 0
}

// skip returns the offset of the next byte that is neither white space nor in a comment. If
// sameLine is set, it stops at the end of the line, or where a comment goes over it.
func skip(data []byte, pos int, sameLine bool) int {
	for pos < len(data) {
		rest := data[pos:]
		switch {
		case rest[0] == ' ' || rest[0] == '\t':
			pos++
		case rest[0] == '\n' || rest[0] == '\r':
			if sameLine {
				return pos
			}
			pos++
		case bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexAny(rest, "\r\n")
			if n < 0 {
				n = len(rest)
			}
			pos += n
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 || sameLine && bytes.ContainsAny(rest[:n+2], "\r\n") {
				return pos
			}
			pos += 2 + n + 2
		default:
			return pos
		}
	}
	return pos
}

// endsLine reports whether the text is at the end of a line.
func endsLine(data []byte, pos int) bool {
	return pos == len(data) || data[pos] == '\n' || data[pos] == '\r'
}

// insertMember adds a member to the end of an object of the text. The function write gets the
// indentation of the member's line, or "" if everything is on one line.
func insertMember(data []byte, obj *node, l layout, write func(indent string, oneLine bool) string) []byte {
	return insertInto(data, obj, memberEnds(obj), l, write)
}

func memberEnds(obj *node) (ends [][2]int) {
	for _, m := range obj.members {
		ends = append(ends, [2]int{m.pos, m.value.end})
	}
	return ends
}

// insertInto adds an element to the end of an object or array, whose elements are
// given by their places.
func insertInto(data []byte, n *node, elements [][2]int, l layout, write func(indent string, oneLine bool) string) []byte {
	if len(elements) == 0 {
		indent, _ := indentOf(data, n.pos)
		text := l.newline + indent + l.step + write(indent+l.step, false)
		if !bytes.ContainsAny(data[n.pos:n.end], "\n") {
			text += l.newline + indent
		}
		return apply(data, textEdit{n.pos + 1, n.pos + 1, text})
	}
	last := elements[len(elements)-1]
	comma := skip(data, last[1], false)
	trailing := data[comma] == ','
	anchor := last[1]
	var changes []textEdit
	after := ""
	if trailing {
		anchor, after = comma+1, ","
	}
	indent, first := indentOf(data, last[0])
	if !first {
		before := " "
		if !trailing {
			before = ", "
		}
		return apply(data, textEdit{anchor, anchor, before + write("", true) + after})
	}
	if !trailing {
		changes = append(changes, textEdit{anchor, anchor, ","})
	}
	if end := skip(data, anchor, true); endsLine(data, end) {
		anchor = end // a comment at the end of the line belongs to the existing text
	}
	return apply(data, append(changes, textEdit{anchor, anchor, l.newline + indent + write(indent, false) + after})...)
}

// removeMember removes a member from an object of the text, with the comment behind it in its
// line.
func removeMember(data []byte, obj *node, i int) []byte {
	start, end := obj.members[i].pos, obj.members[i].value.end
	var changes []textEdit
	comma := skip(data, end, false)
	switch {
	case data[comma] == ',':
		end = comma + 1
	case i > 0:
		before := skip(data, obj.members[i-1].value.end, false)
		changes = append(changes, textEdit{before, before + 1, ""})
	}
	indent, first := indentOf(data, start)
	line := skip(data, end, true)
	switch {
	case first && endsLine(data, line):
		start, end = start-len(indent), line
		if bytes.HasPrefix(data[end:], []byte("\r\n")) {
			end += 2
		} else if end < len(data) {
			end++
		}
	case data[comma] == ',':
		for end < len(data) && (data[end] == ' ' || data[end] == '\t') {
			end++
		}
	default:
		for start > 0 && (data[start-1] == ' ' || data[start-1] == '\t') && (len(changes) == 0 || start > changes[0].end) {
			start--
		}
	}
	return apply(data, append(changes, textEdit{start, end, ""})...)
}

// format lays out a JSON value as people write it: an object over several lines, an
// array of plain values in one.
func format(raw json.RawMessage, indent string, l layout, oneLine bool) string {
	var items []string
	long := false
	switch kind := jsonx.KindOf(raw); kind {
	case '{':
		for name, value := range jsonx.Members(raw) {
			items = append(items, string(jsonx.AppendString(nil, string(name)))+": "+format(value, indent+l.step, l, oneLine))
		}
		return enclose("{", items, "}", indent, l, oneLine || len(items) == 0)
	case '[':
		for value := range jsonx.Elements(raw) {
			k := jsonx.KindOf(value)
			long = long || k == '{' || k == '['
			items = append(items, format(value, indent+l.step, l, oneLine))
		}
		return enclose("[", items, "]", indent, l, oneLine || !long)
	}
	return strings.TrimSpace(string(raw))
}

func enclose(open string, items []string, end, indent string, l layout, oneLine bool) string {
	if oneLine {
		return open + strings.Join(items, ", ") + end
	}
	inner := l.newline + indent + l.step
	return open + inner + strings.Join(items, ","+inner) + l.newline + indent + end
}
