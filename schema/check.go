package schema

import (
	"cmp"
	"errors"
	"slices"
)

// Bounds on one validation.
const (
	// Work is counted in subschemas and members visited, because a schema of a few lines can
	// require 2^128 of them.
	workBase    = 100_000
	workPerByte = 8
	workMost    = 10_000_000

	// Bounds on the faults that are kept: in all, after which the search ends, and for each
	// alternative, to see whether it was meant.
	maxKept  = 1000
	maxAside = 50
)

// run is one validation of one document. A silent run only finds out whether the document fits; a
// loud run continues after a fault and describes each.
type run struct {
	doc    *document
	loud   bool
	work   int   // left
	gaveUp error // why the run was given up; nil otherwise

	faults
	most int // to keep

	scope []*resource // entered and not left, outermost first
	chain int         // subschemas entered for the value in hand
	key   []byte      // scratch
	named *document   // scratch: a name of a member as a value
}

// fault is a fault that may or may not be reported.
type fault struct {
	at      int32
	problem string
	member  string  // the pointer of the member that is missing or not known; empty: the fault is of the value
	types   typeSet // the accepted types, if the value has the wrong one
	fixed   bool    // the value is not among the choices of a const or enum
}

// faults are the faults that are kept, and the number of further ones.
type faults struct {
	kept []fault
	more int
}

var (
	errWork    = errors.New("takes too long to validate against this schema")
	errEnough  = errors.New("has too many faults")
	errForever = errors.New("cannot be checked: the schema refers to itself without end")
)

// validate returns the faults of doc, and the number of further ones. A validation that is given
// up has a single fault that says so.
func validate(s *subschema, doc *document, bytes int) faults {
	if doc.huge >= 0 {
		return faults{kept: []fault{{at: doc.huge, problem: tooLarge}}}
	}
	work := min(workBase+workPerByte*bytes, workMost)
	r := run{doc: doc, work: work}
	if r.check(s, root, nil) && r.gaveUp == nil {
		return faults{}
	}
	if r.gaveUp == nil {
		r = run{doc: doc, work: work, loud: true, most: maxKept}
		if r.check(s, root, nil) {
			r.fault(root, unexplained) // cannot happen: the silent run found a fault
		}
	}
	if r.gaveUp != nil && r.gaveUp != errEnough {
		return faults{kept: []fault{{at: root, problem: r.gaveUp.Error()}}}
	}
	return r.faults
}

const unexplained = "does not fit the schema"

// settled returns the faults to report, in order.
func settled(doc *document, faults []fault) []Fault {
	list := make([]Fault, len(faults))
	for i, f := range faults {
		list[i] = Fault{Path: doc.path(f.at), Pointer: doc.pointer(f.at, f.member), Problem: f.problem}
	}
	slices.SortStableFunc(list, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Problem, b.Problem))
	})
	return slices.CompactFunc(list, func(a, b Fault) bool { return a.Path == b.Path && a.Problem == b.Problem })
}

// spend takes n from the work that is left, and reports whether the run goes
// on.
func (r *run) spend(n int) bool {
	if r.work -= n; r.work < 0 {
		r.giveUp(errWork)
	}
	return r.gaveUp == nil
}

func (r *run) giveUp(why error) {
	if r.gaveUp == nil {
		r.gaveUp = why
	}
}

// fault keeps a fault of a loud run. It returns false.
func (r *run) fault(at int32, problem string) bool { return r.keep(fault{at: at, problem: problem}) }

func (r *run) keep(f fault) bool {
	if len(r.kept) < r.most {
		r.kept = append(r.kept, f)
	} else if r.more++; r.most == maxKept {
		r.giveUp(errEnough)
	}
	return false
}

