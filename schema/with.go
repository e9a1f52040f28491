package schema

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// With returns the type with other struct tags on one field, for what is known only at run time: a
// limit from a configuration, an enum from a database. The schema and the decoder follow, and t
// does not change. The path names the property with its JSON names, outermost first; it leads
// through pointers, lists and maps. The tags are written as in a struct, and each replaces the tag of
// its name:
//
//	limited, err := typ.With(fmt.Sprintf(`max:"%d" default:"20"`, most), "filter", "limit")
//
// With fails if there is no such property, if a tag is unknown or twice there, does not apply to the Go
// type of the field or leaves no value, such as an enum made of an empty list, and on json and jsonschema:
// names do not change, and a field is required as before, unless it has a default now. In a type that contains itself only the named place changes.
func (t *Type) With(tags string, path ...string) (*Type, error) {
	root, err := (&builder{}).change(t.root, tags, path)
	if err == nil {
		var made *Type
		if made, err = finish(t.typ, root); err == nil {
			return made, nil
		}
	}
	return nil, fmt.Errorf("schema of %s: %w", t, err)
}

// With is [Type.With] for the schema of results. The tags default and header have no effect.
func (o *Output) With(tags string, path ...string) (*Output, error) {
	b := builder{out: true, stricter: o.check}
	root, err := b.change(o.root, tags, path)
	if err == nil {
		var made *Output
		if made, err = b.finish(o.typ, root); err == nil {
			return made, nil
		}
	}
	return nil, fmt.Errorf("schema of %s: %w", o, err)
}

// pathText writes a path as the faults do.
func pathText(path []string) (text string) {
	for _, name := range path {
		text = joinPath(text, pathName(name))
	}
	return text
}

// change is retag for the path from the root. The error names the path.
func (b *builder) change(root spec, tags string, path []string) (spec, error) {
	if len(path) == 0 {
		return root, errors.New("With: no property is named; give its JSON name behind the tags")
	}
	root, err := b.retag(root, tags, path)
	if err != nil {
		err = fmt.Errorf("%s: %w", pathText(path), err)
	}
	return root, err
}

// retag returns a copy of s with other tags on the field at path. It shares the nodes beside the
// path with s.
func (b *builder) retag(s spec, tags string, path []string) (spec, error) {
	n := *s.node
	s.node = &n
	switch n.kind {
	case kindSlice, kindArray, kindMap:
		elem, err := b.retag(n.elem, tags, path)
		n.elem = elem
		return s, err
	case kindStruct:
	default:
		return s, fmt.Errorf("With: %s has no property %q", n.typ, path[0])
	}
	i := n.find([]byte(path[0]), 0)
	if i < 0 {
		names := make([]string, len(n.fields))
		for i := range n.fields {
			names[i] = strconv.Quote(n.fields[i].name)
		}
		return s, fmt.Errorf("With: %s has no property %q; it has %s", n.typ, path[0], strings.Join(names, ", "))
	}
	n.fields = slices.Clone(n.fields)
	f := &n.fields[i]
	if len(path) > 1 {
		inner, err := b.retag(f.spec, tags, path[1:])
		f.spec = inner
		return s, err
	}
	merged, err := mergeTags(string(f.tag), tags)
	if err != nil {
		return s, err
	}
	f.tag = reflect.StructTag(merged)
	read, err := b.tagsOf(f.tag)
	if err != nil {
		return s, err
	}
	read.words = lastWords(read.words) // a jsonschema tag may have the same ones, before
	place := spec{node: f.node, ptrs: f.ptrs, nullable: f.nullable && b.out}
	if f.node.elem.node != nil { // without the tags of the items
		list := *f.node
		list.elem.rules = baseRules(list.elem.node)
		place.node = &list
	}
	place.rules = baseRules(place.node)
	if err := b.refine(&place, &read); err != nil {
		return s, err
	}
	f.spec = place
	if !b.out {
		f.required = f.must(&read)
	}
	return s, f.checkDefault(&n)
}

// changeable are the tags that With accepts.
var changeable = append([]string{
	"doc", "description", "title", "enum", "enumTitles", "min", "max", "exclusiveMin", "exclusiveMax", "multipleOf", "pattern", "format", "default", "examples", "unique", "nullable", "header",
}, fullWords...)

// mergeTags returns the struct tags of a field with some replaced. It checks the form of the new ones,
// which package reflect does not.
func mergeTags(old, tags string) (string, error) {
	pairs, rest := splitTags(tags)
	switch {
	case rest != "":
		return "", fmt.Errorf(`With: %s is not a struct tag, such as max:"9"`, quote(rest))
	case len(pairs) == 0:
		return "", errors.New(`With: the tags are missing; write them as in a struct, such as max:"9"`)
	}
	replaced := map[string]bool{}
	for _, p := range pairs {
		if !slices.Contains(changeable, p.name) {
			return "", fmt.Errorf("With: the tag %s cannot be changed; use some of %s", quote(p.name), strings.Join(changeable, ", "))
		}
		replaced[shortWord(p.name)] = true
	}
	merged := strings.TrimSpace(tags)
	kept, rest := splitTags(old)
	for _, p := range kept {
		if !replaced[shortWord(p.name)] {
			merged += " " + p.name + ":" + p.value
		}
	}
	return strings.TrimSpace(merged + " " + rest), nil
}

// splitTags splits struct tags into their names and quoted values. The rest is not a tag.
func splitTags(tags string) (pairs []keyword, rest string) {
	for rest = strings.TrimSpace(tags); rest != ""; {
		name, after, _ := strings.Cut(rest, ":")
		quoted, err := strconv.QuotedPrefix(after)
		if err != nil || quoted[0] != '"' {
			break
		}
		pairs = append(pairs, keyword{name, quoted})
		rest = strings.TrimSpace(after[len(quoted):])
	}
	return pairs, rest
}

// lastWords returns the last one of each keyword.
func lastWords(words []keyword) (last []keyword) {
	for i, w := range words {
		if !slices.ContainsFunc(words[i+1:], func(later keyword) bool { return shortWord(later.name) == shortWord(w.name) }) {
			last = append(last, w)
		}
	}
	return last
}
