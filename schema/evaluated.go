package schema

// evaluated is the set of the members or items of one value that a schema has evaluated, which
// unevaluatedProperties and unevaluatedItems skip. Its methods may be called on nil, the set that
// is not needed.
type evaluated struct {
	bits []uint64 // by order
	all  bool
}

func newEvaluated(v *value) *evaluated {
	return &evaluated{bits: make([]uint64, (v.size+63)/64)}
}

func (e *evaluated) add(order int32) {
	if e != nil {
		e.bits[order/64] |= 1 << (order % 64)
	}
}

func (e *evaluated) addAll() {
	if e != nil {
		e.all = true
	}
}

func (e *evaluated) has(order int32) bool {
	return e.all || e.bits[order/64]&(1<<(order%64)) != 0
}

// merge adds what is in other, which is of the same value. It returns true.
func (e *evaluated) merge(other *evaluated) bool {
	e.all = e.all || other.all
	for i, b := range other.bits {
		e.bits[i] |= b
	}
	return true
}