// check reports whether the value at a place fits s. If seen is not nil, check adds to it the
// members or items that s has evaluated.
func (r *run) check(s *subschema, at int32, seen *evaluated) bool {
	switch {
	case !r.spend(1):
		return false
	case s.always:
		return true
	case s.never:
		return r.loud && r.fault(at, "is not allowed here")
	}
	// Only dynamic references make such a long chain: Compile refuses all others.
	if r.chain++; r.chain > 2*maxChain {
		r.giveUp(errForever)
		return false
	}
	depth := len(r.scope)
	if depth == 0 || r.scope[depth-1] != s.res {
		r.scope = append(r.scope, s.res)
	}
	ok := r.rules(s, at, seen)
	r.scope = r.scope[:depth]
	r.chain--
	return ok
}

// same checks the value against a part of its schema. The members or items that the part has
// evaluated count if the value fits it.
func (r *run) same(s *subschema, at int32, seen *evaluated) bool {
	if seen == nil {
		return r.check(s, at, nil)
	}
	part := newEvaluated(&r.doc.values[at])
	return r.spend(len(part.bits)) && r.check(s, at, part) && seen.merge(part)
}

// below checks a member or an item.
func (r *run) below(s *subschema, at int32) bool {
	chain := r.chain
	r.chain = 0
	ok := r.check(s, at, nil)
	r.chain = chain
	return ok
}

// quietly runs f without reporting faults.
func (r *run) quietly(f func() bool) bool {
	loud := r.loud
	r.loud = false
	ok := f()
	r.loud = loud
	return ok
}

// rules checks a value against the keywords of s.
func (r *run) rules(s *subschema, at int32, seen *evaluated) bool {
	v := &r.doc.values[at]
	if s.types != 0 && s.types&typesOf(v) == 0 {
		return r.loud && r.keep(fault{at: at, problem: s.types.mismatch(v), types: s.types})
	}
	for _, c := range [...]*choices{s.konst, s.enum} {
		if c != nil && !c.include(r, at) {
			return r.loud && r.keep(fault{at: at, problem: notAmong(c.written, r.doc.shown(at)), fixed: true})
		}
	}
	outer := seen
	if s.wantsEvaluated(v) {
		seen = newEvaluated(v)
		if !r.spend(len(seen.bits)) {
			return false
		}
	}
	ok := true
	switch {
	case v.kind == '{' && s.object != nil:
		ok = s.object.check(r, at, seen)
	case v.kind == '[' && s.list != nil:
		ok = s.list.check(r, at, seen)
	case v.kind == '"' && s.text != nil:
		ok = s.text.check(r, at)
	case v.kind == '0' && s.number != nil:
		ok = s.number.check(r, at)
	}
	if !ok && !r.loud {
		return false
	}
	composed := s.logic == nil || s.logic.check(r, at, seen)
	if !composed {
		// Members evaluated by a part that did not fit count as unevaluated. Reporting them
		// besides the part's own fault does not help.
		return false
	}
	if s.wantsEvaluated(v) {
		if v.kind == '{' {
			ok = s.object.unevaluatedFit(r, at, seen) && ok
		} else {
			ok = s.list.unevaluatedFit(r, at, seen) && ok
		}
		if ok && outer != nil {
			outer.merge(seen)
		}
	}
	return ok
}

// wantsEvaluated reports whether s has a keyword for the unevaluated members or items of a value.
func (s *subschema) wantsEvaluated(v *value) bool {
	return v.kind == '{' && s.object != nil && s.object.unevaluated != nil ||
		v.kind == '[' && s.list != nil && s.list.unevaluated != nil
}

// aside returns the faults that f finds, without adding them to those of the run.
func (r *run) aside(f func()) faults {
	before, most := r.faults, r.most
	r.faults, r.most = faults{}, maxAside
	f()
	found := r.faults
	r.faults, r.most = before, most
	return found
}

// first returns the text of the first fault that f finds, after sep.
func (r *run) first(sep string, f func()) string {
	if found := r.aside(f); len(found.kept) > 0 {
		return sep + r.word(found.kept[0])
	}
	return ""
}

// word returns a fault as part of another's text.
func (r *run) word(f fault) string {
	return cutText(Fault{Path: r.doc.path(f.at), Problem: f.problem}.String())
}
