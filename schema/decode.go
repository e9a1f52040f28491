package schema

import (
	"fmt"
	"math"
	"reflect"
	"strconv"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
)

// decoder reads one JSON text into Go values, collecting what is wrong with
// it. Its methods return false when the text itself is broken and reading
// cannot go on.
//
// Faults are recorded with an empty path; each level prepends its own name on the way out, so
// that paths cost nothing for a value without faults.
type decoder struct {
	scanner
	faults []Fault
	extra  int  // faults past maxFaults
	answer bool // unknown properties are stepped over
	asText bool // a number or a boolean may be in a string
}

// decodeInto reads data, one JSON value, into v, a place with spec s. If valid is set, the syntax
// is not checked again.
func decodeInto(data []byte, s *spec, v reflect.Value, valid bool) error {
	d := decoder{scanner: scanner{data: data, valid: valid}}
	return d.into(s, v)
}

func (d *decoder) into(s *spec, v reflect.Value) error {
	if d.value(s, v) {
		d.end()
	}
	return d.result()
}

func (d *decoder) fault(problem string) { d.faultOf("", problem) }

// faultOf keeps a fault of the member with a pointer, or of the value itself if that is empty.
func (d *decoder) faultOf(pointer, problem string) {
	if len(d.faults) == maxFaults {
		d.extra++
		return
	}
	d.faults = append(d.faults, Fault{Pointer: pointer, Problem: problem})
}

// full reports whether further faults are only counted.
func (d *decoder) full() bool { return len(d.faults) == maxFaults }

// result returns the faults as an error, or nil if there are none.
func (d *decoder) result() error {
	if d.err != nil {
		d.fault(d.err.Error())
	}
	if d.faults == nil {
		return nil
	}
	return &ValidationError{Faults: d.faults, More: d.extra}
}

// mismatch records a value of the wrong kind and steps over it.
func (d *decoder) mismatch(want string) bool {
	c := d.peek()
	if _, ok := d.take(); !ok {
		return false
	}
	d.fault(want + ", got " + kindName(c))
	return true
}

// value reads the value at the current position into v, a place with spec s.
func (d *decoder) value(s *spec, v reflect.Value) bool {
	c := d.peek()
	if c == 'n' && s.nullable {
		v.SetZero()
		_, ok := d.take()
		return ok
	}
	for range s.ptrs {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		v = v.Elem()
	}
	n, r := s.node, s.rules
	if c == '"' && d.asText && n.kind != kindString && n.literal() {
		return d.inText(s, v)
	}
	switch n.kind {
	case kindStruct:
		return d.object(n, v, c)
	case kindString:
		if c != '"' {
			return d.mismatch("must be a string")
		}
		str, ok := d.str()
		if !ok {
			return false
		}
		if r != nil {
			if problem := r.ofString(str); problem != "" {
				d.fault(problem)
			}
		}
		v.SetString(str)
		return true
	case kindBool:
		if c != 't' && c != 'f' {
			return d.mismatch("must be true or false")
		}
		v.SetBool(c == 't')
		_, ok := d.take()
		return ok
	case kindInt, kindUint:
		return d.integer(n, r, v, c)
	case kindFloat:
		return d.float(n, r, v, c)
	case kindSlice:
		return d.slice(n, r, v, c)
	case kindArray:
		return d.array(n, r, v, c)
	case kindMap:
		return d.mapping(n, r, v, c)
	case kindAny:
		e, ok := d.any()
		if e != nil {
			v.Set(reflect.ValueOf(e))
		} else {
			v.SetZero()
		}
		return ok
	case kindRaw:
		raw, ok := d.take()
		if ok {
			v.SetBytes(append(make([]byte, 0, len(raw)), raw...))
		}
		return ok
	case kindNumber:
		if !numeric(c) {
			return d.mismatch("must be a number")
		}
		lit, ok := d.take()
		if !ok {
			return false
		}
		if r != nil {
			if problem := r.ofNumber(lit); problem != "" {
				d.fault(problem)
			}
		}
		v.SetString(string(lit))
		return true
	case kindCustom, kindHook:
		return d.custom(n, v)
	}
	return d.texty(n, r, v, c)
}

