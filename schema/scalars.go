package schema

import (
	"unicode/utf8"
)

// numberRules are the keywords for numbers.
type numberRules struct {
	min, max, above, below, multiple *quantity
}

// bound reads a keyword for numbers.
func (k *keywords) bound(i int32, name string) {
	exclusive := false
	if k.dialect == draft4 {
		switch name {
		case "exclusiveMinimum", "exclusiveMaximum": // a boolean in draft 4, about the other bound
			k.is(i, typeBoolean)
			if other := "m" + name[len("exclusiveM"):]; k.doc.find(k.at, other) < 0 {
				k.fault(k.at, missingFault(other, name))
			}
			return
		case "minimum", "maximum":
			j := k.doc.find(k.at, "exclusiveM"+name[1:])
			exclusive = j >= 0 && k.doc.values[j].kind == 't'
		}
	}
	if !k.is(i, typeNumber) {
		return
	}
	q := newQuantity(k.doc.values[i].text)
	if name == "multipleOf" && q.decimal().sign() <= 0 {
		k.fault(i, "must be more than 0, got "+excerpt(q.lit))
		return
	}
	if k.s.number == nil {
		k.s.number = &numberRules{}
	}
	switch r := k.s.number; {
	case name == "multipleOf":
		r.multiple = &q
	case name == "exclusiveMinimum", name == "minimum" && exclusive:
		r.above = &q
	case name == "exclusiveMaximum", name == "maximum" && exclusive:
		r.below = &q
	case name == "minimum":
		r.min = &q
	default:
		r.max = &q
	}
}

func (n *numberRules) check(r *run, at int32) bool {
	q := newQuantity(r.doc.values[at].text)
	if !q.whole && !r.spend(1+len(q.lit)/8) {
		return false
	}
	ok := true
	wrong := func(how string, want *quantity) {
		ok = r.loud && r.fault(at, "must be "+how+" "+excerpt(want.lit)+", got "+excerpt(q.lit))
	}
	if n.min != nil && q.cmp(*n.min) < 0 {
		wrong("at least", n.min)
	}
	if n.max != nil && q.cmp(*n.max) > 0 {
		wrong("at most", n.max)
	}
	if n.above != nil && q.cmp(*n.above) <= 0 {
		wrong("more than", n.above)
	}
	if n.below != nil && q.cmp(*n.below) >= 0 {
		wrong("less than", n.below)
	}
	if m := n.multiple; m != nil {
		if !r.spend((q.digits() + m.digits()) / 16) {
			return false
		}
		if !q.multipleOf(*m) {
			wrong("a multiple of", m)
		}
	}
	return ok
}

// textRules are the keywords for strings.
type textRules struct {
	min, max int // in characters; max -1: none
	pattern  *pattern
	format   *format
	base64   bool
}

// ofText reads a keyword for strings.
func (k *keywords) ofText(i int32, name string) {
	t := textRules{max: -1}
	if k.s.text != nil {
		t = *k.s.text
	}
	had := t
	switch v := &k.doc.values[i]; name {
	case "minLength":
		t.min = k.count(i)
	case "maxLength":
		t.max = k.count(i)
	case "pattern":
		if k.is(i, typeString) {
			t.pattern = k.pattern(i, v.text)
		}
	case "format":
		if k.is(i, typeString) && (k.strict || k.dialect.checksFormat()) {
			t.format = foreignFormat(v.text)
		}
	case "contentEncoding":
		if k.is(i, typeString) {
			t.base64 = k.strict && v.text == "base64"
		}
	}
	if t != had {
		k.s.text = &t
	}
}

func (t *textRules) check(r *run, at int32) bool {
	text := r.doc.values[at].text
	if f := t.format; f != nil {
		if !r.spend(1 + len(text)) {
			return false
		}
		if !f.check(text) {
			return r.loud && r.fault(at, "must be "+f.want+", got "+quote(text))
		}
	}
	ok := true
	if t.min > 0 || t.max >= 0 {
		if !r.spend(len(text) / 64) {
			return false
		}
		if n := utf8.RuneCountInString(text); n < t.min || t.max >= 0 && n > t.max {
			ok = r.loud && r.fault(at, wrongSize(n, t.min, t.max, "character", "characters"))
		}
	}
	if t.pattern != nil && !t.pattern.match(r, text) {
		ok = r.loud && r.fault(at, "must match the pattern "+quote(t.pattern.text)+", got "+quote(text))
	}
	if t.base64 {
		if !r.spend(len(text) / 8) {
			return false
		}
		if _, err := decodeBase64(text); err != nil {
			ok = r.loud && r.fault(at, "must be base64, got "+quote(text))
		}
	}
	return ok
}
