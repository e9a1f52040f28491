package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// maxPatternInput bounds the text that is matched against a pattern, in bytes.
// Matching takes time linear in it.
const maxPatternInput = 64 << 10

// rules are the annotations and constraints that one place in a type adds to
// its node. A nil *rules adds nothing.
type rules struct {
	title, doc string
	headerName string
	examples   []json.RawMessage
	def        json.RawMessage // nil: no default

	enum       []json.RawMessage
	enumTitles []string
	enumText   []string // of strings: enum unquoted

	// Bounds of numbers as written, and computed for the kind of the node: lo and hi for integers
	// (ulo and uhi for unsigned ones), with the bounds of the Go type; exact for floating point.
	min, max, exMin, exMax, multipleOf *bound
	lo, hi                             int64
	ulo, uhi                           uint64

	minSize, maxSize int // characters, items or properties; maxSize -1: none

	pattern *regexp.Regexp
	format  *format
	unique  bool
}

// bound is a number in a schema.
type bound struct {
	lit string
	f   float64
	rat *big.Rat
}

func (r *rules) header() string {
	if r == nil {
		return ""
	}
	return r.headerName
}

// newRules returns the initial rules of a place of a node of this kind.
func newRules(n *node) *rules {
	r := &rules{maxSize: -1}
	switch n.kind {
	case kindInt:
		r.lo, r.hi = math.MinInt64, math.MaxInt64
		if n.bits < 64 {
			r.lo, r.hi = -1<<(n.bits-1), 1<<(n.bits-1)-1
			r.min, r.max = newBound(strconv.FormatInt(r.lo, 10)), newBound(strconv.FormatInt(r.hi, 10))
		}
	case kindUint:
		r.uhi = math.MaxUint64
		r.min = newBound("0")
		if n.bits < 64 {
			r.uhi = 1<<n.bits - 1
			r.max = newBound(strconv.FormatUint(r.uhi, 10))
		}
	}
	return r
}

// baseRules returns the rules of a place without tags: nil unless the node has
// bounds of its own.
func baseRules(n *node) *rules {
	switch {
	case n.kind == kindInt && n.bits < 64, n.kind == kindUint:
		return newRules(n)
	case n.enum != nil:
		r := newRules(n)
		r.setEnum(n.enum)
		return r
	}
	return nil
}

func newBound(lit string) *bound {
	b := &bound{lit: lit, rat: rat(lit)}
	b.f, _ = strconv.ParseFloat(lit, 64)
	return b
}

// parseBound reads the number in a tag.
func parseBound(lit string) (*bound, error) {
	if !isNumber(lit) {
		return nil, fmt.Errorf("%q is not a number", lit)
	}
	b := newBound(lit)
	if b.rat == nil || math.IsInf(b.f, 0) {
		return nil, fmt.Errorf("%s is too large", excerpt(lit))
	}
	return b, nil
}

func (r *rules) setEnum(values []string) {
	r.enumText = values
	for _, v := range values {
		r.enum = append(r.enum, quoteJSON(v))
	}
}

// apply adds the constraints of t, the tags of a place with node n.
func (r *rules) apply(t *tagged, n *node) error {
	for _, w := range t.words {
		if err := r.word(w, n); err != nil {
			return fmt.Errorf("tag %s: %w", w.name, err)
		}
	}
	if t.enum != nil {
		if err := r.enumOf(t, n); err != nil {
			return fmt.Errorf("tag enum: %w", err)
		}
	}
	if t.unique {
		if n.kind != kindSlice && n.kind != kindArray {
			return fmt.Errorf("tag unique: does not apply to %s", n.typ)
		}
		r.unique = true
	}
	return r.settle(n)
}

func (r *rules) enumOf(t *tagged, n *node) error {
	switch n.kind {
	case kindString, kindInt, kindUint, kindFloat, kindNumber:
	default:
		return fmt.Errorf("does not apply to %s", n.typ)
	}
	r.enum, r.enumText, r.enumTitles = nil, nil, t.titles
	if n.kind == kindString {
		r.setEnum(t.enum)
		return nil
	}
	for _, v := range t.enum {
		if _, err := parseBound(v); err != nil {
			return err
		}
		if _, _, m := parseInteger([]byte(v)); m != fits && (n.kind == kindInt || n.kind == kindUint) {
			return fmt.Errorf("%q is not an integer", v)
		}
		r.enum = append(r.enum, json.RawMessage(v))
	}
	return nil
}

