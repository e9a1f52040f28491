package schema

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// document is one parsed JSON text: every value in it, in the order of the text, so that the
// contents of an object or array follow it directly.
type document struct {
	values  []value
	objects int   // how many of values are objects
	huge    int32 // the first number that is too large to compute exactly, -1 for none
}

// value is one value of a document. Places are indexes into document.values.
type value struct {
	kind   byte   // as of jsonx.KindOf
	order  int32  // its number among the members or elements of its parent
	parent int32  // -1 for the root
	size   int32  // members or elements
	next   int32  // the place after the value and all that it contains
	begin  int32  // of a member: where its name begins in the text
	name   string // of a member
	text   string // the unescaped text of a string, the literal of any other value
}

// root is the place of the value that contains all others.
const root = 0

// parseDocument reads data, one JSON value, as strictly as jsonx.
func parseDocument(data []byte) (*document, error) {
	if err := jsonx.Valid(data, maxDepth); err != nil {
		return nil, err
	}
	if len(data) > math.MaxInt32 {
		return nil, errors.New("is over 2 GiB")
	}
	r := documentReader{data: data, text: string(data), doc: &document{huge: -1}}
	most := bytes.Count(data, []byte{','}) + bytes.Count(data, []byte{'['}) + bytes.Count(data, []byte{'{'})
	r.doc.values = make([]value, 0, 1+min(most, len(data)/2))
	r.read(-1, 0, "")
	return r.doc, nil
}

// documentReader reads a text that is known to be valid.
type documentReader struct {
	data []byte
	text string // the same
	pos  int
	doc  *document
}

func (r *documentReader) peek() byte {
	r.pos = jsonx.SkipSpace(r.data, r.pos)
	return r.data[r.pos]
}

func (r *documentReader) read(parent, order int32, name string) {
	kind := jsonx.KindOf(r.data[r.pos:])
	r.peek()
	at, start := int32(len(r.doc.values)), r.pos
	r.doc.values = append(r.doc.values, value{kind: kind, order: order, parent: parent, name: name})
	size, text := int32(0), ""
	switch kind {
	case '{':
		r.doc.objects++
		for r.pos++; r.more('}'); size++ {
			place, begin := len(r.doc.values), int32(r.pos)
			name := r.string()
			r.peek() // the colon
			r.pos++
			r.read(at, size, name)
			r.doc.values[place].begin = begin
		}
	case '[':
		for r.pos++; r.more(']'); size++ {
			r.read(at, size, "")
		}
	case '"':
		text = r.string()
	default:
		r.pos, _ = jsonx.ScanValue(r.data, r.pos, 0, 0)
	}
	if kind != '"' {
		text = r.text[start:r.pos]
	}
	if kind == '0' && r.doc.huge < 0 && hugeNumber(text) {
		r.doc.huge = at
	}
	v := &r.doc.values[at]
	v.size, v.text, v.next = size, text, int32(len(r.doc.values))
}

// more moves to the next member or element, or past the end.
func (r *documentReader) more(end byte) bool {
	switch r.peek() {
	case end:
		r.pos++
		return false
	case ',':
		r.pos++
		r.peek()
	}
	return true
}

// string reads the string at the current position.
func (r *documentReader) string() (text string) {
	start := r.pos
	next, escaped := jsonx.SkipString(r.data, start)
	r.pos = next
	if escaped {
		text, _ = jsonx.Unescaped(r.data[:next], start)
		return text
	}
	return r.text[start+1 : next-1]
}

// hugeNumber reports whether a number is too large to compute exactly.
func hugeNumber(lit string) bool {
	return (len(lit) > 20 || strings.ContainsAny(lit, "eE")) && !parseDecimal([]byte(lit)).bounded()
}

// find returns the place of the member of an object that is called name, -1 for
// none.
func (d *document) find(at int32, name string) int32 {
	if d.values[at].kind != '{' {
		return -1
	}
	for i := at + 1; i < d.values[at].next; i = d.values[i].next {
		if d.values[i].name == name {
			return i
		}
	}
	return -1
}

// follow returns the place that a JSON pointer leads to from at, -1 if it leads nowhere (RFC
// 6901). It adds to work the number of values that it skips.
func (d *document) follow(at int32, pointer string, work *int) int32 {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if d.values[at].kind == '[' {
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= int(d.values[at].size) || strconv.Itoa(i) != token {
				return -1
			}
			*work += i
			for at++; i > 0; i-- {
				at = d.values[at].next
			}
			continue
		}
		*work += int(d.values[at].size)
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		if at = d.find(at, token); at < 0 {
			return -1
		}
	}
	return at
}

// path writes a place as people do: a.b[2].c.
func (d *document) path(at int32) string {
	v := &d.values[at]
	switch {
	case v.parent < 0:
		return ""
	case d.values[v.parent].kind == '[':
		return d.path(v.parent) + "[" + strconv.Itoa(int(v.order)) + "]"
	}
	return joinPath(d.path(v.parent), pathName(v.name))
}

// pointer returns the JSON pointer of a value, with rest behind it.
func (d *document) pointer(at int32, rest string) string {
	for v := &d.values[at]; v.parent >= 0; v = &d.values[v.parent] {
		step := pointerTo(v.name)
		if d.values[v.parent].kind == '[' {
			step = "/" + strconv.Itoa(int(v.order))
		}
		if rest = joinPointer(step, rest); rest == "" {
			return ""
		}
	}
	return rest
}

// shown returns the value at a place for an error: its text without white space, clipped when
// long.
func (d *document) shown(at int32) string {
	v := &d.values[at]
	if v.kind == '"' {
		return quote(v.text)
	}
	if v.kind == '0' {
		return excerpt(v.text)
	}
	short := make([]byte, 0, quoteMax+1)
	quoted := false
	for i := 0; i < len(v.text) && len(short) <= quoteMax; i++ {
		c := v.text[i]
		if !quoted && (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
			continue
		}
		short = append(short, c)
		switch {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(v.text):
			i++
			short = append(short, v.text[i])
		}
	}
	return excerpt(string(short))
}

// appendCanonical appends a text that equal JSON values share: 1 and 1.0 do,
// and objects do whatever the order of their members.
func (d *document) appendCanonical(dst []byte, at int32) []byte {
	v := &d.values[at]
	switch v.kind {
	case '{':
		members := make([]int32, 0, v.size)
		for i := at + 1; i < v.next; i = d.values[i].next {
			members = append(members, i)
		}
		slices.SortFunc(members, func(a, b int32) int { return strings.Compare(d.values[a].name, d.values[b].name) })
		dst = append(dst, '{')
		for _, i := range members {
			dst = appendCounted(dst, d.values[i].name)
			dst = d.appendCanonical(dst, i)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		for i := at + 1; i < v.next; i = d.values[i].next {
			dst = d.appendCanonical(dst, i)
		}
		return append(dst, ']')
	case '"':
		return appendCounted(dst, v.text)
	case '0':
		return parseDecimal([]byte(v.text)).appendCanonical(dst)
	}
	return append(dst, v.kind)
}

func appendCounted(dst []byte, s string) []byte {
	dst = strconv.AppendInt(append(dst, '"'), int64(len(s)), 10)
	return append(append(dst, ':'), s...)
}
