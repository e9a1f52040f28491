package schema

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strings"
)

// The checks of this file refuse tags that no value can obey, and values of an enum that the other
// tags exclude. They are mistakes of the program, and callers would only see calls that fail.

// possibleSize reports bounds that no string, list or map of n is within.
func (r *rules) possibleSize(n *node) error {
	if r.maxSize >= 0 && r.minSize > r.maxSize {
		return fmt.Errorf("at least %d and at most %d contradict each other", r.minSize, r.maxSize)
	}
	least := r.minSize
	if n.kind == kindArray {
		if r.minSize > n.bits || r.maxSize >= 0 && r.maxSize < n.bits {
			return fmt.Errorf("%s always has %d %s, which the bounds exclude", n.typ, n.bits, plural(n.bits, "item", "items"))
		}
		least = n.bits
	}
	if items := n.elem.rules; r.unique && items != nil && items.enum != nil && !n.elem.nullable && least > len(items.enum) {
		return fmt.Errorf("tag unique: %d items cannot differ, because the enum has %d %s", least, len(items.enum), plural(len(items.enum), "value", "values"))
	}
	return nil
}

// possibleEnum reports a value of an enum that is there twice or that the other rules exclude. The
// values of an Enum method may be narrowed, but not to none.
func (r *rules) possibleEnum(n *node) error {
	if r.enum == nil {
		return nil
	}
	texts, inherited := r.enumText, n.enum != nil && slices.Equal(r.enumText, n.enum)
	if texts == nil {
		for _, raw := range r.enum {
			texts = append(texts, string(parseDecimal(raw).appendCanonical(nil)))
		}
	}
	if v, twice := repeatedValue(texts); twice {
		return fmt.Errorf("tag enum: %s is there twice", excerpt(string(r.enum[slices.Index(texts, v)])))
	}
	others := *r
	others.enum, others.enumText = nil, nil
	place := spec{node: n, rules: &others}
	var first error
	excluded := 0
	for _, raw := range r.enum {
		if err := decodeInto(raw, &place, reflect.New(n.typ).Elem(), false); err != nil {
			err = fmt.Errorf("tag enum: %s does not fit: %w", excerpt(string(raw)), err)
			if !inherited {
				return err
			}
			first, excluded = err, excluded+1
		}
	}
	if excluded == len(r.enum) {
		return first
	}
	return nil
}

// repeatedValue returns the first text that is in a list twice.
func repeatedValue(list []string) (string, bool) {
	seen := make(map[string]bool, len(list))
	for _, v := range list {
		if seen[v] {
			return v, true
		}
		seen[v] = true
	}
	return "", false
}

// interval is a range of numbers. A bound that is nil is not there; an open one is not in the range.
type interval struct {
	lo, hi         *big.Rat
	loOpen, hiOpen bool
}

// floats returns the range of numbers that are not integers only.
func (r *rules) floats(n *node) (in interval) {
	if n.kind == kindFloat {
		most := math.MaxFloat64
		if n.bits == 32 {
			most = math.MaxFloat32
		}
		in.hi = new(big.Rat).SetFloat64(most)
		in.lo = new(big.Rat).Neg(in.hi)
	}
	if b := r.min; b != nil && (in.lo == nil || b.rat.Cmp(in.lo) > 0) {
		in.lo = b.rat
	}
	if b := r.exMin; b != nil && (in.lo == nil || b.rat.Cmp(in.lo) >= 0) {
		in.lo, in.loOpen = b.rat, true
	}
	if b := r.max; b != nil && (in.hi == nil || b.rat.Cmp(in.hi) < 0) {
		in.hi = b.rat
	}
	if b := r.exMax; b != nil && (in.hi == nil || b.rat.Cmp(in.hi) <= 0) {
		in.hi, in.hiOpen = b.rat, true
	}
	return in
}

// hasMultiple reports whether a multiple of step is in the range; if step is nil, any number.
func (in interval) hasMultiple(step *bound) bool {
	if in.lo == nil || in.hi == nil {
		return true
	}
	first, open := in.lo, in.loOpen
	if step != nil {
		count := ceil(new(big.Rat).Quo(in.lo, step.rat))
		first = new(big.Rat).Mul(new(big.Rat).SetInt(count), step.rat)
		if open && first.Cmp(in.lo) == 0 {
			first = first.Add(first, step.rat)
		}
		open = false
	}
	order := first.Cmp(in.hi)
	return order < 0 || order == 0 && !open && !in.hiOpen
}

// noValue returns the fault of bounds that no number of n is within.
func (r *rules) noValue(n *node) error {
	var parts []string
	for _, p := range []struct {
		how string
		b   *bound
	}{{"at least", r.min}, {"more than", r.exMin}, {"at most", r.max}, {"less than", r.exMax}, {"a multiple of", r.multipleOf}} {
		if p.b != nil {
			parts = append(parts, p.how+" "+excerpt(p.b.lit))
		}
	}
	last := len(parts) - 1
	text := parts[last]
	if last > 0 {
		text = strings.Join(parts[:last], ", ") + " and " + text
	}
	return fmt.Errorf("no value of %s is %s", n.typ, text)
}