// numeric reports whether a value that begins with c is a number, unless it is not JSON, which take
// then reports.
func numeric(c byte) bool { return kindName(c) == "number" }

// object reads a struct.
func (d *decoder) object(n *node, v reflect.Value, c byte) bool {
	if c != '{' {
		return d.mismatch("must be an object")
	}
	if !d.enter() {
		return false
	}
	var small [2]uint64
	seen := small[:]
	if len(n.fields) > 128 {
		seen = make([]uint64, (len(n.fields)+63)/64)
	}
	next := 0
	for first := true; d.more(first, '}'); first = false {
		name, ok := d.name()
		if !ok {
			return false
		}
		i := n.find(name, next)
		if i < 0 && n.rest != nil && !d.answer {
			m := at(v, n.rest)
			if m.IsNil() {
				m.Set(reflect.MakeMap(m.Type()))
			}
			if !d.entry(n, name, m, reflect.New(m.Type().Elem()).Elem()) {
				return false
			}
			continue
		}
		if i < 0 {
			switch {
			case d.answer:
			case d.full():
				d.fault("") // only counted
			default:
				d.faultOf(pointerTo(string(name)), "unknown property "+quote(string(name))+hint(n, string(name)))
			}
			if _, ok := d.take(); !ok {
				return false
			}
			continue
		}
		next = i + 1
		if seen[i/64]&(1<<(i%64)) != 0 {
			return d.repeated()
		}
		seen[i/64] |= 1 << (i % 64)
		f := &n.fields[i]
		if d.peek() == 'n' && !f.required && !n.out && !f.takesNull() {
			// Models send null for properties that they mean to omit, in strict modes always.
			if _, ok := d.take(); !ok {
				return false
			}
			f.absent(v)
			continue
		}
		before := len(d.faults)
		ok = d.value(&f.spec, at(v, f.index))
		if len(d.faults) > before {
			under(d.faults[before:], f.name)
		}
		if !ok {
			return false
		}
	}
	if d.err != nil {
		return false
	}
	for i := range n.fields {
		if seen[i/64]&(1<<(i%64)) != 0 {
			continue
		}
		if f := &n.fields[i]; f.required {
			d.faultOf(pointerTo(f.name), "missing "+quote(f.name))
		} else {
			f.absent(v)
		}
	}
	return true
}

// absent gives the field of struct v its default, if it has one.
func (f *field) absent(v reflect.Value) {
	if f.rules != nil && f.rules.def != nil {
		// The default was decoded once when the type was compiled.
		_ = decodeInto(f.rules.def, &f.spec, at(v, f.index), true)
	}
}

// takesNull reports whether the place s accepts null as a value.
func (s *spec) takesNull() bool {
	switch n := s.node; n.kind {
	case kindAny, kindRaw:
		return true
	case kindCustom, kindHook:
		alone := spec{node: n, nullable: s.nullable}
		return decodeInto([]byte("null"), &alone, reflect.New(n.typ).Elem(), true) == nil
	}
	return s.nullable
}

// at returns the field of struct v, making embedded structs on the way.
func at(v reflect.Value, index []int) reflect.Value {
	if len(index) == 1 {
		return v.Field(index[0])
	}
	for i, x := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(x)
	}
	return v
}

