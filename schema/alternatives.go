package schema

import (
	"fmt"
	"slices"
	"strings"
)

// explain reports why none of the alternatives in list fits. It disregards alternatives for another
// type of value or with another tag; if one is left, it reports the faults of that one. It always
// returns false.
func (r *run) explain(list []*subschema, at int32) bool {
	var meant []faults
	var types typeSet
	for _, s := range list {
		found := r.aside(func() { r.same(s, at, nil) })
		if want := wrongType(found, at); want != 0 {
			types |= want
		} else {
			meant = append(meant, found)
		}
	}
	if len(meant) == 0 && types != 0 {
		return r.keep(fault{at: at, problem: types.mismatch(&r.doc.values[at]), types: types})
	}
	if len(meant) > 1 {
		tagged := slices.DeleteFunc(slices.Clone(meant), func(found faults) bool { return r.otherTag(found, at) })
		if len(tagged) == 1 {
			meant = tagged
		}
	}
	if len(meant) == 1 && len(meant[0].kept) > 0 {
		for _, f := range meant[0].kept {
			r.keep(fault{at: f.at, member: f.member, problem: f.problem}) // without the notes on type and tag, which are for this value
		}
		r.more += meant[0].more
		return false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "fits none of %d alternatives", len(list))
	sep := ": "
	for i, found := range meant {
		if i == 3 {
			b.WriteString("; ...")
			break
		}
		if len(found.kept) > 0 {
			b.WriteString(sep + r.word(found.kept[0]))
		}
		sep = "; or "
	}
	return r.fault(at, b.String())
}

// wrongType returns the types that an alternative accepts, if the value at a place has none of
// them.
func wrongType(found faults, at int32) typeSet {
	for _, f := range found.kept {
		if f.at == at && f.types != 0 {
			return f.types
		}
	}
	return 0
}

// otherTag reports whether an alternative fails at a fixed value in one of the
// value's members, such as "kind": "circle".
func (r *run) otherTag(found faults, at int32) bool {
	return slices.ContainsFunc(found.kept, func(f fault) bool { return f.fixed && r.doc.values[f.at].parent == at })
}
