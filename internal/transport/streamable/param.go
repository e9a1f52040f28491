package streamable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"strings"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
	"github.com/patchbay-dev/patchbay/jsonrpc"
)

// ParamHeader ties one argument of a tool to a header Mcp-Param-{name}
// (2026-07-28, basic/transports/streamable-http, Custom Headers from Tool Parameters).
type ParamHeader struct {
	header string   // in the spelling of http.Header
	path   []string // of the argument, through properties
	kind   string   // "string", "integer" or "boolean"
}

const headerParam = "Mcp-Param-"

// ParamHeaders reads the x-mcp-header annotations of a tool's input schema. The error names the
// annotation that breaks the rules (HTTP-26-038 to -045); such a tool must not be offered over
// HTTP.
func ParamHeaders(schema json.RawMessage) ([]ParamHeader, error) {
	if !bytes.Contains(schema, []byte("x-mcp-header")) && !bytes.Contains(schema, []byte(`\u`)) {
		return nil, nil // most schemas have none, nor an escape that could hide one
	}
	r := headerReader{seen: map[string]bool{}}
	r.object(schema, nil)
	if r.err == nil && r.legal < count(schema, 0) {
		r.err = fmt.Errorf("x-mcp-header is only allowed on properties that are reached through properties")
	}
	return r.found, r.err
}

type headerReader struct {
	found []ParamHeader
	seen  map[string]bool
	legal int // annotations in allowed places
	err   error
}

// object reads the properties of one object schema.
func (r *headerReader) object(schema json.RawMessage, path []string) {
	props, _ := jsonx.Lookup(schema, "properties")
	if jsonx.KindOf(props) != '{' || len(path) > 32 {
		return
	}
	for name, prop := range jsonx.Members(props) {
		if jsonx.KindOf(prop) != '{' {
			continue
		}
		at := append(path[:len(path):len(path)], string(name))
		if raw, ok := jsonx.Lookup(prop, "x-mcp-header"); ok {
			r.legal++
			r.annotation(raw, prop, at)
		}
		r.object(prop, at)
	}
}

func (r *headerReader) annotation(raw, prop json.RawMessage, path []string) {
	where := strings.Join(path, ".")
	fail := func(format string, args ...any) {
		if r.err == nil {
			r.err = fmt.Errorf("x-mcp-header of %q: "+format, append([]any{where}, args...)...)
		}
	}
	name, err := jsonx.Unquote(raw)
	switch {
	case err != nil:
		fail("must be a string")
	case !token(name):
		fail("%q is not a header name", text.Short(name))
	case r.seen[strings.ToLower(name)]:
		fail("%q is used twice", name)
	default:
		r.seen[strings.ToLower(name)] = true
		typ, _ := jsonx.Lookup(prop, "type")
		kind, _ := jsonx.Unquote(typ)
		if kind != "string" && kind != "integer" && kind != "boolean" {
			fail("the type must be string, integer or boolean")
			return
		}
		r.found = append(r.found, ParamHeader{http.CanonicalHeaderKey(headerParam + name), path, kind})
	}
}

// count counts the annotations of a schema wherever they are, except in its data (const, enum,
// default, examples).
func count(v json.RawMessage, depth int) int {
	n := 0
	if depth > 64 {
		return 0
	}
	switch jsonx.KindOf(v) {
	case '{':
		for name, m := range jsonx.Members(v) {
			switch string(name) {
			case "x-mcp-header":
				if jsonx.KindOf(m) != '{' {
					n++
				}
			case "const", "enum", "default", "examples":
				continue
			}
			n += count(m, depth+1)
		}
	case '[':
		for e := range jsonx.Elements(v) {
			n += count(e, depth+1)
		}
	}
	return n
}

// WithoutParamHeaders returns a schema without its x-mcp-header annotations, wherever they are.
func WithoutParamHeaders(schema json.RawMessage) json.RawMessage {
	return appendBare(nil, schema, 0)
}

