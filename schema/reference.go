package schema

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// maxChain bounds how many subschemas may apply to one and the same value by
// way of each other ($ref, allOf and the like). With maxDepth it bounds the
// stack of a validation.
const maxChain = 256

// maxFollowed bounds the values that resolving the JSON pointers of a schema's references may
// skip.
const maxFollowed = 50_000_000

// openChain marks a subschema whose chains are being followed.
const openChain = -1

// reference is a keyword that names another subschema.
type reference struct{ keyword, uri string }

// dynamicRef is a reference that may lead elsewhere, depending on the resources that a validation
// has entered.
type dynamicRef struct {
	first     *subschema // the target without any of them
	anchor    string     // of $dynamicRef; empty if only first counts
	recursive bool       // of $recursiveRef
}

// target returns the target of the reference, in the outermost resource of scope that has one.
func (d *dynamicRef) target(scope []*resource) *subschema {
	if d.anchor == "" && !d.recursive {
		return d.first
	}
	for _, res := range scope {
		if d.recursive && res.recursive {
			return res.root
		}
		if s := res.dynamic[d.anchor]; s != nil {
			return s
		}
	}
	return d.first
}

// link joins the subschemas that are reachable from s. References in unreachable ones are
// ignored.
func (c *compiler) link(s *subschema) {
	for todo := []*subschema{s}; len(todo) > 0 && c.sound(); {
		last := len(todo) - 1
		s, todo = todo[last], todo[:last]
		if s.chain == 0 {
			c.chain(s, &todo)
		}
	}
}

// chain links s and the subschemas for the same value, and returns the longest chain that starts
// at s. It adds the subschemas for members and items to todo.
func (c *compiler) chain(s *subschema, todo *[]*subschema) int {
	switch {
	case s.chain == openChain:
		c.fail(errors.New("the schema refers to itself without going into the value"))
		return 0
	case s.chain > 0:
		return s.chain
	}
	s.chain = openChain
	if s.logic != nil {
		for _, ref := range s.logic.written {
			if err := c.refer(s, ref); err != nil {
				c.fail(err)
			}
		}
	}
	longest := 0
	s.same(func(sub *subschema) {
		if c.sound() {
			longest = max(longest, c.chain(sub, todo))
		}
	})
	s.chain = longest + 1
	if s.chain > maxChain {
		c.fail(fmt.Errorf("more than %d subschemas lead to each other", maxChain))
	}
	*todo = s.below(*todo)
	if res := s.res; !res.reached {
		// From here on a dynamic reference may lead into it.
		res.reached = true
		for _, name := range sortedKeys(res.dynamic) {
			*todo = append(*todo, res.dynamic[name])
		}
		if res.recursive {
			*todo = append(*todo, res.root)
		}
	}
	return s.chain
}

// refer resolves one reference of s.
func (c *compiler) refer(s *subschema, ref reference) error {
	uri, fragment, _ := strings.Cut(ref.uri, "#")
	res := s.res
	if uri != "" {
		joined, err := res.join(uri)
		if err != nil {
			return fmt.Errorf("the reference %s is not a URI", quote(ref.uri))
		}
		if res = c.embedded[joined]; joined == base {
			res = c.whole
		}
		if res == nil {
			if d := dialectOf(joined); d != 0 && fragment == "" && ref.keyword == "$ref" {
				s.logic.meta = d
				return nil
			}
			if joined = strings.TrimPrefix(joined, base); fragment != "" {
				joined += "#" + fragment
			}
			return fmt.Errorf("the reference %s leads out of the schema and is not followed; put what it names into $defs", quote(joined))
		}
	}
	name, err := url.PathUnescape(fragment)
	if err != nil {
		return fmt.Errorf("the reference %s is not a URI", quote(ref.uri))
	}
	target := c.target(res, name)
	if target == nil {
		return fmt.Errorf("the reference %s leads to nothing in the schema", quote(ref.uri))
	}
	switch ref.keyword {
	case "$ref":
		s.logic.ref = target
	case "$recursiveRef":
		s.logic.dynamic = &dynamicRef{first: target, recursive: target.res.recursive}
	case "$dynamicRef":
		s.logic.dynamic = &dynamicRef{first: target}
		if target.res.dynamic[name] == target {
			s.logic.dynamic.anchor = name
		}
	}
	return nil
}

// target returns the subschema of a resource that a fragment names, or nil if there
// is none.
func (c *compiler) target(res *resource, fragment string) *subschema {
	switch {
	case fragment == "":
		return res.root
	case fragment[0] != '/':
		return res.anchors[fragment]
	}
	at := c.doc.follow(res.at, fragment, &c.followed)
	if c.followed > maxFollowed {
		c.fail(errors.New("the references in the schema take too long to follow"))
	}
	if at < 0 {
		return nil
	}
	// The schema may be where no keyword expects one. Then it belongs to the resource around it.
	for i := at; ; i = c.doc.values[i].parent {
		if s := c.made[i]; s != nil {
			return c.schema(at, s.res)
		}
	}
}
