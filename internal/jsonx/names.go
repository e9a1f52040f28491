package jsonx

import (
	"bytes"
	"hash/maphash"
)

// span is the text of a member name: b[off:off+n] of the input, or, when off
// is negative, side[^off:^off+n] of the Scanner.
type span struct{ off, n int }

// few is the number of names that are compared one by one. An object with more
// gets a hash table, so that a hostile object costs no more than its length.
const few = 16

// The seed is secret, so that nobody can send names that collide.
var nameSeed = maphash.MakeSeed()

func (s *Scanner) nameText(sp span) []byte {
	if sp.off < 0 {
		return s.side[^sp.off : ^sp.off+sp.n]
	}
	return s.b[sp.off : sp.off+sp.n]
}

// addName remembers a name of the object f. It returns the name unescaped, and
// false if the object had it.
func (s *Scanner) addName(f *frame, at NameSpan) (name []byte, fresh bool) {
	sp := span{at.Start, at.End - at.Start}
	if at.Escaped {
		before := len(s.side)
		s.side = appendUnescaped(s.side, s.b[at.Start:at.End])
		sp = span{^before, len(s.side) - before}
	}
	name = s.nameText(sp)
	known := s.names[f.names:]
	if len(known) < few {
		for _, k := range known {
			if k.n == sp.n && bytes.Equal(s.nameText(k), name) {
				return name, false
			}
		}
		s.names = append(s.names, sp)
		return name, true
	}
	if 2*len(known) >= len(f.table) {
		f.table = make([]uint32, 8*len(known))
		for i, k := range known {
			*s.slot(f, s.nameText(k)) = uint32(i + 1)
		}
	}
	slot := s.slot(f, name)
	if *slot != 0 {
		return name, false
	}
	*slot = uint32(len(known) + 1)
	s.names = append(s.names, sp)
	return name, true
}

// slot returns the place of name in the table of f: it holds 0, or one more
// than the number of the equal name.
func (s *Scanner) slot(f *frame, name []byte) *uint32 {
	known := s.names[f.names:]
	for i := maphash.Bytes(nameSeed, name) % uint64(len(f.table)); ; {
		slot := &f.table[i]
		if *slot == 0 || bytes.Equal(s.nameText(known[*slot-1]), name) {
			return slot
		}
		if i++; i == uint64(len(f.table)) {
			i = 0
		}
	}
}