// appendBare appends a schema without annotations; it finds them where count does.
func appendBare(dst []byte, v json.RawMessage, depth int) []byte {
	kind := jsonx.KindOf(v)
	if depth > 64 || kind != '{' && kind != '[' {
		return append(dst, v...)
	}
	first := true
	comma := func() {
		if !first {
			dst = append(dst, ',')
		}
		first = false
	}
	if kind == '[' {
		dst = append(dst, '[')
		for e := range jsonx.Elements(v) {
			comma()
			dst = appendBare(dst, e, depth+1)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for name, m := range jsonx.Members(v) {
		if string(name) == "x-mcp-header" && jsonx.KindOf(m) != '{' {
			continue
		}
		comma()
		data := string(name) == "const" || string(name) == "enum" || string(name) == "default" || string(name) == "examples"
		dst = append(jsonx.AppendString(dst, string(name)), ':')
		if data {
			dst = append(dst, m...)
		} else {
			dst = appendBare(dst, m, depth+1)
		}
	}
	return append(dst, '}')
}

// token reports whether s may be part of a header's name (RFC 9110, 5.6.2).
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// argument returns the argument that a header mirrors, false if it is absent or null.
func (p *ParamHeader) argument(args json.RawMessage) (json.RawMessage, bool) {
	v, ok := jsonx.LookupPath(args, p.path...)
	return v, ok && string(v) != "null"
}

// SetParams adds the headers that mirror arguments (HTTP-26-053, -054). A value of another type
// than the schema's is left out; the server reports it.
func SetParams(h http.Header, ps []ParamHeader, args json.RawMessage) {
	for i := range ps {
		v, ok := ps[i].argument(args)
		if !ok {
			continue
		}
		switch ps[i].kind {
		case "string":
			if s, err := jsonx.Unquote(v); err == nil {
				h[ps[i].header] = []string{EncodeValue(s)}
			}
		case "integer":
			if n, ok := integer(string(v)); ok {
				h[ps[i].header] = []string{n.String()}
			}
		case "boolean":
			if k := jsonx.KindOf(v); k == 't' || k == 'f' {
				h[ps[i].header] = []string{string(v)}
			}
		}
	}
}

// CheckParams compares the headers that mirror arguments with the arguments
// (HTTP-26-055, -056). Nil means that they agree.
func CheckParams(h http.Header, ps []ParamHeader, args json.RawMessage) *jsonrpc.Error {
	for i := range ps {
		p := &ps[i]
		v, present := p.argument(args)
		if len(h[p.header]) == 0 && !present {
			continue
		}
		got, fault := single(h, p.header)
		if fault != nil {
			return fault
		}
		value, err := DecodeValue(got)
		switch {
		case err != nil:
			return mismatch("%s: %v", p.header, err)
		case !present:
			return mismatch("%s is sent, but the argument %s is not", p.header, strings.Join(p.path, "."))
		case !mirrors(v, value):
			return mismatch("%s is %q, which is not the argument %s", p.header, text.Short(value), strings.Join(p.path, "."))
		}
	}
	return nil
}

// mirrors reports whether the text of a header is equal to a JSON value. Numbers are compared as
// numbers.
func mirrors(v json.RawMessage, text string) bool {
	switch jsonx.KindOf(v) {
	case '"':
		return textIs(v, text)
	case '0':
		a, ok := integer(string(v))
		b, ok2 := integer(text)
		return ok && ok2 && a.Cmp(b) == 0
	}
	return string(v) == text
}

// integer reads a number that is mathematically an integer, bounded in size.
func integer(s string) (*big.Int, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return big.NewInt(n), true
	}
	if len(s) > 40 || strings.ContainsAny(s, "xXoO_/pP") {
		return nil, false
	}
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		if e, err := strconv.Atoi(s[i+1:]); err != nil || e < -40 || e > 40 {
			return nil, false
		}
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || !r.IsInt() {
		return nil, false
	}
	return r.Num(), true
}
