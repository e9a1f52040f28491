package jsonx

import "slices"

// Without appends obj, an object known to be valid, minus the members with
// these names. The members that stay, and the space between them, stay byte
// for byte. Anything but an object is appended as it is.
func Without(dst, obj []byte, names ...string) []byte {
	at, ok := firstMember(obj)
	if !ok {
		return append(dst, obj...)
	}
	dst = append(dst, obj[:at.name]...)
	last := -1 // where the member before ends
	kept := false
	for ; ok; at, ok = nextMember(obj, at.end) {
		if !slices.ContainsFunc(names, func(name string) bool { return at.is(obj, name) }) {
			if kept {
				dst = append(dst, obj[last:at.name]...)
			}
			dst = append(dst, obj[at.name:at.end]...)
			kept = true
		}
		last = at.end
	}
	return append(dst, obj[last:]...)
}

// With appends obj, an object known to be valid, with the member name set to
// value, one raw JSON value. The member is replaced where it stands, or added
// at the end; all else stays byte for byte. An obj that is nil, or anything
// but an object, counts as {}.
func With(dst, obj []byte, name string, value []byte) []byte {
	if KindOf(obj) != '{' {
		obj = []byte("{}")
	}
	end := skipSpace(obj, 0) + 1
	empty := true
	for at, ok := firstMember(obj); ok; at, ok = nextMember(obj, at.end) {
		if at.is(obj, name) {
			dst = append(dst, obj[:at.value]...)
			dst = append(dst, value...)
			return append(dst, obj[at.end:]...)
		}
		end, empty = at.end, false
	}
	dst = append(dst, obj[:end]...)
	if !empty {
		dst = append(dst, ',')
	}
	dst = AppendString(dst, name)
	dst = append(dst, ':')
	dst = append(dst, value...)
	return append(dst, obj[end:]...)
}
