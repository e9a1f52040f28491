package jsonx

import "encoding/json"

// Filter appends obj, a valid object, with only those members for which keep returns true. The name
// passed to keep is unescaped and valid only during the call; the value is a sub-slice of obj. The
// members that stay, and the space between them, stay byte for byte. Anything but an object is
// appended as it is. The buffer dst may be obj[:0].
func Filter(dst, obj []byte, keep func(name []byte, value json.RawMessage) bool) []byte {
	at, ok := firstMember(obj)
	if !ok {
		return append(dst, obj...)
	}
	dst = append(dst, obj[:at.name]...)
	last := at.name         // end of the member before
	from, kept := -1, false // obj[from:last] is kept and not appended yet
	for ; ok; at, ok = nextMember(obj, at.end) {
		stays := keep(at.text(obj), obj[at.value:at.end:at.end])
		switch {
		case stays && from < 0:
			if from = at.name; kept {
				from = last // with the comma before it
			}
			kept = true
		case !stays && from >= 0:
			dst = append(dst, obj[from:last]...)
			from = -1
		}
		last = at.end
	}
	if from < 0 {
		from = last
	}
	return append(dst, obj[from:]...)
}

// Without appends obj without the members of these names, see [Filter].
func Without(dst, obj []byte, names ...string) []byte {
	return Filter(dst, obj, func(member []byte, _ json.RawMessage) bool {
		for _, name := range names {
			if string(member) == name {
				return false
			}
		}
		return true
	})
}

// With appends obj, a valid object, with the member name set to value, one raw JSON value. The
// member is replaced where it stands, or added at the end; all else stays byte for byte. An obj
// that is nil, or anything but an object, counts as {}.
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

// WithIn appends obj, a valid object, with the member name of its member outer set to value: [With] for an object in an object,
// in one step.
func WithIn(dst, obj []byte, outer, name string, value []byte) []byte {
	if at := find(obj, outer); at >= 0 {
		end := skipValue(obj, at)
		dst = With(append(dst, obj[:at]...), obj[at:end], name, value)
		return append(dst, obj[end:]...)
	}
	inner := make([]byte, 0, len(`{"":}`)+len(name)+len(value))
	return With(dst, obj, outer, With(inner, nil, name, value))
}
