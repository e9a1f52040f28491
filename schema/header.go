package schema

import (
	"errors"
	"fmt"
	"strings"
)

// headerIntMax bounds integers that are mirrored into a header: every peer
// must be able to hold them (2026-07-28, basic/transports/streamable-http,
// Schema Extension; HTTP-26-040).
const headerIntMax = 1<<53 - 1

// checkHeaderName checks the value of x-mcp-header: a token of RFC 9110,
// section 5.6.2 (HTTP-26-035 to HTTP-26-037).
func checkHeaderName(name string) error {
	if name == "" {
		return errors.New("the name is empty")
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0 {
			continue
		}
		return fmt.Errorf("%q is not a header name: only letters, digits and !#$%%&'*+-.^_`|~ are allowed", name)
	}
	return nil
}

// checkHeaders checks the specification's rules for header tags in a whole type: unique without
// regard to case (HTTP-26-038), on fields that are reached from the root through properties alone
// (HTTP-26-041, HTTP-26-042). The nodes in defs are reached through a $ref.
func checkHeaders(root *node, defs map[*node]string) error {
	seen := map[string]string{}
	var reached func(n *node, path string) error
	reached = func(n *node, path string) error {
		for i := range n.fields {
			f := &n.fields[i]
			at := joinPath(path, pathName(f.name))
			if h := f.rules.header(); h != "" {
				key := strings.ToLower(h)
				if other, dup := seen[key]; dup {
					return fmt.Errorf("tag header: %s and %s both use %q", other, at, h)
				}
				seen[key] = at
			}
			if _, ref := defs[f.node]; !ref && f.node.kind == kindStruct {
				if err := reached(f.node, at); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if root.kind == kindStruct {
		if err := reached(root, ""); err != nil {
			return err
		}
	}
	type visit struct {
		n    *node
		open bool // reached through properties alone
	}
	visited := map[visit]bool{}
	var rest func(n *node, open bool) error
	rest = func(n *node, open bool) error {
		if n == nil || visited[visit{n, open}] {
			return nil
		}
		visited[visit{n, open}] = true
		for i := range n.fields {
			f := &n.fields[i]
			if f.rules.header() != "" && !open {
				return fmt.Errorf("tag header: %s.%s is inside a list, a map or a recursive type, which cannot have a header", n.typ, f.goName)
			}
			_, ref := defs[f.node]
			if err := rest(f.node, open && !ref && f.node.kind == kindStruct); err != nil {
				return err
			}
		}
		return rest(n.elem.node, false)
	}
	return rest(root, root.kind == kindStruct)
}