func (d *decoder) integer(n *node, r *rules, v reflect.Value, c byte) bool {
	if !numeric(c) {
		return d.mismatch("must be an integer")
	}
	lit, ok := d.take()
	if !ok {
		return false
	}
	neg, abs, m := parseInteger(lit)
	switch m {
	case fractional:
		d.fault("must be an integer, got " + excerpt(string(lit)))
		return true
	case huge:
		d.fault(beyond(n, r, neg, lit))
		return true
	}
	if r != nil && (r.enum != nil || r.multipleOf != nil) {
		if problem := r.ofNumber(lit); problem != "" {
			d.fault(problem)
			return true
		}
	}
	if n.kind == kindUint {
		lo, hi := uint64(0), uint64(math.MaxUint64)
		if r != nil {
			lo, hi = r.ulo, r.uhi
		}
		if neg && abs != 0 || abs < lo || abs > hi {
			d.fault(beyond(n, r, neg && abs != 0 || abs < lo, lit))
			return true
		}
		v.SetUint(abs)
		return true
	}
	var i int64
	switch {
	case neg && abs <= 1<<63:
		i = -int64(abs)
	case !neg && abs <= math.MaxInt64:
		i = int64(abs)
	default:
		d.fault(beyond(n, r, neg, lit))
		return true
	}
	if r != nil && (i < r.lo || i > r.hi) {
		d.fault(beyond(n, r, i < r.lo, lit))
		return true
	}
	v.SetInt(i)
	return true
}

// beyond returns the fault of an integer outside of its bounds: those of the rules if it breaks
// one, else those of the Go type.
func beyond(n *node, r *rules, low bool, lit []byte) string {
	if r != nil {
		if problem := r.ofNumber(lit); problem != "" && problem != tooLarge {
			return problem
		}
	}
	switch {
	case low && n.kind == kindUint:
		return "must be at least 0, got " + excerpt(string(lit))
	case low:
		return "must be at least " + strconv.FormatInt(math.MinInt64, 10) + ", got " + excerpt(string(lit))
	case n.kind == kindUint:
		return "must be at most " + strconv.FormatUint(math.MaxUint64, 10) + ", got " + excerpt(string(lit))
	}
	return "must be at most " + strconv.FormatInt(math.MaxInt64, 10) + ", got " + excerpt(string(lit))
}

func (d *decoder) float(n *node, r *rules, v reflect.Value, c byte) bool {
	if !numeric(c) {
		return d.mismatch("must be a number")
	}
	lit, ok := d.take()
	if !ok {
		return false
	}
	f, err := strconv.ParseFloat(string(lit), n.bits)
	if err != nil {
		d.fault("is too large a number: " + excerpt(string(lit)))
		return true
	}
	if r != nil && (n.bits == 32 || !r.plainFloat(f)) {
		if problem := r.ofNumber(lit); problem != "" {
			d.fault(problem)
		}
	}
	v.SetFloat(f)
	return true
}

func (d *decoder) slice(n *node, r *rules, v reflect.Value, c byte) bool {
	if c != '[' {
		return d.mismatch("must be an array")
	}
	if !d.enter() {
		return false
	}
	var unique uniqueItems
	i := 0
	for d.more(i == 0, ']') {
		v.Grow(1)
		v.SetLen(i + 1)
		item := v.Index(i)
		item.SetZero()
		if !d.item(n, r, item, i, &unique) {
			return false
		}
		i++
	}
	if d.err != nil {
		return false
	}
	if i == 0 {
		v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // empty, not nil
	}
	d.size(r, i, "item", "items")
	return true
}

func (d *decoder) array(n *node, r *rules, v reflect.Value, c byte) bool {
	if c != '[' {
		return d.mismatch("must be an array")
	}
	if !d.enter() {
		return false
	}
	var unique uniqueItems
	i := 0
	for ; d.more(i == 0, ']'); i++ {
		if i >= n.bits {
			if _, ok := d.take(); !ok {
				return false
			}
			continue
		}
		if !d.item(n, r, v.Index(i), i, &unique) {
			return false
		}
	}
	if d.err != nil {
		return false
	}
	if i != n.bits {
		d.fault(fmt.Sprintf("must have exactly %d items, got %d", n.bits, i))
	}
	d.size(r, i, "item", "items")
	return true
}

