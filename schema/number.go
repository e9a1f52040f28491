package schema

import (
	"bytes"
	"cmp"
	"math/big"
	"strconv"
)

// maxExponent bounds the powers of ten that are computed exactly. A number like 1e999999999 is a
// few bytes of text and hundreds of megabytes of digits.
const maxExponent = 2000

// decimal is a parsed number literal: the value is digits × 10^exp, with no zeros at either end
// of digits. Zero has no digits, whatever its exponent.
type decimal struct {
	neg    bool
	digits []byte
	exp    int // saturated at ±1<<30
}

// parseDecimal parses the number literal lit.
func parseDecimal(lit []byte) decimal {
	var d decimal
	i := 0
	if lit[0] == '-' {
		d.neg = true
		i++
	}
	digits := make([]byte, 0, 32)
	point := false
	for ; i < len(lit) && lit[i] != 'e' && lit[i] != 'E'; i++ {
		if lit[i] == '.' {
			point = true
			continue
		}
		if point {
			d.exp--
		}
		if lit[i] != '0' || len(digits) > 0 {
			digits = append(digits, lit[i])
		}
	}
	if i < len(lit) {
		e, err := strconv.Atoi(string(lit[i+1:]))
		const big = 1 << 29
		if err != nil || e > big || e < -big {
			e = big
			if lit[i+1] == '-' {
				e = -big
			}
		}
		d.exp += e
	}
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
		d.exp++
	}
	if len(digits) == 0 {
		d.neg = false
	}
	d.digits = digits
	return d
}

// bounded reports whether the number is small enough to be computed exactly.
func (d decimal) bounded() bool {
	return len(d.digits) <= maxExponent && -maxExponent <= d.exp && d.exp <= maxExponent
}

// rat returns the exact value of zero and of a bounded literal, nil for any
// other.
func rat(lit string) *big.Rat {
	switch d := parseDecimal([]byte(lit)); {
	case len(d.digits) == 0:
		return new(big.Rat)
	case !d.bounded():
		return nil
	}
	r, _ := new(big.Rat).SetString(lit)
	return r
}

// magnitude is the outcome of reading a literal as an integer.
type magnitude uint8

const (
	fits       magnitude = iota // the value is in the result
	fractional                  // not an integer
	huge                        // an integer over 64 bits
)

// parseInteger reads a number literal as an integer: 10, 10.0 and 1e1 are the
// same integer in JSON Schema. It never goes through floating point.
func parseInteger(lit []byte) (neg bool, abs uint64, m magnitude) {
	i := 0
	if lit[0] == '-' {
		neg = true
		i++
	}
	if len(lit)-i <= 19 { // always fits uint64
		for ; i < len(lit); i++ {
			c := lit[i] - '0'
			if c > 9 {
				break
			}
			abs = abs*10 + uint64(c)
		}
		if i == len(lit) {
			return neg, abs, fits
		}
	}
	d := parseDecimal(lit)
	switch {
	case len(d.digits) == 0:
		return false, 0, fits
	case d.exp < 0:
		return d.neg, 0, fractional
	case len(d.digits)+d.exp > 20:
		return d.neg, 0, huge
	}
	for range d.exp {
		d.digits = append(d.digits, '0')
	}
	abs, err := strconv.ParseUint(string(d.digits), 10, 64)
	if err != nil {
		return d.neg, 0, huge
	}
	return d.neg, abs, fits
}

// cmp compares two bounded numbers.
func (d decimal) cmp(e decimal) int {
	sign := d.sign()
	if sign != e.sign() || sign == 0 {
		return cmp.Compare(sign, e.sign())
	}
	// Both are 0.digits × 10^n, and the first digit is not 0.
	order := cmp.Compare(len(d.digits)+d.exp, len(e.digits)+e.exp)
	if order == 0 {
		order = bytes.Compare(d.digits, e.digits)
	}
	return sign * order
}

func (d decimal) sign() int {
	switch {
	case len(d.digits) == 0:
		return 0
	case d.neg:
		return -1
	}
	return 1
}

// appendCanonical appends a text that equal numbers share.
func (d decimal) appendCanonical(dst []byte) []byte {
	if len(d.digits) == 0 {
		return append(dst, "0;"...)
	}
	if d.neg {
		dst = append(dst, '-')
	}
	dst = append(append(dst, d.digits...), 'e')
	return append(strconv.AppendInt(dst, int64(d.exp), 10), ';')
}

// quantity is a bounded number of a foreign schema or of a value that is
// compared with it. Whole numbers of common size are compared as such.
type quantity struct {
	lit   string
	whole bool
	n     int64   // if whole
	dec   decimal // if not
}

func newQuantity(lit string) quantity {
	if len(lit) <= 18 {
		if n, err := strconv.ParseInt(lit, 10, 64); err == nil {
			return quantity{lit: lit, whole: true, n: n}
		}
	}
	return quantity{lit: lit, dec: parseDecimal([]byte(lit))}
}

func (q quantity) decimal() decimal {
	if q.whole {
		return parseDecimal([]byte(q.lit))
	}
	return q.dec
}

func (q quantity) cmp(p quantity) int {
	if q.whole && p.whole {
		return cmp.Compare(q.n, p.n)
	}
	return q.decimal().cmp(p.decimal())
}

// multipleOf reports whether q is a multiple of p, which is not zero. It is
// exact, and costs work in proportion to the digits of both.
func (q quantity) multipleOf(p quantity) bool {
	if q.whole && p.whole {
		return q.n%p.n == 0
	}
	return new(big.Rat).Quo(rat(q.lit), rat(p.lit)).IsInt()
}

// digits returns the number of digits of the number written in full.
func (q quantity) digits() int { return len(q.dec.digits) + max(q.dec.exp, -q.dec.exp) }
