package config

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// openapi rewrites the entry of an HTTP API, {"openapi": DOCUMENT, "headers": {…}, "credentials": {SCHEME: VALUE}}, as one of the
// built-in server "openapi", whose arguments have all of that.
func (l *loader) openapi(members map[string]*node) map[string]*node {
	doc := members["openapi"]
	switch {
	case doc == nil || members["builtin"] != nil:
		return members
	case doc.kind != '"':
		l.fail(doc.pos, `"openapi" is not a string`, "write the path or the URL of the document")
		return members
	case strings.TrimSpace(doc.text) == "":
		l.fail(doc.pos, `"openapi" is empty`, "write the path or the URL of the document")
		return members
	}
	text := func(at *node, s string) *node { return &node{kind: '"', text: s, pos: at.pos, end: at.end} }
	args := &node{kind: '[', pos: doc.pos, end: doc.end}
	file := doc.text
	if !strings.HasPrefix(file, "http://") && !strings.HasPrefix(file, "https://") && !strings.HasPrefix(file, "$") {
		file = absolute(l.expander.workspace, file)
	}
	args.items = append(args.items, text(doc, file))
	if n := members["args"]; n != nil {
		if n.kind != '[' {
			return members // list reports it
		}
		args.items = append(args.items, n.items...)
	}
	for _, table := range []struct{ name, flag string }{{"headers", "--request-header"}, {"credentials", "--credential"}} {
		n := members[table.name]
		if n == nil {
			continue
		}
		if n.kind != '{' {
			l.fail(n.pos, quote(table.name)+" is not an object", `write {"NAME": "value"}`)
			continue
		}
		for _, m := range n.members {
			flag := table.flag
			if file := m.value.member("file"); file != nil && table.name == "credentials" && len(m.value.members) == 1 && file.kind == '"' && file.text != "" {
				flag, m.value = "--credential-file", file
				if !strings.HasPrefix(file.text, "$") {
					m.value = text(file, absolute(l.expander.workspace, file.text))
				}
			}
			if m.value.kind != '"' && m.value.kind != jsontext.Kind('0') || m.name == "" || strings.Contains(m.name, "=") {
				l.fail(m.value.pos, quote(m.name)+" in "+quote(table.name)+" is not a name and a string", "put it in quotes")
				continue
			}
			args.items = append(args.items, text(m.value, flag), text(m.value, m.name+"="+m.value.text))
		}
	}
	out := map[string]*node{"builtin": text(doc, "openapi"), "args": args}
	for name, n := range members {
		switch name {
		case "openapi", "args", "headers", "credentials":
		default:
			out[name] = n
		}
	}
	return out
}
