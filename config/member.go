package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// SetMember returns a text of JSON, which may have comments and trailing commas, with a member of the object
// at the end of path, which is made if it is missing; a member of that name is replaced. The rest of the text
// keeps its comments, order and layout. An empty text is an empty object. The file is for errors.
//
// The value is written in the layout of the text.
func SetMember(file string, data []byte, value json.RawMessage, name string, path ...string) ([]byte, error) {
	if err := jsonx.Valid(value, 0); err != nil {
		return nil, fmt.Errorf("the value of %s is not JSON: %w", quote(name), err)
	}
	if len(bytes.TrimSpace(bytes.TrimPrefix(data, utf8BOM))) == 0 {
		data = []byte("{}\n")
	}
	root, err := objectIn(file, data)
	if err != nil {
		return nil, err
	}
	obj := root
	for len(path) > 0 {
		below := obj.member(path[0])
		if below == nil {
			break
		}
		if below.kind != '{' {
			return nil, fmt.Errorf("%s: %s is not an object", file, quote(path[0]))
		}
		obj, path = below, path[1:]
	}
	for i := len(path) - 1; i >= 0; i-- {
		value = json.RawMessage("{" + string(jsonx.AppendString(nil, name)) + ": " + string(value) + "}")
		name = path[i]
	}
	l := layoutOf(data, root)
	if i := memberAt(obj, name); i >= 0 {
		m := obj.members[i]
		indent, first := indentOf(data, m.pos)
		return apply(data, textEdit{m.value.pos, m.value.end, format(value, indent, l, !first)}), nil
	}
	return insertMember(data, obj, l, func(indent string, oneLine bool) string {
		return string(jsonx.AppendString(nil, name)) + ": " + format(value, indent, l, oneLine)
	}), nil
}

// AppendElement returns a text as [SetMember] does, with an element at the end of the array that is the
// member name of the file's object. The array is made if it is missing.
func AppendElement(file string, data []byte, value json.RawMessage, name string) ([]byte, error) {
	root, err := objectIn(file, data)
	if err != nil {
		return nil, err
	}
	list := root.member(name)
	if list == nil {
		return SetMember(file, data, json.RawMessage("["+string(value)+"]"), name)
	}
	if list.kind != '[' {
		return nil, fmt.Errorf("%s: %s is not an array", file, quote(name))
	}
	var places [][2]int
	for _, item := range list.items {
		places = append(places, [2]int{item.pos, item.end})
	}
	l := layoutOf(data, root)
	return insertInto(data, list, places, l, func(indent string, oneLine bool) string { return format(value, indent, l, oneLine) }), nil
}

// RemoveMember returns a text as [SetMember] does, without a member of the object at the end of path. It is an
// error if the text does not have the member.
func RemoveMember(file string, data []byte, name string, path ...string) ([]byte, error) {
	obj, err := objectIn(file, data)
	if err != nil {
		return nil, err
	}
	for _, p := range path {
		if obj = obj.member(p); obj == nil || obj.kind != '{' {
			return nil, fmt.Errorf("%s has no %s", file, quote(p))
		}
	}
	i := memberAt(obj, name)
	if i < 0 {
		return nil, fmt.Errorf("%s has no %s", file, quote(name))
	}
	return removeMember(data, obj, i), nil
}

func memberAt(obj *node, name string) int {
	return slices.IndexFunc(obj.members, func(m member) bool { return m.name == name })
}

// objectIn parses a text whose value must be an object.
func objectIn(file string, data []byte) (*node, error) {
	text, err := Standardize(file, data)
	if err != nil {
		return nil, err
	}
	root, err := parseTree(text)
	if err == nil && root.kind != '{' {
		err = fmt.Errorf("%s is not a JSON object", file)
	}
	return root, err
}
