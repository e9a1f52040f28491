package schema

// objectRules are the keywords for objects.
type objectRules struct {
	min, max    int // in members; max -1: none
	properties  map[string]property
	required    []string
	patterns    []patternProperty
	additional  *subschema
	names       *subschema
	dependents  []dependent
	unevaluated *subschema
}

// property holds the keywords for members of one name.
type property struct {
	schema   *subschema // may be nil
	required bool
}

// patternProperty is for the members whose names match.
type patternProperty struct {
	pattern *pattern
	schema  *subschema
}

// dependent holds the keywords for objects that have a member of one name.
type dependent struct {
	name     string
	required []string
	schema   *subschema // may be nil
}

// ofObject reads a keyword for objects.
func (k *keywords) ofObject(i int32, name string) {
	if k.s.object == nil {
		k.s.object = &objectRules{max: -1}
	}
	o := k.s.object
	switch name {
	case "minProperties":
		o.min = k.count(i)
	case "maxProperties":
		o.max = k.count(i)
	case "required":
		for _, name := range k.names(i) {
			p := o.properties[name]
			p.required = true
			o.setProperty(name, p, k.doc.values[i].size)
			o.required = append(o.required, name)
		}
	case "properties":
		for j := range k.members(i) {
			name := k.doc.values[j].name
			p := o.properties[name]
			p.schema = k.schema(j, k.s.res)
			o.setProperty(name, p, k.doc.values[i].size)
		}
	case "patternProperties":
		for j := range k.members(i) {
			sub := k.schema(j, k.s.res)
			if p := k.pattern(j, k.doc.values[j].name); p != nil {
				o.patterns = append(o.patterns, patternProperty{p, sub})
			}
		}
	case "additionalProperties":
		o.additional = k.additional(i)
	case "propertyNames":
		o.names = k.schema(i, k.s.res)
	case "unevaluatedProperties":
		o.unevaluated = k.schema(i, k.s.res)
	case "dependencies", "dependentRequired", "dependentSchemas":
		for j := range k.members(i) {
			d := dependent{name: k.doc.values[j].name}
			if name == "dependentRequired" || name == "dependencies" && k.doc.values[j].kind == '[' {
				d.required = k.names(j)
			} else {
				d.schema = k.schema(j, k.s.res)
			}
			o.dependents = append(o.dependents, d)
		}
	}
}

func (o *objectRules) setProperty(name string, p property, expected int32) {
	if o.properties == nil {
		o.properties = make(map[string]property, expected)
	}
	o.properties[name] = p
}

// additional reads a keyword that is a subschema, or a boolean even in draft 4.
func (k *keywords) additional(i int32) *subschema {
	if v := &k.doc.values[i]; k.dialect == draft4 && (v.kind == 't' || v.kind == 'f') {
		return &subschema{res: k.s.res, always: v.kind == 't', never: v.kind == 'f'}
	}
	return k.schema(i, k.s.res)
}

func (o *objectRules) check(r *run, at int32, seen *evaluated) bool {
	v := &r.doc.values[at]
	ok := true
	if size := int(v.size); size < o.min || o.max >= 0 && size > o.max {
		if !r.loud {
			return false
		}
		ok = r.fault(at, wrongSize(size, o.min, o.max, "property", "properties"))
	}
	if !o.dependent(r, at, seen) {
		ok = false
	}
	missing := len(o.required)
	for i := at + 1; i < v.next; i = r.doc.values[i].next {
		if !ok && !r.loud || !r.spend(1) {
			return false
		}
		m := &r.doc.values[i]
		p := o.properties[m.name]
		if p.required {
			missing--
		}
		known := p.schema != nil
		if known && !r.below(p.schema, i) {
			ok = false
		}
		for j := range o.patterns {
			if o.patterns[j].pattern.match(r, m.name) {
				known = true
				if !r.below(o.patterns[j].schema, i) {
					ok = false
				}
			}
		}
		if !known && o.additional != nil {
			known = true
			if o.additional.never {
				ok = r.loud && r.keep(fault{at: at, member: pointerTo(m.name), problem: "unknown property " + quote(m.name)})
			} else if !r.below(o.additional, i) {
				ok = false
			}
		}
		if known {
			seen.add(m.order)
		}
		if o.names != nil && !r.nameFits(o.names, at, m.name) {
			ok = false
		}
	}
	if missing > 0 {
		return r.missing(at, o.required, "")
	}
	return ok
}

// dependent checks the keywords that apply because of a member that is present.
func (o *objectRules) dependent(r *run, at int32, seen *evaluated) bool {
	ok := true
	for i := range o.dependents {
		d := &o.dependents[i]
		if !r.has(at, d.name) {
			continue
		}
		for _, name := range d.required {
			if !r.has(at, name) {
				ok = r.missing(at, d.required, d.name)
				break
			}
		}
		if d.schema != nil && !r.same(d.schema, at, seen) {
			ok = false
		}
		if !ok && !r.loud {
			return false
		}
	}
	return ok
}

// unevaluatedFit checks the members that no other keyword has evaluated.
func (o *objectRules) unevaluatedFit(r *run, at int32, seen *evaluated) bool {
	ok := true
	for i := at + 1; i < r.doc.values[at].next; i = r.doc.values[i].next {
		if !r.spend(1) {
			return false
		}
		switch m := &r.doc.values[i]; {
		case seen.has(m.order):
		case o.unevaluated.never:
			ok = r.loud && r.keep(fault{at: at, member: pointerTo(m.name), problem: "unknown property " + quote(m.name)})
		case !r.below(o.unevaluated, i):
			ok = false
		}
		if !ok && !r.loud {
			return false
		}
	}
	seen.addAll()
	return ok
}

// has reports whether an object has a member.
func (r *run) has(at int32, name string) bool {
	return r.spend(1+int(r.doc.values[at].size)/16) && r.doc.find(at, name) >= 0
}

// missing reports the names that an object lacks. It returns false.
func (r *run) missing(at int32, names []string, because string) bool {
	if !r.loud {
		return false
	}
	for _, name := range names {
		if !r.has(at, name) {
			r.keep(fault{at: at, member: pointerTo(name), problem: missingFault(name, because)})
		}
	}
	return false
}

// nameFits checks the name of a member, as a value of its own.
func (r *run) nameFits(s *subschema, at int32, name string) bool {
	if r.named == nil {
		r.named = &document{values: []value{{kind: '"', parent: -1, next: 1}}}
	}
	r.named.values[root].text = name
	doc, chain := r.doc, r.chain
	r.doc, r.chain = r.named, 0
	ok := r.quietly(func() bool { return r.check(s, root, nil) })
	why := ""
	if !ok && r.loud {
		why = r.first(": ", func() { r.check(s, root, nil) })
	}
	r.doc, r.chain = doc, chain
	return ok || r.loud && r.fault(at, "property name "+quote(name)+" is not allowed"+why)
}

func missingFault(name, because string) string {
	problem := "missing " + quote(name)
	if because != "" {
		problem += ", which " + quote(because) + " needs"
	}
	return problem
}
