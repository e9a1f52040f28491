package jsonx

import (
	"bytes"
	"hash/maphash"
)

// span is the text of a member name: b[off:off+n] of the input, or, when off
// is negative, side[^off:^off+n] of the Scanner.
type span struct{ off, n int }

// few is the number of names that are compared one by one. An object with more gets a hash table,
// so that the cost of a hostile object stays linear in its length.
const few = 16

// The seed is secret, so that a peer cannot send names that collide.
var nameSeed = maphash.MakeSeed()

func (s *Scanner) nameText(sp span) []byte {
	if sp.off < 0 {
		return s.side[^sp.off : ^sp.off+sp.n]
	}
	return s.b[sp.off : sp.off+sp.n]
}

// nameBit returns one of 64 bits for a name. It is a cheap, weak hash: a name whose bit is not
// set yet is new, and every other name is compared.
func nameBit(name []byte) uint64 {
	n := len(name)
	if n == 0 {
		return 1
	}
	return 1 << ((uint(n)<<3 ^ uint(name[0]) ^ uint(name[n/2])<<1 ^ uint(name[n-1])<<2) & 63)
}

// addName records a name of the object f. It returns false if the object already has it.
func (s *Scanner) addName(f *frame, at NameSpan) (fresh bool) {
	if bit := nameBit(s.b[at.Start:at.End]); !at.Escaped && f.filter&bit == 0 && len(s.names)-f.names < few {
		f.filter |= bit
		s.names = append(s.names, span{at.Start, at.End - at.Start})
		return true
	}
	return s.addDoubtful(f, at)
}

// addDoubtful is addName for a name whose bit is already set.
func (s *Scanner) addDoubtful(f *frame, at NameSpan) (fresh bool) {
	sp := span{at.Start, at.End - at.Start}
	if at.Escaped {
		before := len(s.side)
		s.side = appendUnescaped(s.side, s.b[at.Start:at.End])
		sp = span{^before, len(s.side) - before}
	}
	name := s.nameText(sp)
	known := s.names[f.names:]
	if len(known) < few {
		bit := nameBit(name)
		if f.filter&bit != 0 {
			for _, k := range known {
				if k.n == sp.n && bytes.Equal(s.nameText(k), name) {
					return false
				}
			}
		}
		f.filter |= bit
		s.names = append(s.names, sp)
		return true
	}
	if !f.many {
		f.many = true
		s.tables = append(s.tables, nil)
	}
	// Objects inside f are closed, so the last table is that of f.
	table := &s.tables[len(s.tables)-1]
	if 2*len(known) >= len(*table) {
		*table = make(nameTable, 8*len(known))
		for i, k := range known {
			*s.slot(*table, known, s.nameText(k)) = uint32(i + 1)
		}
	}
	slot := s.slot(*table, known, name)
	if *slot != 0 {
		return false
	}
	*slot = uint32(len(known) + 1)
	s.names = append(s.names, sp)
	return true
}

// nameTable is an open hash table of the names of one object. A slot holds 0, or the number of a
// name plus one.
type nameTable []uint32

// slot returns the slot of name, or the empty slot where it belongs.
func (s *Scanner) slot(t nameTable, known []span, name []byte) *uint32 {
	for i := maphash.Bytes(nameSeed, name) % uint64(len(t)); ; {
		slot := &t[i]
		if *slot == 0 || bytes.Equal(s.nameText(known[*slot-1]), name) {
			return slot
		}
		if i++; i == uint64(len(t)) {
			i = 0
		}
	}
}