// word applies one keyword. A short name means the keyword for the kind of value.
func (r *rules) word(w keyword, n *node) error {
	var number, text, list, object bool
	switch n.kind {
	case kindInt, kindUint, kindFloat, kindNumber:
		number = true
	case kindString, kindText:
		text = true
	case kindSlice, kindArray:
		list = true
	case kindMap:
		object = true
	}
	name := w.name
	switch {
	case name == "exclusiveMin":
		name = "exclusiveMinimum"
	case name == "exclusiveMax":
		name = "exclusiveMaximum"
	case name != "min" && name != "max":
	case number:
		name += "imum"
	case text:
		name += "Length"
	case list:
		name += "Items"
	case object:
		name += "Properties"
	}
	applies := false
	switch name {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		applies = number
	case "minLength", "maxLength", "pattern", "format":
		applies = text
	case "minItems", "maxItems":
		applies = list
	case "minProperties", "maxProperties":
		applies = object
	}
	if !applies {
		return fmt.Errorf("does not apply to %s", n.typ)
	}
	if number {
		b, err := parseBound(w.value)
		if err != nil {
			return err
		}
		switch name {
		case "minimum":
			if r.min == nil || b.rat.Cmp(r.min.rat) > 0 {
				r.min = b
			}
		case "maximum":
			if r.max == nil || b.rat.Cmp(r.max.rat) < 0 {
				r.max = b
			}
		case "exclusiveMinimum":
			r.exMin = b
		case "exclusiveMaximum":
			r.exMax = b
		default:
			if b.rat.Sign() <= 0 {
				return fmt.Errorf("%s must be more than 0", w.value)
			}
			r.multipleOf = b
		}
		return nil
	}
	switch name {
	case "pattern":
		if w.value == "" {
			return errors.New("the pattern is empty and would match everything")
		}
		re, err := regexp.Compile(w.value)
		if err != nil {
			return err
		}
		r.pattern = re
		return nil
	case "format":
		f, ok := formats[w.value]
		if !ok {
			return fmt.Errorf("unknown format %q; known are %s", w.value, formatNames())
		}
		r.format = f
		return nil
	}
	size, err := strconv.Atoi(w.value)
	if err != nil || size < 0 {
		return fmt.Errorf("%q is not a count", w.value)
	}
	if strings.HasPrefix(name, "min") {
		r.minSize = size
	} else {
		r.maxSize = size
	}
	return nil
}

// settle computes the bounds for the kind, once all are known.
func (r *rules) settle(n *node) error {
	if err := r.possibleSize(n); err != nil {
		return err
	}
	switch n.kind {
	case kindInt, kindUint:
		if err := r.settleInteger(n); err != nil {
			return err
		}
	case kindFloat, kindNumber:
		if !r.floats(n).hasMultiple(r.multipleOf) {
			return r.noValue(n)
		}
	}
	return r.possibleEnum(n)
}

// settleInteger computes the bounds of integers.
func (r *rules) settleInteger(n *node) error {
	lo, hi := new(big.Int), new(big.Int)
	if n.kind == kindInt {
		lo.SetInt64(r.lo)
		hi.SetInt64(r.hi)
	} else {
		lo.SetUint64(r.ulo)
		hi.SetUint64(r.uhi)
	}
	one := big.NewInt(1)
	raise := func(v *big.Int) {
		if v.Cmp(lo) > 0 {
			lo = v
		}
	}
	lower := func(v *big.Int) {
		if v.Cmp(hi) < 0 {
			hi = v
		}
	}
	if r.min != nil {
		raise(ceil(r.min.rat))
	}
	if r.exMin != nil {
		raise(new(big.Int).Add(floor(r.exMin.rat), one))
	}
	if r.max != nil {
		lower(floor(r.max.rat))
	}
	if r.exMax != nil {
		lower(new(big.Int).Sub(ceil(r.exMax.rat), one))
	}
	step := one
	if r.multipleOf != nil { // the integers among the multiples of a fraction are those of its numerator
		step = r.multipleOf.rat.Num()
	}
	if first := new(big.Int).Mul(ceil(new(big.Rat).SetFrac(lo, step)), step); first.Cmp(hi) > 0 {
		return r.noValue(n)
	}
	if n.kind == kindInt {
		r.lo, r.hi = lo.Int64(), hi.Int64()
	} else {
		r.ulo, r.uhi = lo.Uint64(), hi.Uint64()
	}
	return nil
}

func floor(r *big.Rat) *big.Int { return new(big.Int).Div(r.Num(), r.Denom()) } // Euclidean; the denominator is positive

func ceil(r *big.Rat) *big.Int {
	return new(big.Int).Neg(new(big.Int).Div(new(big.Int).Neg(r.Num()), r.Denom()))
}

// ofString returns the fault of s, or "".
func (r *rules) ofString(s string) string {
	if r.enumText != nil && !slices.Contains(r.enumText, s) {
		return notAmong(r.enum, quote(s))
	}
	if r.minSize > 0 || r.maxSize >= 0 {
		if n := utf8.RuneCountInString(s); n < r.minSize || r.maxSize >= 0 && n > r.maxSize {
			return wrongSize(n, r.minSize, r.maxSize, "character", "characters")
		}
	}
	if r.format != nil && !r.format.check(s) {
		return "must be " + r.format.want + ", got " + quote(s)
	}
	if r.pattern != nil {
		if len(s) > maxPatternInput {
			return fmt.Sprintf("is too long to match against a pattern: %d bytes, at most %d", len(s), maxPatternInput)
		}
		if !r.pattern.MatchString(s) {
			return "must match the pattern " + quote(r.pattern.String()) + ", got " + quote(s)
		}
	}
	return ""
}

