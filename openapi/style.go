package openapi

import (
	"encoding/hex"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A pair is one name and value of a query, a cookie or a form, not escaped yet.
type pair struct{ name, value string }

// text returns the text of a value that is not an object or an array; of those it is the JSON.
func (n *node) asText() string {
	switch n.kind {
	case '"', '0':
		return n.text
	case 'n':
		return ""
	}
	return string(n.appendJSON(nil, 0))
}

// parts returns the texts of a list or an object in one row: its elements, or its names and values.
func (n *node) parts() (out []string) {
	for _, item := range n.items {
		out = append(out, item.asText())
	}
	for _, m := range n.members {
		out = append(out, m.name, m.value.asText())
	}
	return out
}

// joined escapes texts and joins them.
func joined(texts []string, separator string, escape func(string) string) string {
	for i, t := range texts {
		texts[i] = escape(t)
	}
	return strings.Join(texts, separator)
}

// simple returns a value in the styles simple, label and matrix, escaped.
func (p *parameter) simple(v *node, escape func(string) string) string {
	if p.json {
		return escape(string(v.appendJSON(nil, 0)))
	}
	separator := ","
	switch p.style { // of 2.0
	case "spaceDelimited":
		separator = escape(" ")
	case "tabDelimited":
		separator = escape("\t")
	case "pipeDelimited":
		separator = escape("|")
	}
	scalar := v.kind != '{' && v.kind != '['
	var equal []string // of an object in its exploded form
	for _, m := range v.members {
		equal = append(equal, escape(m.name)+"="+escape(m.value.asText()))
	}
	switch p.style {
	case "label":
		switch {
		case scalar:
			return "." + escape(v.asText())
		case p.explode && v.kind == '{':
			return "." + strings.Join(equal, ".")
		case p.explode:
			return "." + joined(v.parts(), ".", escape)
		}
		return "." + joined(v.parts(), ",", escape)
	case "matrix":
		name := ";" + escape(p.name)
		switch {
		case scalar && v.asText() == "":
			return name
		case scalar:
			return name + "=" + escape(v.asText())
		case p.explode && v.kind == '{':
			return ";" + strings.Join(equal, ";")
		case p.explode:
			return name + "=" + joined(v.parts(), name+"=", escape)
		}
		return name + "=" + joined(v.parts(), ",", escape)
	}
	switch {
	case scalar:
		return escape(v.asText())
	case p.explode && v.kind == '{':
		return strings.Join(equal, ",")
	}
	return joined(v.parts(), separator, escape)
}

// pairs returns a value in the styles of a query. A list that is not exploded is one pair, whose separators are escaped
// already.
func (p *parameter) pairs(v *node, escape func(string) string) (out []pair) {
	name := escape(p.name)
	one := func(separator string) []pair { return []pair{{name, joined(v.parts(), separator, escape)}} }
	switch {
	case p.json:
		return []pair{{name, escape(string(v.appendJSON(nil, 0)))}}
	case p.style == "deepObject":
		return deep(p.name, v, escape)
	case v.kind != '{' && v.kind != '[':
		return []pair{{name, escape(v.asText())}}
	case p.style == "spaceDelimited" && !p.explode:
		return one("%20")
	case p.style == "tabDelimited":
		return one("%09")
	case p.style == "pipeDelimited" && !p.explode:
		return one("%7C")
	case !p.explode:
		return one(",")
	}
	for _, item := range v.items {
		out = append(out, pair{name, escape(item.asText())})
	}
	for _, m := range v.members {
		out = append(out, pair{escape(m.name), escape(m.value.asText())})
	}
	return out
}

// deep returns pairs name[a][b]=value. Elements of lists have their index, since the specification does not say.
func deep(name string, v *node, escape func(string) string) (out []pair) {
	for i, item := range v.items {
		out = append(out, deep(fmt.Sprintf("%s[%d]", name, i), item, escape)...)
	}
	for _, m := range v.members {
		out = append(out, deep(name+"["+m.name+"]", m.value, escape)...)
	}
	if v.kind != '{' && v.kind != '[' {
		out = append(out, pair{escape(name), escape(v.asText())})
	}
	return out
}

// escapeSegment escapes all but unreserved characters, for a path and a query (RFC 3986, 2.3).
func escapeSegment(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// escapeReserved leaves the reserved characters that a query may have, too, but for those that end a value.
func escapeReserved(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if strings.IndexByte(":/?@!$'()*,;-._~", c) >= 0 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// safeSegments returns an error if a path has, decoded up to three times as servers and proxies on the way may do, a
// segment "." or "..", which would lead to another path. A segment ends for some of them where a parameter, a query or a
// fragment begins, or at a zero.
func safeSegments(path string) error {
	for range 4 {
		for _, segment := range strings.FieldsFunc(path, func(c rune) bool { return c == '/' || c == '\\' }) {
			name := segment
			if i := strings.IndexAny(segment, ";?#\x00"); i >= 0 {
				name = segment[:i]
			}
			if name = strings.TrimSpace(name); name == "." || name == ".." {
				return fmt.Errorf("the segment %s of a path leads elsewhere", quote(segment))
			}
		}
		decoded := decodePath(path)
		if decoded == path {
			break
		}
		path = decoded
	}
	return nil
}

// decodePath decodes escapes as lenient servers do: what is not one stays, those of IIS (%u002e) count, and so do . / and \ in more
// bytes than UTF-8 has for them, and the characters that Unicode's compatibility forms and code pages of Windows make one of them.
func decodePath(path string) string {
	var out []byte
	for i := 0; i < len(path); i++ {
		rest := path[i+1:]
		if path[i] != '%' {
			out = append(out, path[i])
			continue
		}
		if len(rest) >= 5 && rest[0]|0x20 == 'u' {
			if c, err := strconv.ParseUint(rest[1:5], 16, 16); err == nil {
				out = utf8.AppendRune(out, rune(c))
				i += 5
				continue
			}
		}
		if c, err := hex.DecodeString(rest[:min(2, len(rest))]); err == nil && len(c) == 1 {
			out = append(out, c[0])
			i += 2
			continue
		}
		out = append(out, '%')
	}
	return lookalike.Replace(string(out))
}

var lookalike = strings.NewReplacer("\xc0\xae", ".", "\xc0\xaf", "/", "\xc1\x9c", `\`, "\xe0\x80\xae", ".", "\xe0\x80\xaf", "/",
	"\u2024", ".", "\u2025", "..", "\ufe52", ".", "\uff0e", ".", "\u2044", "/", "\u2215", "/", "\uff0f", "/", "\u2216", `\`, "\ufe68", `\`, "\uff3c", `\`)
