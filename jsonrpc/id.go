package jsonrpc

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/patchbay-dev/patchbay/internal/jsonx"
	"github.com/patchbay-dev/patchbay/internal/text"
)

// maxIDDigits bounds the digits of an integer id. 2^128 has 39.
const maxIDDigits = 40

// ID is the id of a request: a string or an integer, kept exactly. Ids are compared with == and
// can be keys of a map: the integer 1 and the string "1" differ. The zero ID means that there is
// no id.
//
// Specification: 2026-07-28, basic/index.mdx, Requests (BASE-26-003); the same
// in all revisions.
type ID struct {
	kind idKind
	n    int64  // of an integer that fits
	s    string // of a string, or the digits of an integer that does not fit
}

type idKind uint8

const (
	noID idKind = iota
	stringID
	intID
	bigID
)

// StringID returns the id that is the string s.
func StringID(s string) ID { return ID{kind: stringID, s: s} }

// IntID returns the id that is the integer n.
func IntID(n int64) ID { return ID{kind: intID, n: n} }

// IsZero reports whether id is the zero ID.
func (id ID) IsZero() bool { return id.kind == noID }

// String returns the id for people and logs: the digits of an integer, a string in quotes,
// clipped to 64 bytes, or "null" for the zero ID.
func (id ID) String() string {
	if id.kind != stringID {
		return string(id.AppendJSON(nil))
	}
	const most = 64
	return strconv.Quote(text.Clip(id.s, most))
}

// AppendJSON appends the id as JSON; the zero ID is null.
func (id ID) AppendJSON(dst []byte) []byte {
	switch id.kind {
	case intID:
		return strconv.AppendInt(dst, id.n, 10)
	case bigID:
		return append(dst, id.s...)
	case stringID:
		return jsonx.AppendString(dst, id.s)
	}
	return append(dst, "null"...)
}

// MarshalJSON returns what [ID.AppendJSON] appends. Use omitzero to leave out
// a field without an id.
func (id ID) MarshalJSON() ([]byte, error) { return id.AppendJSON(nil), nil }

// UnmarshalJSON is [ParseID], except that null gives the zero ID.
func (id *ID) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		*id = ID{}
		return nil
	}
	parsed, err := ParseID(raw)
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// ParseID reads an id from its JSON: a string or an integer literal. It refuses null, fractions
// and exponents (even 1.0 and 1e3), integers of more than 40 digits, and every other kind. -0 is
// 0.
func ParseID(raw []byte) (ID, error) {
	switch jsonx.KindOf(raw) {
	case '"':
		s, err := jsonx.Unquote(raw)
		if err != nil {
			return ID{}, fmt.Errorf("id: %w", err)
		}
		return StringID(s), nil
	case '0':
		return parseIntID(raw)
	case 'n':
		return ID{}, errors.New("id is null, want a string or an integer")
	}
	return ID{}, errors.New("id is not a string or an integer")
}

func parseIntID(raw []byte) (ID, error) {
	digits := raw
	if raw[0] == '-' {
		digits = raw[1:]
	}
	if len(digits) > maxIDDigits {
		return ID{}, fmt.Errorf("id is a number of over %d digits", maxIDDigits)
	}
	var n uint64 // |id|, while it fits
	fits := true
	for _, c := range digits {
		if c < '0' || c > '9' {
			return ID{}, fmt.Errorf("id is %.50q, want a string or an integer without fraction and exponent", raw)
		}
		if n > (1<<64-1-uint64(c-'0'))/10 {
			fits = false
		}
		n = n*10 + uint64(c-'0')
	}
	if len(digits) == 0 || digits[0] == '0' && len(digits) > 1 {
		return ID{}, fmt.Errorf("id is %.50q, want a string or an integer", raw)
	}
	switch negative := len(digits) < len(raw); {
	case fits && n <= 1<<63-1 && !negative:
		return IntID(int64(n)), nil
	case fits && n <= 1<<63 && negative:
		return IntID(-int64(n)), nil // -2^63 negates to itself
	}
	return ID{kind: bigID, s: string(raw)}, nil
}
