package schema

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// base is the URI of schemas without one. It cannot be fetched.
const base = "schema://local/"

// maxURI bounds the URIs of resources, in bytes. Each includes parts of the ones around it.
const maxURI = 4096

// resource is a schema with a URI, whole or embedded in another. References in it are resolved
// against that URI.
type resource struct {
	uri     string // without fragment
	dialect dialect
	at      int32 // place of root
	root    *subschema

	anchors   map[string]*subschema
	dynamic   map[string]*subschema // those of $dynamicAnchor, which are in anchors too
	recursive bool                  // $recursiveAnchor
	reached   bool                  // while linking
}

// identify reads the identifiers of the object at a place: dialect, URI, anchors. It sets s.res.
func (c *compiler) identify(s *subschema, at int32) {
	text := func(keyword string) string {
		if i := c.doc.find(at, keyword); i >= 0 && c.doc.values[i].kind == '"' {
			return c.doc.values[i].text
		}
		return ""
	}
	dialect := s.res.dialect
	if i := c.doc.find(at, "$schema"); i >= 0 {
		v := &c.doc.values[i]
		declared := dialectOf(v.text)
		switch {
		case v.kind != '"' && at == root:
			c.fail(errors.New("$schema must be a string"))
			return
		case declared != 0:
			if at == root || text(declared.id()) != "" { // elsewhere it has no effect
				dialect = declared
			}
		case v.kind == '"':
			c.fail(fmt.Errorf("the dialect %s is not supported; use https://json-schema.org/draft/2020-12/schema", quote(v.text)))
			return
		}
	}
	id, fragment, _ := strings.Cut(text(dialect.id()), "#")
	if dialect.refHides() && c.doc.find(at, "$ref") >= 0 {
		id, fragment = "", ""
	}
	switch {
	case id != "":
		c.open(s, at, id, dialect)
	case at == root:
		s.res.dialect = dialect
	}
	dialect = s.res.dialect
	if dialect.refHides() {
		c.anchor(s, fragment)
		return
	}
	c.anchor(s, text("$anchor"))
	if dialect.has("$dynamicAnchor") {
		if name := text("$dynamicAnchor"); name != "" {
			c.anchor(s, name)
			if s.res.dynamic == nil {
				s.res.dynamic = map[string]*subschema{}
			}
			s.res.dynamic[name] = s
		}
	}
	if dialect.has("$recursiveAnchor") && s == s.res.root {
		i := c.doc.find(at, "$recursiveAnchor")
		s.res.recursive = i >= 0 && c.doc.values[i].kind == 't'
	}
}

// open begins a resource with an id at s.
func (c *compiler) open(s *subschema, at int32, id string, d dialect) {
	uri, err := s.res.join(id)
	if err != nil || len(uri) > maxURI {
		c.fault(c.doc.find(at, d.id()), fmt.Sprintf("must be a URI reference, of at most %d bytes when resolved, got %s", maxURI, quote(id)))
		return
	}
	if c.embedded[uri] != nil {
		c.fail(fmt.Errorf("two subschemas have the %s %s", d.id(), quote(uri)))
		return
	}
	if at == root {
		s.res.uri, s.res.dialect = uri, d
	} else {
		s.res = &resource{uri: uri, dialect: d, at: at, root: s}
	}
	if c.embedded == nil {
		c.embedded = map[string]*resource{}
	}
	c.embedded[uri] = s.res
}

// anchor gives s a name in its resource, if the name is not empty.
func (c *compiler) anchor(s *subschema, name string) {
	if name == "" {
		return
	}
	if have := s.res.anchors[name]; have != nil && have != s {
		c.fail(fmt.Errorf("two subschemas have the anchor %s", quote(name)))
		return
	}
	if s.res.anchors == nil {
		s.res.anchors = map[string]*subschema{}
	}
	s.res.anchors[name] = s
}

// join resolves a URI reference without a fragment.
func (res *resource) join(reference string) (string, error) {
	ref, err := url.Parse(reference)
	if err != nil {
		return "", err
	}
	from, err := url.Parse(res.uri)
	if err != nil {
		return "", err
	}
	return from.ResolveReference(ref).String(), nil
}

// identifier checks a keyword that identify reads against the dialect.
func (k *keywords) identifier(i int32, name string) {
	if !k.is(i, typeString) {
		return
	}
	text := k.doc.values[i].text
	switch {
	case name == "$id" && !k.dialect.refHides():
		if _, fragment, _ := strings.Cut(text, "#"); fragment != "" {
			k.fault(i, "must have no fragment, got "+quote(text)+"; use $anchor")
		}
	case name == "$anchor", name == "$dynamicAnchor":
		if !isAnchor(text, k.dialect) {
			k.fault(i, "must be a name of letters, digits, -, _ and ., got "+quote(text))
		}
	}
}

func isAnchor(s string, d dialect) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' && (i > 0 || d >= draft2020)
		later := '0' <= c && c <= '9' || c == '-' || c == '.' || c == ':' && d == draft2019
		if !letter && (i == 0 || !later) {
			return false
		}
	}
	return s != ""
}