// item reads element i of a list.
func (d *decoder) item(n *node, r *rules, v reflect.Value, i int, unique *uniqueItems) bool {
	d.peek()
	start, before := d.pos, len(d.faults)
	ok := d.value(&n.elem, v)
	if len(d.faults) > before {
		underIndex(d.faults[before:], i)
	}
	if ok && r != nil && r.unique {
		if j, dup := unique.add(d.data[start:d.pos], i); dup {
			d.fault(fmt.Sprintf("items must differ, but item %d repeats item %d", i, j))
		}
	}
	return ok
}

func (d *decoder) size(r *rules, n int, one, many string) {
	if r == nil {
		return
	}
	if problem := r.ofSize(n, one, many); problem != "" {
		d.fault(problem)
	}
}

func (d *decoder) mapping(n *node, r *rules, v reflect.Value, c byte) bool {
	if c != '{' {
		return d.mismatch("must be an object")
	}
	if !d.enter() {
		return false
	}
	t := v.Type()
	m := reflect.MakeMap(t)
	elem := reflect.New(t.Elem()).Elem()
	for first := true; d.more(first, '}'); first = false {
		name, ok := d.name()
		if !ok {
			return false
		}
		if !d.entry(n, name, m, elem) {
			return false
		}
	}
	if d.err != nil {
		return false
	}
	v.Set(m)
	d.size(r, m.Len(), "property", "properties")
	return true
}

// entry reads the value for a key into a map. It uses elem as space.
func (d *decoder) entry(n *node, name []byte, m, elem reflect.Value) bool {
	key := reflect.ValueOf(string(name)).Convert(m.Type().Key())
	if m.MapIndex(key).IsValid() {
		return d.repeated()
	}
	before := len(d.faults)
	elem.SetZero()
	ok := d.value(&n.elem, elem)
	if len(d.faults) > before {
		under(d.faults[before:], key.String())
	}
	if ok {
		m.SetMapIndex(key, elem)
	}
	return ok
}

// literal reports whether the values are numbers or booleans.
func (n *node) literal() bool {
	switch n.kind {
	case kindBool, kindInt, kindUint, kindFloat, kindNumber:
		return true
	}
	return false
}

// inText reads a string that holds a number or a boolean. Any other string is read as usual, which
// is a fault.
func (d *decoder) inText(s *spec, v reflect.Value) bool {
	start := d.pos
	str, ok := d.str()
	if !ok {
		return false
	}
	plain := spec{node: s.node, rules: s.rules}
	word := decoder{scanner: scanner{data: []byte(str)}}
	if jsonx.Valid(word.data, 1) == nil && (numeric(word.peek()) != (s.node.kind == kindBool)) {
		word.value(&plain, v)
		for _, f := range word.faults {
			d.fault(f.Problem)
		}
		return true
	}
	d.pos, d.asText = start, false
	ok = d.value(&plain, v)
	d.asText = true
	return ok
}

// custom reads a value that decodes itself.
func (d *decoder) custom(n *node, v reflect.Value) bool {
	raw, ok := d.take()
	if !ok {
		return false
	}
	if n.check != nil {
		if err := n.check.Validate(raw); err != nil {
			d.adopt(err)
			return true
		}
	}
	if n.out {
		return true
	}
	if err := jsonx.Unmarshal(raw, v.Addr().Interface()); err != nil {
		d.fault("is not valid: " + excerpt(err.Error()))
	}
	return true
}

// adopt adds the faults in err to those of d.
func (d *decoder) adopt(err error) {
	var e *ValidationError
	if e, _ = err.(*ValidationError); e == nil {
		d.fault(err.Error())
		return
	}
	for _, f := range e.Faults {
		if len(d.faults) == maxFaults {
			d.extra++
			continue
		}
		d.faults = append(d.faults, f)
	}
	d.extra += e.More
}