// ofSize returns the fault of a list or a map of n elements, or "".
func (r *rules) ofSize(n int, one, many string) string {
	if n < r.minSize || r.maxSize >= 0 && n > r.maxSize {
		return wrongSize(n, r.minSize, r.maxSize, one, many)
	}
	return ""
}

// wrongSize returns the fault of a value of n parts, which must have at least least and, unless
// most is negative, at most most.
func wrongSize(n, least, most int, one, many string) string {
	limit, how := least, "at least"
	if n >= least {
		limit, how = most, "at most"
	}
	return fmt.Sprintf("must have %s %d %s, got %d", how, limit, plural(limit, one, many), n)
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// notAmong returns the fault of a value that is not one of the choices.
func notAmong(choices []json.RawMessage, got string) string {
	return "must be " + oneOf(choices) + ", got " + got
}

// oneOf lists allowed values, as many as fit on a line.
func oneOf(values []json.RawMessage) string {
	var b strings.Builder
	if len(values) > 1 {
		b.WriteString("one of ")
	}
	for i, v := range values {
		if i > 0 {
			b.WriteString(", ")
		}
		if b.Len() > 200 {
			fmt.Fprintf(&b, "and %d more", len(values)-i)
			break
		}
		b.WriteString(excerpt(string(v)))
	}
	return b.String()
}

// ofNumber returns the fault of a number, given as its literal, or "". It is exact.
func (r *rules) ofNumber(lit []byte) string {
	got := excerpt(string(lit))
	v := rat(string(lit))
	if v == nil {
		// Beyond any bound that a schema can state.
		d := parseDecimal(lit)
		switch small := d.exp < 0; {
		case small:
			v = new(big.Rat)
		case d.neg && (r.min != nil || r.exMin != nil):
			return "must be at least " + firstBound(r.min, r.exMin).lit + ", got " + got
		case !d.neg && (r.max != nil || r.exMax != nil):
			return "must be at most " + firstBound(r.max, r.exMax).lit + ", got " + got
		case r.multipleOf != nil || r.enum != nil:
			return tooLarge
		default:
			return ""
		}
	}
	switch {
	case r.enum != nil && !slices.ContainsFunc(r.enum, func(e json.RawMessage) bool { return rat(string(e)).Cmp(v) == 0 }):
		return notAmong(r.enum, got)
	case r.min != nil && v.Cmp(r.min.rat) < 0:
		return "must be at least " + r.min.lit + ", got " + got
	case r.max != nil && v.Cmp(r.max.rat) > 0:
		return "must be at most " + r.max.lit + ", got " + got
	case r.exMin != nil && v.Cmp(r.exMin.rat) <= 0:
		return "must be more than " + r.exMin.lit + ", got " + got
	case r.exMax != nil && v.Cmp(r.exMax.rat) >= 0:
		return "must be less than " + r.exMax.lit + ", got " + got
	case r.multipleOf != nil && !new(big.Rat).Quo(v, r.multipleOf.rat).IsInt():
		return "must be a multiple of " + r.multipleOf.lit + ", got " + got
	}
	return ""
}

const tooLarge = "is too large a number to check"

func firstBound(a, b *bound) *bound {
	if a != nil {
		return a
	}
	return b
}

// plainFloat reports whether f is clearly within the bounds, so that its literal need not be
// parsed. Rounding to float64 keeps order, so only a value that equals a bound is unclear.
func (r *rules) plainFloat(f float64) bool {
	return r.enum == nil && r.multipleOf == nil &&
		(r.min == nil || f > r.min.f) && (r.max == nil || f < r.max.f) &&
		(r.exMin == nil || f > r.exMin.f) && (r.exMax == nil || f < r.exMax.f)
}

// quoteJSON returns s as a JSON string. Invalid UTF-8, which only a Go program can pass, becomes
// the replacement character.
func quoteJSON(s string) json.RawMessage { return jsonx.AppendString(nil, s) }

// isText reports whether places of n take JSON strings.
func isText(n *node) bool {
	switch n.kind {
	case kindString, kindText, kindTime, kindDuration, kindBytes:
		return true
	}
	return false
}

// literal turns the text of a tag into JSON for n: strings need no quotes.
func literal(s string, n *node) (json.RawMessage, error) {
	if isText(n) {
		return quoteJSON(s), nil
	}
	if err := jsonx.Valid([]byte(s), maxDepth); err != nil {
		return nil, fmt.Errorf("%s is not JSON for %s", quote(s), n.typ)
	}
	return jsonx.Compact(nil, []byte(s)), nil
}
