package schema

// logic is the keywords that apply other subschemas to the same value.
type logic struct {
	written []reference // the references behind the next three
	ref     *subschema
	meta    dialect // instead of ref, for the published schema of a dialect
	dynamic *dynamicRef

	allOf, anyOf, oneOf   []*subschema
	not                   *subschema
	when, then, otherwise *subschema // then and otherwise count with when only
}

// ofLogic reads a keyword that applies subschemas to the same value.
func (k *keywords) ofLogic(i int32, name string) {
	l := k.logic()
	switch name {
	case "allOf":
		l.allOf = k.schemas(i, 1)
	case "anyOf":
		l.anyOf = k.schemas(i, 1)
	case "oneOf":
		l.oneOf = k.schemas(i, 1)
	case "not":
		l.not = k.schema(i, k.s.res)
	case "if":
		l.when = k.schema(i, k.s.res)
	case "then":
		l.then = k.schema(i, k.s.res)
	case "else":
		l.otherwise = k.schema(i, k.s.res)
	}
}

func (k *keywords) logic() *logic {
	if k.s.logic == nil {
		k.s.logic = &logic{}
	}
	return k.s.logic
}

func (l *logic) check(r *run, at int32, seen *evaluated) bool {
	ok := true
	and := func(fit bool) bool {
		ok = ok && fit
		return fit || r.loud
	}
	if l.ref != nil && !and(r.same(l.ref, at, seen)) {
		return false
	}
	if l.meta != 0 && !and(r.isSchema(l.meta, at)) {
		return false
	}
	if l.dynamic != nil && !and(r.spend(len(r.scope)) && r.same(l.dynamic.target(r.scope), at, seen)) {
		return false
	}
	if l.not != nil && r.quietly(func() bool { return r.same(l.not, at, nil) }) &&
		!and(r.loud && r.fault(at, "is excluded by the schema")) {
		return false
	}
	for _, s := range l.allOf {
		if !and(r.same(s, at, seen)) {
			return false
		}
	}
	if l.anyOf != nil && !and(r.any(l.anyOf, at, seen, false)) {
		return false
	}
	if l.oneOf != nil && !and(r.any(l.oneOf, at, seen, true)) {
		return false
	}
	if l.when != nil {
		then := l.otherwise
		if r.quietly(func() bool { return r.same(l.when, at, seen) }) {
			then = l.then
		}
		if then != nil && !and(r.same(then, at, seen)) {
			return false
		}
	}
	return ok
}

// any checks alternatives: at least one of them must match or, if only is set, exactly one.
func (r *run) any(list []*subschema, at int32, seen *evaluated, only bool) bool {
	fit := 0
	for _, s := range list {
		if r.quietly(func() bool { return r.same(s, at, seen) }) {
			if fit++; !only && seen == nil || only && fit == 2 {
				break
			}
		}
	}
	switch {
	case fit == 0:
		return r.loud && r.explain(list, at)
	case only && fit > 1:
		return r.loud && r.fault(at, "fits more than one of the alternatives, must fit exactly one")
	}
	return true
}

// isSchema reports whether a value is a valid schema of a dialect.
func (r *run) isSchema(d dialect, at int32) bool {
	v := &r.doc.values[at]
	if !r.spend(4*int(v.next-at) + len(v.text)) {
		return false
	}
	c := compiler{doc: r.doc, onlyCheck: true}
	c.schema(at, &resource{dialect: d})
	if c.err != nil {
		r.giveUp(c.err)
		return false
	}
	if r.loud {
		for _, f := range c.faults {
			r.keep(f)
		}
	}
	return len(c.faults) == 0
}
