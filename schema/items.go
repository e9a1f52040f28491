package schema

import (
	"fmt"
)

// listRules are the keywords for arrays.
type listRules struct {
	min, max int // in items; max -1: none
	unique   bool

	prefix []*subschema // for the first items
	rest   *subschema   // for those after
	tuple  bool         // rest was additionalItems, and faults say so

	contains       *subschema
	minOf, maxOf   int  // of the items that fit contains; maxOf -1: none
	containsCounts bool // the items that fit contains are evaluated (2020-12)
	unevaluated    *subschema
}

// ofList reads a keyword for arrays.
func (k *keywords) ofList(i int32, name string) {
	if k.s.list == nil {
		k.s.list = &listRules{max: -1, minOf: 1, maxOf: -1, containsCounts: k.dialect >= draft2020}
	}
	l := k.s.list
	switch name {
	case "minItems":
		l.min = k.count(i)
	case "maxItems":
		l.max = k.count(i)
	case "uniqueItems":
		l.unique = k.is(i, typeBoolean) && k.doc.values[i].kind == 't'
	case "prefixItems":
		l.prefix = k.schemas(i, 1)
	case "items":
		if k.dialect < draft2020 && k.doc.values[i].kind == '[' {
			l.prefix = k.schemas(i, 1)
		} else {
			l.rest = k.schema(i, k.s.res)
		}
	case "additionalItems":
		rest := k.additional(i)
		if j := k.doc.find(k.at, "items"); j >= 0 && k.doc.values[j].kind == '[' {
			l.rest, l.tuple = rest, true // it has no effect beside one schema for all items
		}
	case "contains":
		l.contains = k.schema(i, k.s.res)
	case "minContains":
		l.minOf = k.count(i)
	case "maxContains":
		l.maxOf = k.count(i)
	case "unevaluatedItems":
		l.unevaluated = k.schema(i, k.s.res)
	}
}

func (l *listRules) check(r *run, at int32, seen *evaluated) bool {
	v := &r.doc.values[at]
	size := int(v.size)
	ok := true
	if size < l.min || l.max >= 0 && size > l.max {
		if !r.loud {
			return false
		}
		ok = r.fault(at, wrongSize(size, l.min, l.max, "item", "items"))
	}
	if l.unique && !l.allDiffer(r, at) {
		ok = false
	}
	if len(l.prefix) > 0 || l.rest != nil {
		for i := at + 1; i < v.next; i = r.doc.values[i].next {
			if !ok && !r.loud || r.gaveUp != nil {
				return false
			}
			n := int(r.doc.values[i].order)
			sub := l.rest
			if n < len(l.prefix) {
				sub = l.prefix[n]
			} else if sub == nil {
				break
			} else if l.tuple && sub.never {
				many := size - n
				ok = r.loud && r.fault(at, fmt.Sprintf("has %d %s too many", many, plural(many, "item", "items")))
				break
			}
			seen.add(int32(n))
			if !r.below(sub, i) {
				ok = false
			}
		}
	}
	if l.contains != nil && !l.containsFit(r, at, seen) {
		ok = false
	}
	return ok
}

func (l *listRules) allDiffer(r *run, at int32) bool {
	v := &r.doc.values[at]
	if v.size < 2 {
		return true
	}
	if !r.spend(int(v.next-at) + len(v.text)/64) {
		return false
	}
	var u uniqueItems
	for i := at + 1; i < v.next; i = r.doc.values[i].next {
		n := int(r.doc.values[i].order)
		if earlier, dup := u.addValue(r.doc, i, n); dup {
			return r.loud && r.fault(at, repeatFault(n, earlier))
		}
	}
	return true
}

// containsFit checks how many items fit contains.
func (l *listRules) containsFit(r *run, at int32, seen *evaluated) bool {
	v := &r.doc.values[at]
	found := 0
	for i := at + 1; i < v.next; i = r.doc.values[i].next {
		if r.gaveUp != nil {
			return false
		}
		if !r.quietly(func() bool { return r.below(l.contains, i) }) {
			continue
		}
		found++
		if l.containsCounts {
			seen.add(r.doc.values[i].order)
		}
		if !r.loud && seen == nil && found >= l.minOf && l.maxOf < 0 {
			return true
		}
	}
	if found >= l.minOf && (l.maxOf < 0 || found <= l.maxOf) {
		return true
	}
	switch {
	case !r.loud:
		return false
	case found == 0 && l.minOf == 1:
		problem := "has no item of the required kind"
		if v.size > 0 {
			problem += r.first(": ", func() { r.below(l.contains, at+1) })
		}
		return r.fault(at, problem)
	case found < l.minOf:
		return r.fault(at, fmt.Sprintf("must have at least %d %s of the required kind, got %d", l.minOf, plural(l.minOf, "item", "items"), found))
	}
	return r.fault(at, fmt.Sprintf("must have at most %d %s of the required kind, got %d", l.maxOf, plural(l.maxOf, "item", "items"), found))
}

// unevaluatedFit checks the items that no other keyword has evaluated.
func (l *listRules) unevaluatedFit(r *run, at int32, seen *evaluated) bool {
	ok := true
	for i := at + 1; i < r.doc.values[at].next; i = r.doc.values[i].next {
		if !r.spend(1) {
			return false
		}
		if !seen.has(r.doc.values[i].order) && !r.below(l.unevaluated, i) {
			if ok = false; !r.loud {
				return false
			}
		}
	}
	seen.addAll()
	return ok
}
